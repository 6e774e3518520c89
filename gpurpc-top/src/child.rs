//! The process that runs the image: this program again.

use std::ffi::OsString;
use std::process::ExitCode;

use loader_amd::Amd;
use loader_core::cli::{Cli, parse};
use loader_core::program::{Backend, DeviceOptions, fail, refuse, run_cli, run_on};
use loader_cpu::Cpu;
use loader_nv::Nvidia;

use crate::NAME;
use crate::cli::Top;

/// The first argument of such a process.
pub(crate) const MARK: &str = "--as-loader";

/// Loaders, of which the image's kind chooses.
const BACKENDS: [&dyn Backend; 3] = [&Cpu, &Nvidia, &Amd];

/// What this process does.
pub(crate) fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let top: Top = match parse(NAME, arguments) {
        Ok(top) => top,
        Err(usage) => return refuse(NAME, &usage),
    };
    let Top {
        demo,
        mut options,
        command,
        ..
    } = top;
    if !demo {
        return run_cli(NAME, &BACKENDS, &Cli { options, command });
    }
    if options.blocks == 1 && options.threads == 1 {
        [options.blocks, options.threads] = gpurpc_demo::GRID;
    }
    match gpurpc_demo::device(&DeviceOptions::from(&options)) {
        Ok(device) => run_on(NAME, &options, &["demo".into()], Box::new(device)),
        Err(error) => fail(NAME, &error),
    }
}
