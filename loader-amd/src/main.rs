//! `loader-amd [OPTIONS] IMAGE [ARGUMENTS]...`: runs an amdgcn code object on an AMD device. So does a
//! link to it named `amdhsa-loader`.

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser;
use loader_amd::{Amd, diagnose};
use loader_core::cli::{Cli, Options, parse};
use loader_core::links::{AMDHSA_LOADER, called_by};
use loader_core::program::{fail, refuse, run_cli};

/// Runs a GPU image and serves its calls.
#[derive(Clone, Debug, Parser)]
#[command(version, about)]
struct Loader {
    /// Print agents, memory pools, targets and which links carry atomics, and run nothing.
    #[arg(long, conflicts_with = "command")]
    diagnose: bool,
    /// How it is run.
    #[command(flatten)]
    options: Options,
    /// The image (`-` is standard input), then what the program gets as its arguments.
    #[arg(required_unless_present = "diagnose", trailing_var_arg = true, value_names = ["IMAGE", "ARGUMENTS"], num_args = 1..)]
    command: Vec<OsString>,
}

fn main() -> ExitCode {
    let name = called_by(&[AMDHSA_LOADER]).unwrap_or("loader-amd");
    let Loader {
        diagnose: only,
        options,
        command,
    } = match parse(name, std::env::args_os().skip(1)) {
        Ok(loader) => loader,
        Err(usage) => return refuse(name, &usage),
    };
    if !only {
        return run_cli(name, &[&Amd], &Cli { options, command });
    }
    let found = diagnose(&loader_amd::Options {
        device: options.device,
        stack_size: None,
        runtime: options.hsa_runtime,
    });
    match found {
        Ok(text) => {
            // A reader that has gone away wants no more.
            let _ = std::io::stdout().write_all(text.as_bytes());
            ExitCode::SUCCESS
        }
        Err(error) => fail(name, &error),
    }
}
