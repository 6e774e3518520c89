//! `loader-cpu [OPTIONS] IMAGE [ARGUMENTS]...`: runs an x86-64 shared object on the CPU device.

use std::process::ExitCode;

fn main() -> ExitCode {
    loader_core::program::main("loader-cpu", &[&loader_cpu::Cpu])
}
