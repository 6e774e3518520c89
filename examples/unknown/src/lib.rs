//! Calls a procedure that nobody has registered on the host, and prints the error it gets back.
#![cfg_attr(any(target_arch = "nvptx64", target_arch = "amdgpu"), no_std)]

use rpc_device::{Opcode, Procedure, Program, call, entry, println};

/// A procedure of one's own: an opcode, a name, the two types.
struct Nobody;

impl Procedure for Nobody {
    const OPCODE: Opcode = Opcode::user(0x2A);
    const NAME: &'static str = "nobody";
    type Request = u32;
    type Reply = u32;
}

fn main(_program: &Program) -> i32 {
    match call::<Nobody>(&7) {
        Ok(answer) => println!("somebody answered: {answer}"),
        Err(error) => println!("{} {:?} failed: {error}", Nobody::NAME, Nobody::OPCODE),
    }
    0
}

entry!(main);
