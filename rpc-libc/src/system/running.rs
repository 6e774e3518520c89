//! The commands that run: what is left of them when a run ends is told to end too.
//!
//! Whoever reads this process's output would wait for them else, and a command that the run's end
//! has made pointless would go on unseen.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::sync::Mutex;

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process, waitid, waitpid,
};

use crate::files::lock;

/// The commands that were started and not waited for.
#[derive(Debug, Default)]
pub(super) struct Running(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// None of them was reaped: their numbers are nobody else's.
    commands: BTreeSet<i32>,
    /// No more is started.
    over: bool,
}

impl Running {
    /// Runs a command to its end.
    pub(super) fn run(&self, command: &mut Command) -> io::Result<ExitStatus> {
        let pid = {
            let mut state = lock(&self.0);
            if state.over {
                return Err(io::ErrorKind::Interrupted.into());
            }
            // Dropped without a wait, it goes on.
            let pid = command.spawn()?.id().cast_signed();
            state.commands.insert(pid);
            pid
        };
        let child = Pid::from_raw(pid).ok_or(io::ErrorKind::NotFound)?;
        // First without reaping: it goes from the list before its number can be another one's.
        let looked = loop {
            let seen = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            match waitid(WaitId::Pid(child), seen) {
                Err(rustix::io::Errno::INTR) => {}
                result => break result,
            }
        };
        let mut state = lock(&self.0);
        state.commands.remove(&pid);
        looked?;
        let status = waitpid(Some(child), WaitOptions::empty())?;
        let (_, status) = status.ok_or(io::ErrorKind::NotFound)?;
        Ok(ExitStatus::from_raw(status.as_raw()))
    }

    /// Tells all commands, and what they have started and wait for, to end. Nothing is started any
    /// more.
    pub(super) fn end(&self) {
        let mut state = lock(&self.0);
        state.over = true;
        for command in &state.commands {
            let mut tree = Vec::new();
            stop(*command, &mut tree);
            // What handles the signal goes on to do so.
            for signal in [Signal::TERM, Signal::CONT] {
                for process in &tree {
                    let _ = kill_process(*process, signal);
                }
            }
        }
    }
}

/// Stops a process and all below it: from the top, so that none of them starts another, and what
/// ends meanwhile keeps its number, since its parent does not reap it.
fn stop(process: i32, tree: &mut Vec<Pid>) {
    let Some(pid) = Pid::from_raw(process).filter(|pid| !tree.contains(pid)) else {
        return;
    };
    if kill_process(pid, Signal::STOP).is_err() {
        return;
    }
    tree.push(pid);
    // Not every kernel has these lists: then only the command itself ends.
    for thread in fs::read_dir(format!("/proc/{process}/task"))
        .into_iter()
        .flatten()
        .flatten()
    {
        let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        for child in children
            .split_whitespace()
            .filter_map(|child| child.parse().ok())
        {
            stop(child, tree);
        }
    }
}
