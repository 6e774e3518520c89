//! The process that starts the one that runs the image, and waits for it.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use gpurpc_top::table::table;
use loader_core::cli::parse;
use loader_core::exit;
use loader_core::program::{fail, refuse, say};
use loader_core::report::{self, Calls, Line};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, getpid, kill_process};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
use signal_hook::iterator::{Handle, Signals};
use signal_hook::low_level::emulate_default_handler;
use thiserror::Error;

use crate::cli::Top;
use crate::{NAME, child};

/// Why no child was run.
#[derive(Debug, Error)]
enum ParentError {
    #[error("standard input is a terminal, which no image comes from; name a file or use a pipe")]
    Terminal,
    #[error("the loader could not be started: {0}")]
    Start(io::Error),
    #[error("the loader could not be awaited: {0}")]
    Wait(io::Error),
}

/// Runs the image and shows the table.
pub(crate) fn main(arguments: Vec<OsString>) -> ExitCode {
    // The child parses the same arguments; what is wrong with them is said here.
    let top: Top = match parse(NAME, arguments.clone()) {
        Ok(top) => top,
        Err(usage) => return refuse(NAME, &usage),
    };
    let result = input(&top).and_then(|input| run(arguments, input));
    match result {
        Ok((status, calls)) => {
            if let Some(calls) = calls {
                // Nobody reads it where standard error is closed.
                let _ = io::stderr().write_all(table(&calls).as_bytes());
            }
            ExitCode::from(code(status))
        }
        Err(error) => fail(NAME, &error),
    }
}

/// The child's exit code; for one that a signal ended, what a shell makes of it.
fn code(status: ExitStatus) -> u8 {
    match (status.code(), status.signal()) {
        (Some(code), _) => code as u8,
        (None, Some(number)) => {
            say(NAME, &format!("the loader was ended by signal {number}"));
            exit::signal(number)
        }
        (None, None) => exit::LOADER,
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

/// Starts the child and waits for it; gives its counters if it has left any.
fn run(
    arguments: Vec<OsString>,
    input: Stdio,
) -> Result<(ExitStatus, Option<Vec<Calls>>), ParentError> {
    // Before the child is there: a signal that comes now is passed on once it is.
    let signals = Forward::watch().map_err(ParentError::Start)?;
    let (mut child, report) = start(arguments, input).map_err(ParentError::Start)?;
    signals.to(&child);
    let calls = read(report);
    let status = child.wait().map_err(ParentError::Wait)?;
    signals.end();
    Ok((status, calls))
}

fn start(arguments: Vec<OsString>, input: Stdio) -> io::Result<(Child, File)> {
    let (report, written) = pipe_with(PipeFlags::CLOEXEC)?;
    // The child has it; nothing else is started from here.
    fcntl_setfd(&written, FdFlags::empty())?;
    let child = Command::new(std::env::current_exe()?)
        .arg(child::MARK)
        .arg(format!("--report=/dev/fd/{}", written.as_raw_fd()))
        .arg(format!("--die-with-parent={}", getpid().as_raw_nonzero()))
        .args(arguments)
        .stdin(input)
        // A terminal's interrupt comes to this process alone, which passes it on.
        .process_group(0)
        .spawn()?;
    drop::<OwnedFd>(written);
    Ok((child, report.into()))
}

/// The counters, once the child has written its last line; `None` if it ends without.
fn read(report: File) -> Option<Vec<Calls>> {
    let mut calls = Vec::new();
    for line in BufReader::new(report).lines() {
        match report::parse(&line.ok()?).ok()? {
            Line::Start(_) => {}
            Line::Opcode(opcode) => calls.push(opcode),
            Line::End(_) => return Some(calls),
        }
    }
    None
}

/// Passes signals on to the child, which stops and goes on with this process.
struct Forward {
    to: Arc<Mutex<Target>>,
    handle: Handle,
}

#[derive(Default)]
struct Target {
    child: Option<Pid>,
    /// Came before there was a child.
    early: Vec<i32>,
}

impl Target {
    fn pass(&mut self, number: i32) {
        let Some(child) = self.child else {
            self.early.push(number);
            return;
        };
        // It may have ended meanwhile.
        let send = |signal| {
            let _ = kill_process(child, signal);
        };
        match Signal::from_named_raw(number) {
            Some(Signal::TSTP) => {
                send(Signal::STOP);
                // And this process with it, as if it had not been asked.
                let _ = emulate_default_handler(number);
            }
            Some(signal) => {
                send(signal);
                // One that somebody has stopped would not hear of it.
                send(Signal::CONT);
            }
            None => {}
        }
    }
}

impl Forward {
    fn watch() -> io::Result<Self> {
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT])?;
        let handle = signals.handle();
        let to = Arc::new(Mutex::new(Target::default()));
        let target = Arc::clone(&to);
        thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || {
                for number in signals.forever() {
                    lock(&target).pass(number);
                }
            })?;
        Ok(Self { to, handle })
    }

    fn to(&self, child: &Child) {
        let mut target = lock(&self.to);
        target.child = Some(Pid::from_child(child));
        for number in std::mem::take(&mut target.early) {
            target.pass(number);
        }
    }

    /// To be called when the child has ended: its number may soon be another process's.
    fn end(&self) {
        lock(&self.to).child = None;
        self.handle.close();
    }
}

fn lock(target: &Mutex<Target>) -> std::sync::MutexGuard<'_, Target> {
    target.lock().unwrap_or_else(PoisonError::into_inner)
}
