//! `gpurpc-top [OPTIONS] IMAGE [ARGUMENTS]...`: runs an image in a process of its own and shows
//! what it asked of its host.
#![forbid(unsafe_code)]

mod child;
mod cli;
mod parent;

use std::process::ExitCode;

/// How the program calls itself.
const NAME: &str = "gpurpc-top";

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1).peekable();
    if arguments.next_if(|first| first == child::MARK).is_some() {
        child::main(arguments)
    } else {
        parent::main(arguments.collect())
    }
}
