//! A run without a dashboard: what the program prints as it comes, then what it asked for.

use std::ffi::OsString;
use std::process::Stdio;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use gpurpc_top::source::Source;
use loader_core::program::complain;
use rpc_stats::{OpcodeStats, RunEnd, Snapshot};
use rustix::process::{Pid, WaitIdOptions};

use super::forward::Forward;
use super::start::{Outputs, Report, read, start};
use super::{LAST_WORDS, ParentError, code, ended, source};
use crate::NAME;
use crate::cli::Top;
use crate::records::Records;

/// How often the statistics are looked at.
const LOOK: Duration = Duration::from_millis(100);

/// Runs the image; gives the exit code.
pub(super) fn run(top: &Top, arguments: Vec<OsString>, input: Stdio) -> Result<u8, ParentError> {
    let mut records = Records::new(&top.show, true)?;
    // Before the child is there: a signal that comes now is passed on once it is.
    let signals = Forward::watch().map_err(ParentError::Start)?;
    let outputs = if Records::take_stdout(&top.show) {
        Outputs::Moved
    } else {
        Outputs::Inherited
    };
    let live = source(top);
    let (mut child, report) = start(&[], arguments, input, outputs).map_err(ParentError::Start)?;
    signals.to(&child);
    let (sender, receiver) = channel();
    thread::Builder::new()
        .name("report".to_owned())
        .spawn(move || sender.send(read(report)))
        .map_err(ParentError::Start)?;
    let mut live = live.map(|live| live.started(child.id()));
    let mut look = |records: &mut Records| {
        if let Some(snapshot) = live.as_mut().and_then(|live| live.look().snapshot) {
            records.observe(snapshot);
        }
    };
    let mut written = Ok(());
    // What it has left behind may have its outputs open for long.
    let (pid, mut gone) = (Pid::from_child(&child), None);
    let report = loop {
        match receiver.recv_timeout(records.pause(LOOK)) {
            Ok(report) => break report,
            Err(RecvTimeoutError::Disconnected) => break None,
            Err(RecvTimeoutError::Timeout) => {
                look(&mut records);
                written = written.and(records.tick());
                let status = ended(pid, WaitIdOptions::NOHANG).map_err(ParentError::Wait)?;
                gone = gone.or(status.map(|_| Instant::now()));
                if gone.is_some_and(|since| since.elapsed() > LAST_WORDS) {
                    break None;
                }
            }
        }
    };
    ended(pid, WaitIdOptions::empty()).map_err(ParentError::Wait)?;
    // In this order: its number is its own until it is reaped.
    signals.end();
    let status = child.wait().map_err(ParentError::Wait)?;
    look(&mut records);
    super::remove(top, live.as_ref());
    if let Some(report) = report {
        records.observe(complete(records.latest(), report));
        written = written.and(records.finish());
    } else {
        // It was killed: what was written is whole all the same.
        written = written.and(records.close());
    }
    match (code(status), written) {
        (0, Err(error)) => Err(error.into()),
        // The program's own word counts for more.
        (code, Err(error)) => {
            complain(NAME, &error);
            Ok(code)
        }
        (code, Ok(())) => Ok(code),
    }
}

/// What is known at the end: the report's numbers, which are complete, and what the last snapshot
/// has beyond them.
pub(super) fn complete(latest: Option<&Snapshot>, report: Report) -> Snapshot {
    let mut snapshot = latest.cloned().unwrap_or_default();
    for calls in report.calls {
        let opcodes = &mut snapshot.opcodes;
        let known = opcodes.iter().position(|opcode| opcode.name == calls.name);
        let at = known.unwrap_or_else(|| {
            opcodes.push(OpcodeStats {
                name: calls.name,
                ..OpcodeStats::default()
            });
            opcodes.len() - 1
        });
        let counted = &mut opcodes[at];
        counted.calls = calls.calls;
        counted.lanes = calls.lanes;
        counted.bytes_in = calls.bytes_in;
        counted.bytes_out = calls.bytes_out;
        counted.errors = calls.errors;
    }
    snapshot.end = Some(RunEnd {
        code: report.end.code,
        cancelled: report.end.cancelled,
    });
    snapshot
}
