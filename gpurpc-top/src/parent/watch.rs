//! A run under the dashboard.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use gpurpc_top::live::Live;
use gpurpc_top::source::{Health, Look, Source};
use gpurpc_top::state::output::Stream;
use gpurpc_top::state::{Ended, State, Watching};
use gpurpc_top::table::table;
use gpurpc_top::units::clock;
use loader_core::exit;
use rpc_stats::Snapshot;
use rustix::process::{Pid, Signal, WaitIdOptions, WaitIdStatus, kill_process_group};

use super::plain::complete;
use super::start::{Outputs, Report, read, start};
use super::{LAST_WORDS, ParentError, code, lock, source};
use crate::cli::Top;
use crate::dashboard::{Bell, Event, Left, Loop, Program};
use crate::pipes::Pipes;
use crate::terminal;

/// Lines of output that stay in the terminal.
const LAST: u64 = 20;
/// How long it may take to end when there is no terminal any more.
const ORDERLY: Duration = Duration::from_secs(2);

/// The child's process group, until it is reaped.
struct Group {
    pid: Pid,
    ended: Arc<AtomicBool>,
}

impl Group {
    fn send(&self, signal: Signal) {
        if !self.ended.load(Ordering::SeqCst) {
            // It may have ended just now; it is not reaped before the loop has ended.
            let _ = kill_process_group(self.pid, signal);
        }
    }
}

impl Program for Group {
    fn signal(&self, number: i32) {
        if let Some(signal) = Signal::from_named_raw(number) {
            self.send(signal);
            // One that somebody has stopped would not hear of it.
            self.send(Signal::CONT);
        }
    }

    fn kill(&self) {
        self.send(Signal::KILL);
    }

    fn stop(&self) {
        self.send(Signal::STOP);
    }

    fn go_on(&self) {
        self.send(Signal::CONT);
    }
}

/// What the child publishes, and once it has ended what it has reported: also of a run that was over
/// before anybody looked.
struct Both<'l> {
    live: Option<&'l mut Live>,
    report: Arc<Mutex<Option<Report>>>,
    latest: Option<Snapshot>,
    complete: bool,
}

impl Source for Both<'_> {
    fn look(&mut self) -> Look {
        // In this order: it is written when nothing more is published.
        let report = lock(&self.report).clone().filter(|_| !self.complete);
        let mut look = match &mut self.live {
            Some(live) => live.look(),
            None => Look {
                snapshot: None,
                health: Health::Blind("they are off (--stats off)".to_owned()),
            },
        };
        if look.snapshot.is_some() {
            self.latest.clone_from(&look.snapshot);
        }
        if let Some(report) = report {
            self.complete = true;
            look.snapshot = Some(complete(self.latest.as_ref(), report));
        }
        look
    }
}

/// Runs the image; gives the exit code.
pub(super) fn run(top: &Top, arguments: Vec<OsString>, input: Stdio) -> Result<u8, ParentError> {
    let (looped, bell) = Loop::new().map_err(ParentError::Start)?;
    let live = source(top);
    let more: &[&str] = if top.demo { &["--watched"] } else { &[] };
    let (mut child, report) =
        start(more, arguments, input, Outputs::Piped).map_err(ParentError::Start)?;
    let pipes = Pipes::default();
    drain(&mut child, &pipes).map_err(ParentError::Start)?;
    let report = collect(report).map_err(ParentError::Start)?;
    let group = Group {
        pid: Pid::from_child(&child),
        ended: Arc::new(AtomicBool::new(false)),
    };
    await_end(&group, bell, Arc::clone(&report)).map_err(ParentError::Start)?;
    let mut live = live.map(|live| live.started(child.id()));
    let watching = if top.demo {
        Watching::Demo
    } else {
        Watching::Child
    };
    let mut state = State::new(top.show.settings(), watching);
    let mut source = Both {
        live: live.as_mut(),
        report: Arc::clone(&report),
        latest: None,
        complete: false,
    };
    terminal::give_back_on_panic();
    let shown = catch_unwind(AssertUnwindSafe(|| {
        terminal::take()?;
        let mut palette = top.show.colours();
        let both = (&mut state, &mut palette);
        looped.run(both, &mut source, &pipes, &group, top.show.fps)
    }));
    terminal::give_back();
    if !matches!(shown, Ok(Ok(Left::Quit | Left::Interrupted))) {
        // There may still be something that runs, and nobody to see it.
        let number = match shown {
            Ok(Ok(Left::Signal(number))) => number,
            _ => signal_hook::consts::SIGHUP,
        };
        end(&group, number);
    }
    let status = child.wait().map_err(ParentError::Wait)?;
    super::remove(top, live.as_ref());
    let left = shown
        .map_err(|_| ParentError::Panicked)?
        .map_err(ParentError::Screen)?;
    if left != Left::HungUp {
        summarise(&state, lock(&report).as_ref());
    }
    Ok(match left {
        // Quitting is how a demo ends.
        Left::Quit if top.demo && state.has_quit() => 0,
        Left::Signal(number) => exit::signal(number),
        Left::HungUp => exit::signal(signal_hook::consts::SIGHUP),
        Left::Quit | Left::Interrupted => code(status),
    })
}

fn drain(child: &mut Child, pipes: &Pipes) -> io::Result<()> {
    if let Some(out) = child.stdout.take() {
        pipes.drain(Stream::Out, OwnedFd::from(out).into())?;
    }
    if let Some(err) = child.stderr.take() {
        pipes.drain(Stream::Err, OwnedFd::from(err).into())?;
    }
    Ok(())
}

/// Reads the report on a thread of its own, for a child that is stopped writes none.
fn collect(report: std::fs::File) -> io::Result<Arc<Mutex<Option<Report>>>> {
    let collected = Arc::new(Mutex::new(None));
    let theirs = Arc::clone(&collected);
    thread::Builder::new()
        .name("report".to_owned())
        .spawn(move || {
            *lock(&theirs) = read(report);
        })?;
    Ok(collected)
}

/// Rings when the child has ended; it is left to be reaped.
fn await_end(group: &Group, bell: Bell, report: Arc<Mutex<Option<Report>>>) -> io::Result<()> {
    let (pid, ended) = (group.pid, Arc::clone(&group.ended));
    let started = Instant::now();
    thread::Builder::new()
        .name("child".to_owned())
        .spawn(move || {
            // That it cannot be awaited is an end without a status.
            let status = super::ended(pid, WaitIdOptions::empty()).unwrap_or_default();
            ended.store(true, Ordering::SeqCst);
            let code = status.as_ref().and_then(WaitIdStatus::exit_status);
            let signal = status.as_ref().and_then(WaitIdStatus::terminating_signal);
            // What it has written last is on its way.
            let since = Instant::now();
            while lock(&report).is_none() && code.is_some() && since.elapsed() < LAST_WORDS {
                thread::sleep(Duration::from_millis(5));
            }
            let after = clock(started.elapsed().as_secs());
            let sentence = match (code, signal) {
                (Some(code), _) => format!("The program ended with status {code} after {after}"),
                (None, Some(number)) => {
                    format!("The loader was ended by signal {number} after {after}")
                }
                (None, None) => format!("The program ended after {after}"),
            };
            let ended = Ended {
                sentence,
                good: code == Some(0),
            };
            let failed = code == Some(exit::LOADER.into());
            bell.ring(Event::Ended { ended, failed });
        })?;
    Ok(())
}

/// Ends the child by `number`, or if it takes its time by force.
fn end(group: &Group, number: i32) {
    group.signal(number);
    let since = Instant::now();
    while !group.ended.load(Ordering::SeqCst) {
        if since.elapsed() > ORDERLY {
            group.kill();
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// What stays in the terminal: the last lines of output, and the table.
fn summarise(state: &State, report: Option<&Report>) {
    let (output, _) = state.output();
    let (mut out, mut err) = (io::stdout().lock(), io::stderr().lock());
    let first = output.end().saturating_sub(LAST);
    for line in output.lines_from(first) {
        // Nobody reads it where they are closed.
        let _ = match line.stream {
            Stream::Out => writeln!(out, "{}", line.text),
            Stream::Err => writeln!(err, "{}", line.text),
        };
    }
    if report.is_some() || state.has_data() {
        let _ = err.write_all(table(&state.shown().snapshot.opcodes).as_bytes());
    }
}
