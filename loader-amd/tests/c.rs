//! The C programs of `examples/c` on the emulated GPU, in wavefronts of 32 lanes and of 64.

use std::process::Command;

#[path = "../../loader-cpu/tests/c_programs/mod.rs"]
mod c_programs;

/// A whole wavefront of 32 lanes and a part of one in each block.
const LOADER: c_programs::Loader = c_programs::Loader {
    command: || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_loader-amd"));
        command
            .args(["--device", "emu"])
            .env("GPURPC_EMU_QUIET", "1");
        command
    },
    images: ("amdgcn-gfx1100", "elf"),
    threads: 40,
    lanes: 32,
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

#[test]
fn every_opcode_in_wavefronts_of_64() {
    for layout in ["line-wave64", "llvm-wave64"] {
        LOADER.passes(layout);
    }
}
