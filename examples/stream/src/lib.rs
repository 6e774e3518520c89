//! Every thread sends messages of 0 to MAX bytes (default 4096), and checks that they come back.
//! Those of 32 KiB and more travel by reference: they lie in memory that the host can copy.
#![cfg_attr(any(target_arch = "nvptx64", target_arch = "amdgpu"), no_std)]

use rpc_device::procedure::{Echo, Free, Malloc};
use rpc_device::{Prefix, Program, call, entry, eprintln, exchange, grid, notify};

const MOST: usize = 64 << 20;

/// What byte number `index` of this thread's message of `length` bytes is.
fn content(length: usize, index: usize) -> u8 {
    (grid::global_index() as usize * 31 + length * 7 + index) as u8
}

/// Sends `message` and gets it back into `answer`.
fn comes_back(message: &mut [u8], answer: &mut [u8]) -> bool {
    let length = message.len();
    for (i, (byte, other)) in message.iter_mut().zip(answer.iter_mut()).enumerate() {
        *byte = content(length, i);
        *other = !*byte;
    }
    let mut sink = Prefix::new(answer);
    let result = exchange::<Echo>(message, &mut sink);
    result.is_ok() && sink.length() == length as u64 && message == answer
}

fn main(program: &Program) -> i32 {
    let max: Option<usize> = program.arg(1).map_or(Some(4096), |text| text.parse());
    let Some(max) = max.filter(|&max| max <= MOST) else {
        eprintln!("stream: the argument is a number of bytes up to {MOST}");
        return 1;
    };
    let memory = call::<Malloc>(&(max as u64 * 2).max(1)).unwrap_or(0);
    if memory == 0 {
        eprintln!("stream: the device has no memory for two messages of {max} bytes");
        return 1;
    }
    let start = core::ptr::with_exposed_provenance_mut::<u8>(memory as usize);
    // SAFETY: the host has allocated twice `max` bytes there for this thread alone; they are written
    // before they are read.
    let memory = unsafe {
        start.write_bytes(0, max * 2);
        core::slice::from_raw_parts_mut(start, max * 2)
    };
    let ((messages, answers), mut length) = (memory.split_at_mut(max), 0);
    while length <= max {
        if !comes_back(&mut messages[..length], &mut answers[..length]) {
            eprintln!("stream: a message of {length} bytes came back wrong");
            return 1;
        }
        // Uneven steps, other ones for each lane, so that lanes are done at different times.
        length += 1 + length / 8 + grid::thread_index() as usize % 5;
    }
    let _ = notify::<Free>(&(start as u64));
    0
}

entry!(main);
