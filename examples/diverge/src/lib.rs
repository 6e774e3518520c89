//! Every thread takes its own random way through calls, ROUNDS times (default 100): lanes of a
//! warp call together, apart, in bursts, and not at all. Each answer is checked.
#![cfg_attr(any(target_arch = "nvptx64", target_arch = "amdgpu"), no_std)]

use rpc_device::procedure::Increment;
use rpc_device::{Program, call, entry, eprintln, grid};

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

fn increment(value: u64) -> bool {
    call::<Increment>(&value) == Ok(value.wrapping_add(1))
}

fn main(program: &Program) -> i32 {
    let rounds: u64 = program.arg(1).and_then(|text| text.parse()).unwrap_or(100);
    let me = grid::global_index();
    let mut random = Random(me.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    for round in 0..rounds {
        let right = match random.below(4) {
            0 => true,
            1 => increment(me << 32 | round),
            2 => (0..2 + random.below(7)).all(|i| increment(random.below(1 << 40) + i)),
            _ if random.below(2) == 0 => increment(round) && increment(me),
            _ => increment(!round),
        };
        if !right {
            eprintln!("diverge: thread {me} got a wrong answer in round {round}");
            return 1;
        }
    }
    0
}

entry!(main);
