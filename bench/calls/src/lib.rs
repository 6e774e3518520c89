#![doc = include_str!("../README.md")]
#![no_std]
#![forbid(unsafe_code)]

use rpc_port::procedure::Empty;
use rpc_port::{Procedure, StreamProcedure};
use rpc_types::Opcode;

/// What a kernel does; its first argument is the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Repeats the numbers in one flag in another one, `calls` of them: [`FLAG_DISTANCE`] apart, the
    /// first at `address`.
    Floor,
    /// Each lane lets the host add one, `calls` times.
    Increment,
    /// As [`Increment`](Self::Increment), over a port that each warp keeps.
    Kept,
    /// Each lane lets the host send a whole packet back, `calls` times.
    Packets,
    /// Each lane goes its own random way through increments, for `calls` rounds.
    Diverge,
    /// Each lane posts `calls` calls that nobody answers, then one that is answered.
    Noop,
    /// All threads write the [`pattern`] into the `bytes` bytes at `address`.
    Fill,
    /// Each lane sends the `bytes` bytes at `address`, `calls` times.
    Send,
    /// Each lane sends [`STACK_BLOCK`] bytes of its stack, `calls` times.
    Stack,
    /// Each lane sends `bytes` bytes of its own at `address` and has them sent back to another place,
    /// `calls` times. The places are [`echo_source`] and [`echo_target`].
    Echo,
    /// Does nothing for `calls` nanoseconds.
    Idle,
    /// After `bytes` nanoseconds without a call makes one and reports how long it took, `calls` times.
    First,
    /// All warps but the first call for `calls` nanoseconds and report how often. The first echoes
    /// `bytes` bytes at `address` all the while, if there are any.
    Beside,
    /// As [`Beside`](Self::Beside), but the first reads from standard input, which gives nothing, until
    /// the host ends it.
    Waiting,
}

impl Mode {
    /// All modes.
    pub const ALL: [Self; 14] = [
        Self::Floor,
        Self::Increment,
        Self::Kept,
        Self::Packets,
        Self::Diverge,
        Self::Noop,
        Self::Fill,
        Self::Send,
        Self::Stack,
        Self::Echo,
        Self::Idle,
        Self::First,
        Self::Beside,
        Self::Waiting,
    ];

    /// The mode's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Floor => "floor",
            Self::Increment => "increment",
            Self::Kept => "kept",
            Self::Packets => "packets",
            Self::Diverge => "diverge",
            Self::Noop => "noop",
            Self::Fill => "fill",
            Self::Send => "send",
            Self::Stack => "stack",
            Self::Echo => "echo",
            Self::Idle => "idle",
            Self::First => "first",
            Self::Beside => "beside",
            Self::Waiting => "waiting",
        }
    }

    /// The mode of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }
}

/// A kernel's mode and numbers, which follow it as arguments in the order of the fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What it does.
    pub mode: Mode,
    /// How often.
    pub calls: u64,
    /// Lanes of each warp that take part; the others end at once.
    pub lanes: u64,
    /// Lanes of a warp.
    pub width: u64,
    /// Bytes of a message.
    pub bytes: u64,
    /// Device address of what the mode works on.
    pub address: u64,
}

impl Plan {
    /// The numbers, as arguments.
    pub const fn numbers(&self) -> [u64; 5] {
        [self.calls, self.lanes, self.width, self.bytes, self.address]
    }

    /// The plan of these arguments.
    pub const fn new(mode: Mode, numbers: [u64; 5]) -> Self {
        let [calls, lanes, width, bytes, address] = numbers;
        Self {
            mode,
            calls,
            lanes,
            width,
            bytes,
            address,
        }
    }
}

/// What a thread returns when something is wrong: bits, since results are or-ed.
pub mod failure {
    /// The arguments are no [`Plan`](crate::Plan).
    pub const ARGUMENTS: i32 = 1;
    /// A call failed.
    pub const ERROR: i32 = 2;
    /// The host's answer was wrong.
    pub const ANSWER: i32 = 4;
    /// The host ended the floor's exchange early.
    pub const STOPPED: i32 = 8;
    /// The device has no clock.
    pub const CLOCK: i32 = 16;

    /// What is wrong, in words.
    pub const NAMES: [(i32, &str); 5] = [
        (ARGUMENTS, "the image does not know the arguments"),
        (ERROR, "a call failed"),
        (ANSWER, "an answer was wrong"),
        (STOPPED, "the exchange was stopped"),
        (CLOCK, "the device has no clock"),
    ];
}

/// Bytes between the two flags of [`Mode::Floor`]: pages of their own.
pub const FLAG_DISTANCE: usize = 4096;
/// What the host writes into the first flag to end [`Mode::Floor`] early.
pub const FLAG_STOP: u32 = u32::MAX;
/// Bytes that [`Mode::Stack`] sends at a time.
pub const STACK_BLOCK: usize = 8 << 10;

/// Word number `index` of every message that is sent to [`Discard`].
pub const fn pattern(index: u64) -> u64 {
    (index ^ 0x5BD1_E995).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Where thread `thread`'s message of [`Mode::Echo`] lies, from the address on.
pub const fn echo_source(thread: u64, bytes: u64) -> u64 {
    2 * thread * bytes
}

/// Where it is sent back to.
pub const fn echo_target(thread: u64, bytes: u64) -> u64 {
    echo_source(thread, bytes) + bytes
}

/// Tells the host a number.
#[derive(Clone, Copy, Debug)]
pub struct Sample;

impl Procedure for Sample {
    const OPCODE: Opcode = Opcode::user(1);
    const NAME: &'static str = "bench_sample";
    type Request = u64;
    type Reply = Empty;
}

/// A packet there and back, as full as the layout has room.
pub const PACKETS: Opcode = Opcode::user(2);

/// Sends a message of the [`pattern`] that the host looks at and forgets; its answer is the length,
/// a `u64`.
#[derive(Clone, Copy, Debug)]
pub struct Discard;

impl StreamProcedure for Discard {
    const OPCODE: Opcode = Opcode::user(3);
    const NAME: &'static str = "bench_discard";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_found_by_name() {
        for mode in Mode::ALL {
            assert_eq!(Mode::from_name(mode.name()), Some(mode));
        }
        assert_eq!(Mode::from_name("frob"), None);
    }

    #[test]
    fn plans_come_back() {
        let plan = Plan::new(Mode::Echo, [1, 2, 3, 4, 5]);
        assert_eq!(Plan::new(Mode::Echo, plan.numbers()), plan);
    }
}
