//! Every thread asks the host N times (default 1,000,000) to add one, and checks each answer.
#![cfg_attr(any(target_arch = "nvptx64", target_arch = "amdgpu"), no_std)]

use rpc_device::procedure::Increment;
use rpc_device::{Program, call, entry, eprintln};

fn main(program: &Program) -> i32 {
    let Some(count) = program
        .arg(1)
        .map_or(Some(1_000_000), |text| text.parse::<u64>())
    else {
        eprintln!("increment: the argument is a number of calls");
        return 1;
    };
    for i in 0..count {
        // Each lane of a warp sends its own number; all of them travel together.
        if call::<Increment>(&i) != Ok(i + 1) {
            eprintln!("increment: call {i} gave a wrong answer");
            return 1;
        }
    }
    0
}

entry!(main);
