//! The C programs of `examples/c` on the CPU device, over the three layouts of the C header.

use std::process::Command;

mod c_programs;

const LOADER: c_programs::Loader = c_programs::Loader {
    command: || Command::new(env!("CARGO_BIN_EXE_loader-cpu")),
    images: ("x86_64", "so"),
    threads: 7,
    lanes: 1,
};

#[test]
fn hello_greets_over_every_layout() {
    for layout in ["line", "llvm", "llvm22"] {
        LOADER.greets(layout);
    }
}

#[test]
fn every_opcode_over_line() {
    LOADER.passes("line");
}

#[test]
fn every_opcode_over_llvm() {
    LOADER.passes("llvm");
}

#[test]
fn every_opcode_over_llvm_22() {
    LOADER.passes("llvm22");
}
