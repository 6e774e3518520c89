//! Messages of many bytes.

use bench_calls::{Discard, Plan, STACK_BLOCK, echo_source, echo_target, failure, pattern};
use rpc_device::client::{Client, client};
use rpc_device::procedure::Echo;
use rpc_device::{Prefix, grid};

use crate::{Me, wrong};

/// `bytes` bytes of the device's memory from `offset` on, as words.
///
/// # Safety
/// The plan's address is that of so much memory, aligned to 8 bytes and initialised, and nobody else
/// accesses this part while the result is used.
pub(crate) unsafe fn words<'m>(plan: &Plan, offset: u64, bytes: u64) -> &'m mut [u64] {
    let start = core::ptr::with_exposed_provenance_mut((plan.address + offset) as usize);
    // SAFETY: the caller's promise.
    unsafe { core::slice::from_raw_parts_mut(start, bytes as usize / 8) }
}

#[inline(never)]
pub(crate) fn fill(plan: &Plan) -> i32 {
    let all = grid::blocks().map(u64::from).iter().product::<u64>()
        * grid::threads().map(u64::from).iter().product::<u64>();
    let start = core::ptr::with_exposed_provenance_mut::<u64>(plan.address as usize);
    let mut index = grid::global_index();
    while index < plan.bytes / 8 {
        // SAFETY: the host has allocated so many bytes there, and this thread alone writes the word.
        unsafe { start.add(index as usize).write(pattern(index)) };
        index += all;
    }
    0
}

/// Sends `message` to be looked at and forgotten, so many times.
#[inline(never)]
fn discard(message: &[u8], times: u64) -> i32 {
    let client = client();
    for _ in 0..times {
        let mut answer = [0; 8];
        let mut sink = Prefix::new(&mut answer);
        let result = client.exchange::<Discard>(message, &mut sink);
        let length = sink.length();
        if result.is_err() || length != 8 || u64::from_le_bytes(answer) != message.len() as u64 {
            return wrong(result);
        }
    }
    0
}

#[inline(never)]
pub(crate) fn send(plan: &Plan) -> i32 {
    // SAFETY: the host has allocated and filled it; it is only read here.
    let message = unsafe { words(plan, 0, plan.bytes) };
    discard(bytemuck::cast_slice(message), plan.calls)
}

#[inline(never)]
pub(crate) fn stack(plan: &Plan) -> i32 {
    let mut block = [0; STACK_BLOCK / 8];
    for (index, word) in block.iter_mut().enumerate() {
        *word = pattern(index as u64);
    }
    discard(bytemuck::cast_slice(&block), plan.calls)
}

/// Sends `message`, marked as number `round`, and takes what comes back into `answer`.
#[inline(never)]
pub(crate) fn echo_once(
    client: &Client,
    message: &mut [u64],
    answer: &mut [u64],
    round: u64,
) -> Result<(), i32> {
    let last = message.len() - 1;
    (message[0], message[last]) = (round, !round);
    let length = size_of_val(message) as u64;
    let mut sink = Prefix::new(bytemuck::cast_slice_mut(answer));
    let result = client.exchange::<Echo>(bytemuck::cast_slice(message), &mut sink);
    let right = sink.length() == length && answer[0] == round && answer[last] == !round;
    if result.is_err() || !right {
        return Err(wrong(result));
    }
    Ok(())
}

#[inline(never)]
pub(crate) fn echo(me: Me, plan: &Plan) -> i32 {
    let bytes = plan.bytes;
    // SAFETY: the host has allocated and filled two parts for each thread, and these are its own.
    let (message, answer) = unsafe {
        (
            words(plan, echo_source(me.index, bytes), bytes),
            words(plan, echo_target(me.index, bytes), bytes),
        )
    };
    if message.is_empty() {
        return failure::ARGUMENTS;
    }
    let client = client();
    for round in 0..plan.calls {
        if let Err(failure) = echo_once(&client, message, answer, me.index << 32 | round) {
            return failure;
        }
    }
    // The places were filled with different words.
    if message == answer {
        0
    } else {
        failure::ANSWER
    }
}
