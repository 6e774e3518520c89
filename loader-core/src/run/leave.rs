//! The last steps of a process whose device may still be at work.

use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::signals;

/// Runs `f` and waits for it, but not longer than `limit`; without a limit where the system has no
/// thread left for it.
pub(super) fn within(limit: Duration, f: impl FnOnce() + Send + 'static) {
    let (done, finished) = sync_channel(1);
    // Whoever takes it runs it: a thread that could not be started has not.
    let task = Arc::new(Mutex::new(Some(f)));
    let take = |task: &Mutex<Option<_>>| task.lock().unwrap_or_else(PoisonError::into_inner).take();
    let theirs = Arc::clone(&task);
    let thread = thread::Builder::new().spawn(move || {
        if let Some(f) = take(&theirs) {
            f();
        }
        let _ = done.send(());
    });
    if thread.is_ok() {
        let _ = finished.recv_timeout(limit);
    } else if let Some(f) = take(&task) {
        f();
    }
}

/// Ends the process as the program has: by SIGABRT if it has aborted.
pub(super) fn depart(aborted: bool, code: u8) -> ! {
    if aborted {
        signals::abort();
    }
    leave(code)
}

/// Ends the process with no word to the device: freeing its memory, resetting or unloading it
/// blocks while a kernel runs, and so might what libraries do at an orderly exit. What is to be seen
/// of standard output has been flushed by the caller.
pub fn leave(code: u8) -> ! {
    // SAFETY: `_exit` has no preconditions.
    unsafe { libc::_exit(code.into()) }
}
