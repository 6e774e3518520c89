//! The first thread ends the program with status CODE while all others are busy calling the host.
#![cfg_attr(any(target_arch = "nvptx64", target_arch = "amdgpu"), no_std)]

use rpc_device::procedure::Increment;
use rpc_device::{Program, call, entry, eprintln, exit, grid};

/// The first thread alone calls `exit`; on AMD its whole wavefront does: threads of one that part do
/// not run side by side there, and the others never end by themselves.
const CALLERS: u64 = if cfg!(target_arch = "amdgpu") { 64 } else { 1 };

fn main(program: &Program) -> i32 {
    let Some(code) = program.arg(1).and_then(|text| text.parse::<i32>()) else {
        eprintln!("exit: the argument is the status to exit with");
        return 1;
    };
    if grid::global_index() < CALLERS {
        exit(code);
    }
    // Never ends by itself: when the host ends the run, a thread that waits for it ends too.
    let mut count = 0;
    loop {
        count = call::<Increment>(&count).unwrap_or(0);
    }
}

entry!(main);
