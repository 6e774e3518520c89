//! Interrupts: the first one ends the run in order, the second at once.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;
use signal_hook::iterator::{Handle, Signals};

/// What follows an interrupt so soon is still that one: `timeout` sends its signal to the process and then
/// to its group, which is the process again.
pub const ONE_INTERRUPT: Duration = Duration::from_millis(30);

/// The first of SIGINT and SIGTERM that has come.
#[derive(Debug)]
pub(crate) struct Interrupt {
    first: Arc<AtomicUsize>,
    /// The next one ends the process at once.
    armed: Arc<AtomicBool>,
    /// Ends the thread that waits for it.
    waiting: Handle,
}

impl Drop for Interrupt {
    /// There is no run any more that could end in order.
    fn drop(&mut self) {
        self.armed.store(true, Ordering::SeqCst);
        self.waiting.close();
    }
}

impl Interrupt {
    /// Watches from now on.
    pub(crate) fn watch() -> io::Result<Self> {
        let first = Arc::new(AtomicUsize::new(0));
        let armed = Arc::new(AtomicBool::new(false));
        for number in [SIGINT, SIGTERM] {
            let code = i32::from(crate::exit::signal(number));
            flag::register_conditional_shutdown(number, code, Arc::clone(&armed))?;
            flag::register_usize(number, Arc::clone(&first), number as usize)?;
        }
        let mut signals = Signals::new([SIGINT, SIGTERM])?;
        let waiting = signals.handle();
        let arm = Arc::clone(&armed);
        thread::Builder::new()
            .name("interrupts".to_owned())
            .spawn(move || {
                if signals.forever().next().is_some() {
                    thread::sleep(ONE_INTERRUPT);
                    arm.store(true, Ordering::SeqCst);
                }
            })?;
        Ok(Self {
            first,
            armed,
            waiting,
        })
    }

    /// The number of the signal, if one has come.
    pub(crate) fn number(&self) -> Option<i32> {
        match self.first.load(Ordering::Relaxed) {
            0 => None,
            number => Some(number as i32),
        }
    }
}

/// Ends this process by SIGABRT, whatever is done about that signal, if the system lets it; else this
/// returns (as for the first process of a container).
///
/// A core is made where `ulimit -c` allows one, as of any program. Where that is 0, none goes to a
/// program that collects cores either: the system would hand it all that host and device share.
pub(crate) fn abort() {
    use rustix::process::{DumpableBehavior, Resource, Signal, getrlimit, set_dumpable_behavior};
    if getrlimit(Resource::Core).current == Some(0) {
        // It ends in any case.
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
    let number = Signal::ABORT.as_raw();
    // SAFETY: the default action runs no code of ours; the set is a place for one and holds a valid
    // signal; raising a signal has no preconditions.
    unsafe {
        libc::signal(number, libc::SIG_DFL);
        let mut set = std::mem::MaybeUninit::<libc::sigset_t>::zeroed();
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), number);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, set.as_ptr(), std::ptr::null_mut());
        libc::raise(number);
    }
}

/// Makes writing beyond `ulimit -f` fail, which is then said, instead of ending the process.
///
/// # Errors
/// When the system does not let it.
pub fn bear_file_size_limit() -> io::Result<()> {
    flag::register(SIGXFSZ, Arc::default()).map(drop)
}

/// Text to a terminal from a process in its background is written, whatever `stty tostop` says:
/// nobody would let the process go on.
pub(crate) fn ignore_background_output() {
    // SAFETY: ignoring a signal runs no code of ours.
    unsafe { libc::signal(libc::SIGTTOU, libc::SIG_IGN) };
}
