//! The process that starts the one that runs the image, and waits for it.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::iter;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use clap::CommandFactory;
use gpurpc_top::live::Live;
use loader_core::cli::{Stats, Usage, parse_as};
use loader_core::exit;
use loader_core::outputs::{self, OutputError};
use loader_core::program::{bear_file_size_limit, fail, refuse, say};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, waitid};
use thiserror::Error;

use crate::cli::{Action, OUTPUT, Top, USAGE};
use crate::records::RecordError;
use crate::{NAME, attach, terminal};

mod forward;
mod plain;
mod start;
mod watch;

/// How long the child's last words are awaited: a process that it has left may hold its outputs.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Why no child was run, or not watched to its end.
#[derive(Debug, Error)]
pub(crate) enum ParentError {
    #[error("standard input is a terminal, which no image comes from; name a file or use a pipe")]
    Terminal,
    #[error("the loader could not be started: {0}")]
    Start(io::Error),
    #[error("the loader could not be awaited: {0}")]
    Wait(io::Error),
    #[error("the terminal cannot be used ({0}); --once does without")]
    Screen(io::Error),
    #[error("the dashboard failed, which is a mistake in this program; the run was ended")]
    Panicked,
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// Does what the command line says.
pub(crate) fn main(arguments: Vec<OsString>) -> ExitCode {
    // The child parses the same arguments; what is wrong with them is said here.
    let top: Top = match parse_as(NAME, USAGE, arguments.clone()) {
        Ok(top) => top,
        Err(usage) => return refuse(NAME, &with_ways(usage, arguments)),
    };
    match &top.action {
        Some(Action::Attach(attach)) => return attach::main(attach),
        Some(Action::Completions { shell }) => return completions(*shell),
        None => {}
    }
    let limited = bear_file_size_limit().map_err(ParentError::Start);
    let checked = limited.and_then(|()| check(&top));
    let result = checked.and_then(|()| input(&top)).and_then(|input| {
        if has_screen() && !top.show.is_plain() {
            watch::run(&top, arguments, input)
        } else {
            plain::run(&top, arguments, input)
        }
    });
    result.map_or_else(|error| fail(NAME, &error), ExitCode::from)
}

/// Before any file is written, here or by the child.
fn check(top: &Top) -> Result<(), ParentError> {
    let image = top.command.first().map(OsString::as_os_str);
    let output = top.show.output.as_deref().map(|path| (OUTPUT, path));
    Ok(outputs::check(image, &top.options, output.as_slice())?)
}

/// What is wrong with `arguments`; where only an image is missing, what does without one.
fn with_ways(usage: Usage, arguments: Vec<OsString>) -> Usage {
    let demo = iter::once("--demo".into()).chain(arguments);
    if matches!(usage, Usage::Wrong(_)) && parse_as::<Top>(NAME, USAGE, demo).is_ok() {
        return Usage::Wrong(
            "name an IMAGE to run; --demo runs a program that is linked in, attach watches a loader that \
             runs already (--help lists the options)"
                .to_owned(),
        );
    }
    usage
}

/// Whether a dashboard can be drawn and steered.
pub(crate) fn has_screen() -> bool {
    let keys = || terminal::Keys::open().is_ok();
    // One that says nothing of itself understands nothing.
    let term = std::env::var_os("TERM");
    let dumb = term.is_none_or(|term| term.is_empty() || term == "dumb");
    io::stdout().is_terminal() && !dumb && keys()
}

fn completions(shell: clap_complete::Shell) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Top::command(), NAME, &mut script);
    // A reader that has gone away wants no more.
    let _ = io::stdout().write_all(&script);
    ExitCode::SUCCESS
}

/// The signal of `abort`.
const ABORT: i32 = Signal::ABORT.as_raw();

/// The child's exit code; for one that a signal ended, what a shell makes of it.
fn code(status: ExitStatus) -> u8 {
    match (status.code(), status.signal()) {
        (Some(code), _) => code as u8,
        // So ends a loader whose program aborts; of an own reason it has spoken itself.
        (None, Some(ABORT)) => exit::signal(ABORT),
        (None, Some(number)) => {
            say(NAME, &format!("the loader was ended by signal {number}"));
            exit::signal(number)
        }
        (None, None) => exit::LOADER,
    }
}

/// How the child has ended, if it has, or once it has; it is left to be reaped.
fn ended(pid: Pid, how: WaitIdOptions) -> io::Result<Option<WaitIdStatus>> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | how;
    loop {
        match waitid(WaitId::Pid(pid), options) {
            Err(Errno::INTR) => {}
            result => return Ok(result?),
        }
    }
}

/// The child's standard input. A terminal's is not for it: in the terminal's background, it would
/// be stopped when it reads.
fn input(top: &Top) -> Result<Stdio, ParentError> {
    if !io::stdin().is_terminal() {
        Ok(Stdio::inherit())
    } else if top.command.first().is_some_and(|image| image == "-") {
        Err(ParentError::Terminal)
    } else {
        Ok(Stdio::null())
    }
}

/// Whether the child's file is kept for this process only: so that what it publishes last is there
/// however short its run is.
fn keeps(top: &Top) -> bool {
    top.options.stats.is_none() && !top.options.keep_stats
}

/// Where the statistics of the child will be, which is still to be started; `None` if it is to write
/// none.
fn source(top: &Top) -> Option<Live> {
    let path = match &top.options.stats {
        Some(Stats::Off) => return None,
        Some(Stats::At(path)) => Some(path.clone()),
        None => None,
    };
    Some(Live::of_next(path))
}

/// Removes the child's file, if nobody else is to have it.
fn remove(top: &Top, live: Option<&Live>) {
    if keeps(top)
        && let Some(path) = live.and_then(Live::path)
    {
        // It is of no use any more, but does no harm either.
        let _ = std::fs::remove_file(path);
    }
}

/// Each holder leaves what it guards whole, also one that panics.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_that_a_shell_makes() {
        // As the system encodes them: a code in the second byte, a signal in the first, a core.
        for (status, expected) in [(0, 0), (7 << 8, 7), (9, 137), (6, 134), (6 | 0x80, 134)] {
            assert_eq!(code(ExitStatus::from_raw(status)), expected);
        }
    }
}
