//! Every thread sends messages of 0 to MAX bytes (default 4096), and checks that they come back.
#![cfg_attr(any(target_arch = "nvptx64", target_arch = "amdgpu"), no_std)]

use rpc_device::procedure::Echo;
use rpc_device::{Program, Sink, entry, eprintln, exchange, grid};
const MOST: usize = 4096;

/// What byte number `index` of this thread's message of `length` bytes is.
fn content(length: usize, index: usize) -> u8 {
    (grid::global_index() as usize * 31 + length * 7 + index) as u8
}

/// Compares what comes back, chunk by chunk.
struct Check {
    length: usize,
    received: usize,
    right: bool,
}

impl Sink for Check {
    fn begin(&mut self, _lane: u32, length: u64) -> bool {
        length == self.length as u64
    }

    fn chunk(&mut self, _lane: u32, bytes: &[u8]) {
        for byte in bytes {
            self.right &= *byte == content(self.length, self.received);
            self.received += 1;
        }
    }
}

fn main(program: &Program) -> i32 {
    let Some(max @ ..=MOST) = program.arg(1).map_or(Some(MOST), |text| text.parse()) else {
        eprintln!("stream: the argument is a number of bytes up to {MOST}");
        return 1;
    };
    let (mut message, mut length) = ([0; MOST], 0);
    while length <= max {
        for (i, byte) in message[..length].iter_mut().enumerate() {
            *byte = content(length, i);
        }
        let mut check = Check {
            length,
            received: 0,
            right: true,
        };
        let result = exchange::<Echo>(&message[..length], &mut check);
        if result.is_err() || !check.right || check.received != length {
            eprintln!("stream: a message of {length} bytes came back wrong");
            return 1;
        }
        // Uneven steps, other ones for each lane, so that lanes are done at different times.
        length += 1 + length / 8 + grid::thread_index() as usize % 5;
    }
    0
}

entry!(main);
