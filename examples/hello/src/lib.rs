//! Every thread greets; the first one also prints the program's arguments.
#![cfg_attr(any(target_arch = "nvptx64", target_arch = "amdgpu"), no_std)]

use rpc_device::{Program, entry, grid, println};

fn main(program: &Program) -> i32 {
    println!(
        "hello from block {} thread {}",
        grid::block_index(),
        grid::thread_index()
    );

    if grid::global_index() == 0 {
        // The first argument is the image itself.
        for (i, arg) in program.args().enumerate().skip(1) {
            println!("arg {i}: {arg}");
        }
    }
    0
}

entry!(main);
