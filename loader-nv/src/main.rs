//! `loader-nv [OPTIONS] IMAGE [ARGUMENTS]...`: runs PTX or a cubin on an NVIDIA device.

use std::process::ExitCode;

fn main() -> ExitCode {
    loader_core::program::main("loader-nv", &[&loader_nv::Nvidia])
}
