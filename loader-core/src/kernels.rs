//! The kernels of one run, launched by a thread of its own: a launch may block until the kernel
//! has ended, and whoever waits for it could not tell it to stop.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::device::{Device, DeviceError, Grid, Kernel, Mailbox, StartForm};

/// How long the end of a kernel is awaited without sleep: as short kernels take.
const SPIN: Duration = Duration::from_micros(50);
/// The sleeps between two looks: long programs are not worth thousands of wake-ups a second.
const SLEEPS: (Duration, Duration) = (Duration::from_micros(10), Duration::from_millis(5));
/// What has run for some time may be seen to have ended this part of it later.
const LATE: u32 = 32;

/// How long to sleep until the next look at what has run for `elapsed`.
pub(crate) fn pause(elapsed: Duration) -> Duration {
    (elapsed / LATE).clamp(SLEEPS.0, SLEEPS.1)
}

/// What the kernels get, at device addresses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arguments {
    pub(crate) argc: i32,
    pub(crate) argv: u64,
    pub(crate) envp: u64,
    pub(crate) ret: u64,
    /// For a `_start` that takes one: see [`StartForm::Mailbox`].
    pub(crate) mailbox: Option<Mailbox>,
}

impl Arguments {
    /// `_start` with its arguments, for an image whose `_start` is of this form.
    pub(crate) fn start(&self, form: StartForm) -> Kernel {
        let Self {
            argc,
            argv,
            envp,
            ret,
            mailbox,
        } = *self;
        match (form, mailbox) {
            (StartForm::Mailbox { envp: takes }, Some(mailbox)) => Kernel::StartOver {
                argc,
                argv,
                envp: takes.then_some(envp),
                ret,
                mailbox,
            },
            _ => Kernel::Start {
                argc,
                argv,
                envp,
                ret,
            },
        }
    }
}

/// What a run launches.
#[derive(Clone, Debug)]
pub(crate) enum Launches {
    /// `_begin`, `_start` on the grid, `_end`.
    Program(Arguments),
    /// This kernel on the grid, and nothing else.
    Plain(String),
}

impl Launches {
    /// The program gets `mailbox`, if its `_start` takes one.
    pub(crate) fn reach(&mut self, mailbox: Option<Mailbox>) {
        if let Self::Program(arguments) = self {
            arguments.mailbox = mailbox;
        }
    }

    /// Where the program's value is found; a plain kernel has none.
    pub(crate) fn ret(&self) -> Option<u64> {
        match self {
            Self::Program(arguments) => Some(arguments.ret),
            Self::Plain(_) => None,
        }
    }
}

/// The kernels of a run, one after the other.
#[derive(Debug)]
pub(crate) struct Kernels {
    result: Receiver<Result<(), DeviceError>>,
    cancelled: Arc<AtomicBool>,
}

impl Kernels {
    /// Starts the first one.
    pub(crate) fn start(
        device: Arc<dyn Device>,
        launches: Launches,
        grid: Grid,
    ) -> io::Result<Self> {
        let (sender, result) = sync_channel(1);
        let cancelled = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&cancelled);
        thread::Builder::new()
            .name("kernels".to_owned())
            .spawn(move || {
                let result = all(&*device, &launches, grid, &flag);
                // Let go of the device first: whoever hears of the end may be the last to hold it.
                drop(device);
                // Nobody listens any more when the process is about to end.
                let _ = sender.send(result);
            })?;
        Ok(Self { result, cancelled })
    }

    /// How the kernels have ended, as soon as they have; `None` after `limit`.
    pub(crate) fn wait(&self, limit: Duration) -> Option<Result<(), DeviceError>> {
        match self.result.recv_timeout(limit) {
            Ok(result) => Some(result),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Err(DeviceError::Api {
                call: "the thread that launches kernels",
                reason: "it panicked".to_owned(),
            })),
        }
    }

    /// No further kernel is to be launched.
    pub(crate) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }
}

fn all(
    device: &dyn Device,
    launches: &Launches,
    grid: Grid,
    cancelled: &AtomicBool,
) -> Result<(), DeviceError> {
    let arguments = match launches {
        Launches::Program(arguments) => arguments,
        Launches::Plain(name) => {
            device.launch_plain(name, grid)?;
            return until_finished(device);
        }
    };
    let Arguments {
        argc, argv, envp, ..
    } = *arguments;
    let begin = Kernel::Begin { argc, argv, envp };
    let start = arguments.start(device.start_form());
    for (kernel, grid) in [(begin, Grid::ONE), (start, grid), (Kernel::End, Grid::ONE)] {
        let wanted = kernel == start || device.has_kernel(&kernel);
        if wanted && !cancelled.load(Ordering::Relaxed) {
            device.launch(&kernel, grid)?;
            until_finished(device)?;
        }
    }
    Ok(())
}

fn until_finished(device: &dyn Device) -> Result<(), DeviceError> {
    let started = Instant::now();
    while !device.finished()? {
        let elapsed = started.elapsed();
        if elapsed < SPIN {
            std::hint::spin_loop();
        } else {
            thread::sleep(pause(elapsed));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_with_the_run_and_stay_short() {
        let (us, ms) = (Duration::from_micros, Duration::from_millis);
        assert_eq!(pause(us(50)), us(10));
        assert_eq!(pause(ms(32)), ms(1));
        assert_eq!(pause(Duration::MAX), ms(5));
    }
}
