//! `loader-nv [OPTIONS] IMAGE [ARGUMENTS]...`: runs PTX or a cubin on an NVIDIA device. So does a link to
//! it named `nvptx-loader`.

use std::process::ExitCode;

use loader_core::links::{NVPTX_LOADER, called_by};

fn main() -> ExitCode {
    let name = called_by(&[NVPTX_LOADER]).unwrap_or("loader-nv");
    loader_core::program::main(name, &[&loader_nv::Nvidia])
}
