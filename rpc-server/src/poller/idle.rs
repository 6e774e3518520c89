//! What a poller does between passes.

use std::hint::spin_loop;
use std::sync::atomic::Ordering::{AcqRel, Relaxed, SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use rpc_port::Transport;

use super::Poller;
use crate::observe::Observe;
use crate::options::Poll;

/// Passes after traffic without a rest, some 20 us. More would keep callers on the same cores from
/// running.
const SPINS: u32 = 300;
/// How long after traffic a poller only lets others run between passes.
const HOT: Duration = Duration::from_millis(1);
/// The watcher's sleeps grow from the first to the second: with a timer slack of 50 us that is a
/// look each 380 us, and so 190 us of latency on average for the first call. A wake-up costs some
/// 5 us of a processor, in virtual machines several times that: far more than the look.
const SLEEPS: (Duration, Duration) = (Duration::from_micros(25), Duration::from_micros(330));
/// The sleeps of [`Poll::Sleep`].
const LONG_SLEEP: Duration = Duration::from_micros(200);
/// Parked pollers look after the watcher now and then: it may be held up in a handler.
const PARKED: Duration = Duration::from_millis(40);
/// A watcher with traffic of its own looks after the others once in so many passes.
const WATCH_EACH: u32 = 16;

/// How long there was nothing to do.
pub(super) struct Idle {
    poll: Poll,
    passes: u32,
    since: Option<Instant>,
    sleep: Duration,
    turn: u32,
    /// The watcher's passes when this poller last woke by itself.
    watched: Option<(usize, u64)>,
}

impl Idle {
    pub(super) const fn new(poll: Poll) -> Self {
        Self {
            poll,
            passes: 0,
            since: None,
            sleep: SLEEPS.0,
            turn: 0,
            watched: None,
        }
    }

    pub(super) fn busy(&mut self) {
        self.passes = 0;
        self.since = None;
        self.sleep = SLEEPS.0;
        self.watched = None;
    }

    /// Whether there are sleeps between passes.
    pub(super) const fn is_slow(&self) -> bool {
        self.passes > SPINS + 1 && self.since.is_none()
    }
}

impl<T: Transport + Send + Sync + 'static, O: Observe> Poller<T, O> {
    /// Lets time pass after a pass, as little as the traffic deserves.
    pub(super) fn rest(&mut self, idle: &mut Idle, busy: bool) {
        match idle.poll {
            Poll::Spin => spin_loop(),
            Poll::Sleep => {
                if busy {
                    return;
                }
                idle.passes = idle.passes.saturating_add(1);
                if idle.passes > SPINS {
                    idle.passes = SPINS + 2;
                    thread::park_timeout(LONG_SLEEP);
                } else {
                    spin_loop();
                }
            }
            Poll::Adaptive => self.rest_adaptively(idle, busy),
        }
    }

    /// Whether this poller looks after the parked ones.
    pub(super) fn watches(&self) -> bool {
        self.pollers > 1
            && self.shared.options.poll == Poll::Adaptive
            && self.shared.watcher.load(Relaxed) == self.index as usize
    }

    fn rest_adaptively(&mut self, idle: &mut Idle, busy: bool) {
        let watches = self.watches();
        if watches && !idle.is_slow() {
            idle.turn = (idle.turn + 1) % WATCH_EACH;
            if idle.turn == 0 || idle.passes > SPINS {
                let (news, busy) = self.watch(true);
                if busy {
                    idle.busy();
                } else if news && idle.since.is_some() {
                    // Others have calls: whoever parks is missed at once.
                    idle.since = Some(Instant::now());
                }
            }
        }
        if busy {
            return;
        }
        idle.passes = idle.passes.saturating_add(1);
        if idle.passes <= SPINS {
            spin_loop();
        } else if idle.passes == SPINS + 1 {
            idle.since = Some(Instant::now());
            thread::yield_now();
        } else if idle.since.is_some_and(|since| since.elapsed() < HOT) {
            thread::yield_now();
        } else {
            idle.since = None;
            if self.pollers == 1 || watches {
                // Woken early by whoever has something: a pool thread, a drain.
                thread::park_timeout(idle.sleep);
                idle.sleep = (idle.sleep * 2).min(SLEEPS.1);
                if self.control.take_signal() {
                    idle.busy();
                }
            } else {
                self.park(idle);
            }
        }
    }

    fn park(&mut self, idle: &mut Idle) {
        self.control.parked.store(true, SeqCst);
        self.observe.parked(self.index as usize);
        // The watcher has passed over what came before it could see this.
        let busy = self.serve_all();
        // A wake from here on ends the parking, now or when it begins.
        if !busy {
            while !self.control.take_signal() {
                thread::park_timeout(PARKED);
                // Still parked to the watcher, so all it may have passed over is what it had no word
                // of.
                if self.control.take_signal()
                    || self.replaces_watcher(idle)
                    || self.look_from_park()
                {
                    break;
                }
            }
        }
        self.control.parked.store(false, Relaxed);
        idle.busy();
    }

    /// A watcher that has not looked since this poller last woke by itself is held up in a
    /// handler: this poller takes its place if no other has.
    fn replaces_watcher(&self, idle: &mut Idle) -> bool {
        let watcher = self.shared.watcher.load(Relaxed);
        let now = (watcher, self.shared.controls[watcher].scans.load(Relaxed));
        let place = &self.shared.watcher;
        if idle.watched == Some(now) {
            let own = self.index as usize;
            return place
                .compare_exchange(watcher, own, AcqRel, Relaxed)
                .is_ok();
        }
        idle.watched = Some(now);
        false
    }
}
