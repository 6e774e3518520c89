//! The process that runs the image: this program again.

use std::ffi::OsString;
use std::process::ExitCode;

use loader_amd::Amd;
use loader_core::cli::{Cli, parse_as};
use loader_core::links::{AMDHSA_LOADER, NVPTX_LOADER};
use loader_core::program::{Backend, DeviceOptions, fail, refuse, run_cli};
use loader_core::run::{die_with_parent, run_serving};
use loader_cpu::Cpu;
use loader_nv::Nvidia;

use crate::NAME;
use crate::cli::{Top, USAGE};

/// The first argument of such a process.
pub(crate) const MARK: &str = "--as-loader";

/// Loaders, of which the image's kind chooses.
const BACKENDS: [&dyn Backend; 3] = [&Cpu, &Nvidia, &Amd];

/// What this process does if it is called by the name of one of LLVM's loaders.
pub(crate) fn loader(name: &'static str) -> ExitCode {
    let backends: &[&dyn Backend] = match name {
        NVPTX_LOADER => &[&Nvidia],
        AMDHSA_LOADER => &[&Amd],
        _ => &BACKENDS,
    };
    loader_core::program::main(name, backends)
}

/// What this process does.
pub(crate) fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let top: Top = match parse_as(NAME, USAGE, arguments) {
        Ok(top) => top,
        Err(usage) => return refuse(NAME, &usage),
    };
    let Top {
        demo,
        watched,
        mut options,
        command,
        ..
    } = top;
    if !demo {
        return run_cli(NAME, &BACKENDS, &Cli { options, command });
    }
    if let Err(error) = die_with_parent(&options) {
        return fail(NAME, &error);
    }
    if options.blocks == 1 && options.threads == 1 {
        [options.blocks, options.threads] = gpurpc_demo::GRID;
    }
    let device = match gpurpc_demo::device(&DeviceOptions::from(&options)) {
        Ok(device) => Box::new(device),
        Err(error) => return fail(NAME, &error),
    };
    let mut command: Vec<OsString> = vec!["demo".into()];
    command.extend(watched.then(|| gpurpc_demo::WATCHED.into()));
    let install = gpurpc_demo::install;
    match run_serving(NAME, &options, &command, device, &[], install) {
        Ok(code) => ExitCode::from(code),
        Err(error) => fail(NAME, &error),
    }
}
