//! Modes that last for some time.

use bench_calls::{Mode, Plan, Sample, echo_source, echo_target, failure};
use rpc_device::client::client;
use rpc_device::clock::nanoseconds;
use rpc_device::{Opcode, Prefix, call};

use crate::Me;
use crate::bulk::{echo_once, words};
use crate::calls::add_one_apart;

/// Calls between two looks at the clock.
const CALLS_PER_LOOK: u64 = 16;

/// Whether this device has no clock, so that no time would ever be over.
fn timeless() -> bool {
    nanoseconds() == 0 && nanoseconds() == 0
}

/// Lets so many nanoseconds pass without a call.
fn wait(time: u64) {
    #[cfg(not(any(target_arch = "nvptx64", target_arch = "amdgpu")))]
    std::thread::sleep(std::time::Duration::from_nanos(time));
    #[cfg(any(target_arch = "nvptx64", target_arch = "amdgpu"))]
    {
        let begun = nanoseconds();
        while nanoseconds() - begun < time {}
    }
}

#[inline(never)]
pub(crate) fn idle(plan: &Plan) -> i32 {
    if timeless() {
        return failure::CLOCK;
    }
    wait(plan.calls);
    0
}

#[inline(never)]
pub(crate) fn first(plan: &Plan) -> i32 {
    if timeless() {
        return failure::CLOCK;
    }
    for i in 0..plan.calls {
        wait(plan.bytes);
        let begun = nanoseconds();
        let result = add_one_apart(i);
        let time = nanoseconds() - begun;
        if let Err(failure) = result {
            return failure;
        }
        if call::<Sample>(&time).is_err() {
            return failure::ERROR;
        }
    }
    0
}

#[inline(never)]
pub(crate) fn beside(me: Me, plan: &Plan) -> i32 {
    if timeless() {
        return failure::CLOCK;
    }
    let begun = nanoseconds();
    let over = || nanoseconds() - begun >= plan.calls;
    if me.warp == 0 {
        return match plan.mode {
            _ if me.lane != 0 => 0,
            Mode::Waiting => read(),
            _ if plan.bytes > 0 => stream(plan, over),
            _ => 0,
        };
    }
    let mut count = 0;
    while !over() {
        for _ in 0..CALLS_PER_LOOK {
            if let Err(failure) = add_one_apart(me.index << 32 | count) {
                return failure;
            }
            count += 1;
        }
    }
    if me.lane == 0 && call::<Sample>(&count).is_err() {
        return failure::ERROR;
    }
    0
}

/// Reads from standard input, as C's `fread` does, until it ends.
fn read() -> i32 {
    /// How C's standard input is called on the wire.
    const STDIN: u64 = 1;
    let mut bytes = [0; 8];
    let mut sink = Prefix::new(&mut bytes);
    let mut count = u64::MAX;
    let result = client().with_port(Opcode::READ_FROM_STREAM, false, |port| {
        port.send(16, |_, packet| packet.set(&[8, STDIN]))?;
        port.recv_n(&mut sink)?;
        port.recv(8, |_, packet| count = packet.get())
    });
    match result {
        Ok(()) if count == 0 => 0,
        Ok(()) => failure::ANSWER,
        Err(_) => failure::ERROR,
    }
}

/// Echoes until it is `over`, at least once.
fn stream(plan: &Plan, over: impl Fn() -> bool) -> i32 {
    // SAFETY: the host has allocated and filled two parts, and the first lane of the first warp alone
    // accesses them.
    let (message, answer) = unsafe {
        (
            words(plan, echo_source(0, plan.bytes), plan.bytes),
            words(plan, echo_target(0, plan.bytes), plan.bytes),
        )
    };
    let (client, mut round) = (client(), 0);
    loop {
        if let Err(failure) = echo_once(&client, message, answer, round) {
            return failure;
        }
        if over() {
            break;
        }
        round += 1;
    }
    if message == answer {
        0
    } else {
        failure::ANSWER
    }
}
