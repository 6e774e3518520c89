//! Starting the child.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use loader_core::report::{self, Calls, End, Line};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::getpid;
use signal_hook::consts::SIGCHLD;
use signal_hook::flag;

use crate::child;

/// Where what the child prints goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outputs {
    /// Where this process's goes.
    Inherited,
    /// Both to standard error: something else is on standard output.
    Moved,
    /// To this process.
    Piped,
}

/// Starts the child, with `more` before the arguments; gives what its report is read from.
pub(super) fn start(
    more: &[&str],
    arguments: Vec<OsString>,
    input: Stdio,
    outputs: Outputs,
) -> io::Result<(Child, File)> {
    // Who was started with this ignored, as below `trap '' CHLD`, does not hear how a child has ended.
    flag::register(SIGCHLD, Arc::default())?;
    let (report, written) = pipe_with(PipeFlags::CLOEXEC)?;
    // The child has it; nothing else is started from here.
    fcntl_setfd(&written, FdFlags::empty())?;
    let mut command = Command::new(std::env::current_exe()?);
    match outputs {
        Outputs::Inherited => {}
        Outputs::Moved => {
            command.stdout(io::stderr().as_fd().try_clone_to_owned()?);
        }
        Outputs::Piped => {
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
        }
    }
    let child = command
        .arg(child::MARK)
        .arg(format!("--report=/dev/fd/{}", written.as_raw_fd()))
        .arg(format!("--die-with-parent={}", getpid().as_raw_nonzero()))
        .args(more)
        .args(arguments)
        .stdin(input)
        // A terminal's interrupt comes to this process alone, which passes it on.
        .process_group(0)
        .spawn()?;
    drop::<OwnedFd>(written);
    Ok((child, report.into()))
}

/// What the child has counted, and how its program ended.
#[derive(Clone, Debug)]
pub(super) struct Report {
    pub(super) calls: Vec<Calls>,
    pub(super) end: End,
}

/// The report, once the child has written its last line; `None` if it ends without.
pub(super) fn read(report: File) -> Option<Report> {
    let mut calls = Vec::new();
    for line in BufReader::new(report).lines() {
        match report::parse(&line.ok()?).ok()? {
            Line::Start(_) => {}
            Line::Opcode(opcode) => calls.push(opcode),
            Line::End(end) => return Some(Report { calls, end }),
        }
    }
    None
}
