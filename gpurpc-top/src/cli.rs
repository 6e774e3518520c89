//! The command line.

use std::ffi::OsString;

use clap::Parser;
use loader_core::cli::Options;

/// Runs a GPU image and shows what it asks of its host.
#[derive(Clone, Debug, Parser)]
#[command(version, about)]
pub(crate) struct Top {
    /// Print a table when the run has ended (as is done without it, too: there is no dashboard
    /// yet).
    #[arg(long)]
    pub(crate) once: bool,
    /// Run a program that is linked in, on the CPU device, for about two seconds.
    #[arg(long, conflicts_with = "command")]
    pub(crate) demo: bool,
    /// How it is run.
    #[command(flatten)]
    pub(crate) options: Options,
    /// The image (`-` is standard input), then what the program gets as its arguments.
    #[arg(required_unless_present = "demo", trailing_var_arg = true, value_names = ["IMAGE", "ARGUMENTS"], num_args = 1..)]
    pub(crate) command: Vec<OsString>,
}
