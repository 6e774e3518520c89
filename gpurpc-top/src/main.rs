//! `gpurpc-top [OPTIONS] IMAGE [ARGUMENTS]...`: runs an image in a process of its own and shows
//! what it asks of its host. Called by the name of one of LLVM's loaders, through a link, it is that
//! loader and shows nothing.
//!
//! | module | what is in it |
//! |---|---|
//! | `cli` | the command line |
//! | `parent` | the process that watches: starts the loader, shows tables or the dashboard |
//! | `child` | the loader's process: this program again |
//! | `attach` | watching a loader that somebody else has started |
//! | `dashboard` | the loop: keys, signals, snapshots in, frames out |
//! | `records` | tables, JSON and CSV, once or at intervals |
//! | `terminal`, `typed`, `pipes` | the terminal; what it sends for keys; what the child prints |
#![forbid(unsafe_code)]

mod attach;
mod child;
mod cli;
mod dashboard;
mod parent;
mod pipes;
mod records;
mod terminal;
mod typed;

use std::process::ExitCode;

use loader_core::links::{AMDHSA_LOADER, LLVM_LOADER, NVPTX_LOADER, called_by};

/// How the program calls itself.
const NAME: &str = "gpurpc-top";

fn main() -> ExitCode {
    if let Some(name) = called_by(&[NVPTX_LOADER, AMDHSA_LOADER, LLVM_LOADER]) {
        return child::loader(name);
    }
    let mut arguments = std::env::args_os().skip(1).peekable();
    if arguments.next_if(|first| first == child::MARK).is_some() {
        child::main(arguments)
    } else {
        parent::main(arguments.collect())
    }
}
