//! A poller's end.

use std::thread;
use std::time::{Duration, Instant};

use rpc_port::Transport;

use super::Poller;
use crate::observe::Observe;
use crate::shared::{DRAINING, RUNNING};

/// How long a conversation's client may take for its next step while the kernel still runs, many
/// round trips of any link. Nothing waits so long when the kernel has ended in order: then no
/// conversation is open.
const CLIENT: Duration = Duration::from_millis(10);
const NAP: Duration = Duration::from_micros(50);

impl<T: Transport + Send + Sync + 'static, O: Observe> Poller<T, O> {
    /// Serves what is complete, then gives up the rest: how many exchanges that were, and whether
    /// the time ran out.
    pub(super) fn drain(&mut self) -> (u64, bool) {
        let mut late = false;
        if self.shared.phase() <= DRAINING {
            debug_assert_ne!(self.shared.phase(), RUNNING);
            let deadline = self.shared.deadline();
            // New calls once only: a running kernel would never come to an end.
            self.observe.scan_begun(self.index as usize);
            self.serve_all();
            let mut progress = Instant::now();
            loop {
                self.observe.scan_begun(self.index as usize);
                let busy = self.resume_all();
                let now = Instant::now();
                if busy {
                    progress = now;
                }
                let (client, host) = self.waiting_for();
                let patient = host || client && now < progress + CLIENT;
                late = patient && now >= deadline;
                if !patient || late || self.shared.phase() > DRAINING {
                    break;
                }
                if !busy {
                    thread::park_timeout(NAP);
                }
            }
        }
        (self.cancel_all(), late)
    }
}
