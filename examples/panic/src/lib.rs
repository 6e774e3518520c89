//! The first thread of each block panics: the host prints the message and exits with 101.
#![cfg_attr(any(target_arch = "nvptx64", target_arch = "amdgpu"), no_std)]

use rpc_device::{Program, entry, grid, println};

fn main(program: &Program) -> i32 {
    let squares = [0, 1, 4];
    if grid::thread_index() == 0 {
        // Not known to the compiler: at least one argument, the image.
        let index = program.args().len() + 6;
        println!("{} squared is {}", index, squares[index]);
    }
    0
}

entry!(main);
