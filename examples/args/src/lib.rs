//! Prints what the host gave the program; its exit status is the number of arguments.
#![cfg_attr(any(target_arch = "nvptx64", target_arch = "amdgpu"), no_std)]

use rpc_device::{Program, entry, println};

fn main(program: &Program) -> i32 {
    let argc = program.args().len();
    println!("argc = {argc}");
    for (i, arg) in program.args().enumerate() {
        println!("argv[{i}] = {arg}");
    }
    match program.var("FRANCE") {
        Some(value) => println!("FRANCE = {value}"),
        None => println!("FRANCE is not set"),
    }
    argc as i32
}

entry!(main);
