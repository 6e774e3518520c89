//! The C programs of `examples/c` on an NVIDIA GPU, as PTX and, where they were built, as cubins.
//!
//! Left out unless `GPURPC_GPU=1` says that there is a GPU. `GPURPC_LOADER_NV` and `GPURPC_IMAGES` say where
//! the loader and the images are on another machine than the one that built this: there the bundle has it
//! as `bin/c-programs`.

use std::process::Command;

#[path = "../../loader-cpu/tests/c_programs/mod.rs"]
mod c_programs;

use c_programs::Loader;

/// A whole warp and a part of one in each block.
const PTX: Loader = Loader {
    command: || {
        let own = || env!("CARGO_BIN_EXE_loader-nv").into();
        Command::new(std::env::var_os("GPURPC_LOADER_NV").unwrap_or_else(own))
    },
    images: ("nvptx64", "ptx"),
    threads: 40,
    lanes: 32,
};

const CUBIN: Loader = Loader {
    images: ("nvptx64", "cubin"),
    ..PTX
};

/// Whether there is a GPU; says so if not.
fn gpu() -> bool {
    use std::io::Write as _;
    let there = std::env::var_os("GPURPC_GPU").is_some_and(|value| value == "1");
    if !there {
        // Past the capture of the output of tests that pass.
        let _ = writeln!(
            std::io::stderr(),
            "a test of C programs was left out: it needs an NVIDIA GPU (GPURPC_GPU=1 says that there is one)"
        );
    }
    there
}

#[test]
fn hello_greets_over_every_layout() {
    if gpu() {
        for layout in ["line", "llvm", "llvm22"] {
            PTX.greets(layout);
        }
    }
}

#[test]
fn constructors_and_destructors_run() {
    if gpu() {
        PTX.constructs();
        if CUBIN.has("c-constructors-llvm") {
            CUBIN.constructs();
        }
    }
}

#[test]
fn every_opcode_over_line() {
    if gpu() {
        PTX.passes("line");
    }
}

#[test]
fn every_opcode_over_llvm() {
    if gpu() {
        PTX.passes("llvm");
    }
}

#[test]
fn every_opcode_over_llvm_22() {
    if gpu() {
        PTX.passes("llvm22");
    }
}

#[test]
fn every_opcode_in_a_cubin() {
    if gpu() && CUBIN.has("c-opcodes-llvm") {
        CUBIN.passes("llvm");
        CUBIN.passes("line");
    }
}
