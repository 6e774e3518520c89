//! Signals, passed on to the child's process group.

use std::io;
use std::process::Child;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use loader_core::program::ONE_INTERRUPT;
use rustix::process::{Pid, Signal, kill_process_group};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
use signal_hook::iterator::{Handle, Signals};
use signal_hook::low_level::emulate_default_handler;

use super::lock;

/// Passes signals on to the child, which stops and goes on with this process.
pub(super) struct Forward {
    to: Arc<Mutex<Target>>,
    handle: Handle,
}

#[derive(Default)]
struct Target {
    child: Option<Pid>,
    interrupted: Option<Instant>,
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
            let _ = kill_process_group(child, signal);
        };
        match Signal::from_named_raw(number) {
            Some(Signal::TSTP) => {
                send(Signal::STOP);
                // And this process with it, as if it had not been asked.
                let _ = emulate_default_handler(number);
            }
            Some(signal) => {
                let mut kills = false;
                if signal == Signal::INT {
                    // Who asks twice does not want to wait.
                    let first = self.interrupted.get_or_insert_with(Instant::now);
                    kills = first.elapsed() > ONE_INTERRUPT;
                }
                send(if kills { Signal::KILL } else { signal });
                // One that somebody has stopped would not hear of it.
                send(Signal::CONT);
            }
            None => {}
        }
    }
}

impl Forward {
    pub(super) fn watch() -> io::Result<Self> {
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGQUIT, SIGTSTP, SIGCONT])?;
        // nohup means what it says.
        if !is_ignored(SIGHUP) {
            signals.add_signal(SIGHUP)?;
        }
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

    pub(super) fn to(&self, child: &Child) {
        let mut target = lock(&self.to);
        target.child = Some(Pid::from_child(child));
        for number in std::mem::take(&mut target.early) {
            target.pass(number);
        }
    }

    /// To be called when the child has ended: its number may soon be another process's.
    pub(super) fn end(&self) {
        lock(&self.to).child = None;
        self.handle.close();
    }
}

/// Whether this process was started with that signal ignored, as far as the system tells.
fn is_ignored(number: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (number - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn who_interrupts_twice_kills() {
        let mut child = Command::new("sh")
            .args(["-c", "trap '' INT; echo; exec sleep 1000"])
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let mut said = String::new();
        let output = child.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut said).unwrap();
        let mut target = Target {
            child: Some(Pid::from_child(&child)),
            ..Target::default()
        };
        // One may be told twice.
        target.pass(SIGINT);
        target.pass(SIGINT);
        assert_eq!(child.try_wait().unwrap(), None);
        thread::sleep(ONE_INTERRUPT * 2);
        target.pass(SIGINT);
        assert_eq!(child.wait().unwrap().signal(), Some(9));
    }
}
