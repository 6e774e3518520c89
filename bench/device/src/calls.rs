//! Small calls.
//!
//! Each mode is a function of its own that is not inlined, so that no loop pays for the registers of
//! another.

use bench_calls::{FLAG_DISTANCE, FLAG_STOP, PACKETS, Plan, failure};
use rpc_bitmap::{Memory, Raw, System};
use rpc_device::client::{Client, client};
use rpc_device::procedure::{Empty, Increment, Noop};
use rpc_device::{Error, call};

use crate::{Me, wrong};

/// Polls before a thread of the CPU device lets others run.
#[cfg(not(any(target_arch = "nvptx64", target_arch = "amdgpu")))]
const SPINS: u32 = 200;

/// Between two looks at a flag. On a GPU nothing: each look takes a microsecond.
#[inline(always)]
fn pause(polls: u32) {
    #[cfg(not(any(target_arch = "nvptx64", target_arch = "amdgpu")))]
    if polls > SPINS {
        std::thread::yield_now();
    } else {
        std::hint::spin_loop();
    }
    #[cfg(any(target_arch = "nvptx64", target_arch = "amdgpu"))]
    let _ = polls;
}

#[inline(never)]
pub(crate) fn floor(plan: &Plan) -> i32 {
    let base = core::ptr::with_exposed_provenance_mut::<u8>(plan.address as usize);
    // SAFETY: the host gives the address of two pages that it shares with this device and that
    // outlive the kernel; both sides access them as atoms only.
    let flags = unsafe { Raw::<System>::new(base, 2 * FLAG_DISTANCE) };
    for round in 1..=plan.calls as u32 {
        let mut polls = 0;
        loop {
            let seen = flags.load32(0);
            if seen == round {
                break;
            }
            if seen == FLAG_STOP {
                return failure::STOPPED;
            }
            polls += 1;
            pause(polls);
        }
        flags.store32(FLAG_DISTANCE, round);
    }
    0
}

/// What is wrong with the answer of a host that was to add one, if anything.
#[inline(always)]
fn one_more(value: u64, answer: Result<u64, Error>) -> Result<(), i32> {
    match answer {
        Ok(answer) if answer == value.wrapping_add(1) => Ok(()),
        other => Err(wrong(other.map(drop))),
    }
}

/// Lets the host add one.
#[inline(always)]
fn add_one(client: &Client, value: u64) -> Result<(), i32> {
    one_more(value, client.call::<Increment>(&value))
}

/// As [`add_one`], in one place for all whose time it does not count in: an inlined call is a
/// hundred kilobytes of PTX, which the driver compiles at every start.
#[inline(never)]
pub(crate) fn add_one_apart(value: u64) -> Result<(), i32> {
    add_one(&client(), value)
}

/// Numbers that no two lanes send.
fn base(me: Me) -> u64 {
    me.index << 32
}

#[inline(never)]
pub(crate) fn increment(me: Me, plan: &Plan) -> i32 {
    for i in 0..plan.calls {
        let value = base(me) + i;
        if let Err(failure) = one_more(value, call::<Increment>(&value)) {
            return failure;
        }
    }
    0
}

#[inline(never)]
pub(crate) fn kept(me: Me, plan: &Plan) -> i32 {
    let client = client();
    let Ok(mut kept) = client.keep() else {
        return failure::ERROR;
    };
    for i in 0..plan.calls {
        let value = base(me) + i;
        if let Err(failure) = one_more(value, kept.call::<Increment>(&value)) {
            return failure;
        }
    }
    0
}

#[inline(never)]
pub(crate) fn packets(me: Me, plan: &Plan) -> i32 {
    let client = client();
    for i in 0..plan.calls {
        let first = base(me) + i;
        let words: [u64; 8] = core::array::from_fn(|k| first.wrapping_mul(2 * k as u64 + 1));
        let mut right = false;
        let result = client.with_port(PACKETS, false, |port| {
            let payload = port.payload();
            // The last word may have room for a part only.
            let last = !0 >> (8 * (8 * words.len() - payload));
            port.send_and_recv(
                payload,
                |_, packet| packet.words = words,
                payload,
                |_, packet| {
                    // Not by comparing slices, which a GPU does byte by byte.
                    let whole = packet.words.iter().zip(&words).take(7);
                    let differ = whole.fold(0, |all, (come, gone)| all | come ^ gone);
                    right = differ | (packet.words[7] ^ words[7]) & last == 0;
                },
            )
        });
        if result.is_err() || !right {
            return wrong(result);
        }
    }
    0
}

/// Xorshift: good enough to diverge.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

#[inline(never)]
pub(crate) fn diverge(me: Me, plan: &Plan) -> i32 {
    let client = client();
    let mut random = Random((me.index + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    for i in 0..plan.calls {
        let value = base(me) + i;
        let result = match random.below(4) {
            0 => Ok(()),
            1 => add_one(&client, value),
            2 => add_one(&client, !value),
            _ => (0..2).try_for_each(|k| add_one(&client, value ^ k)),
        };
        if let Err(failure) = result {
            return failure;
        }
    }
    0
}

#[inline(never)]
pub(crate) fn noop(me: Me, plan: &Plan) -> i32 {
    let client = client();
    for _ in 0..plan.calls {
        if client.notify::<Noop>(&Empty).is_err() {
            return failure::ERROR;
        }
    }
    add_one_apart(base(me)).err().unwrap_or(0)
}
