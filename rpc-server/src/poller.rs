//! A thread that serves some of the ports.
//!
//! Ports are dealt to the pollers in groups of 8, round robin: within a group lie whole cache lines
//! of reply words and of port states, so that no line is written by two pollers, and as callers
//! start at low ports, the load of few callers is spread as well.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use rpc_bitmap::{Device, Heap};
use rpc_port::{Server, Transport};

use crate::handler::End;
use crate::observe::Observe;
use crate::shared::{Control, PortState, RUNNING, Shared};

mod drain;
mod idle;
mod report;
mod serve;

use idle::Idle;
use serve::Active;

/// Ports of a group.
const GROUP: u32 = 8;
/// Groups behind the highest in use that are looked at in each pass, in turn: when one of them is
/// found in use, passes go up to it.
const SWEEP: u32 = 2;
/// As [`SWEEP`], for passes with a sleep between them, of all pollers together: 8,000 ports are seen
/// within some 10 milliseconds.
const IDLE_SWEEP: u32 = 32;
/// What idle passes look at besides, of all pollers together: callers begin at the lowest ports, a
/// different one for each multiprocessor, of which devices have up to about 160.
const IDLE_GROUPS: u32 = 20;
/// Passes after which the highest group in use is determined anew.
const EPOCH: u32 = 1 << 14;

/// How many groups `ports` ports make.
pub(crate) const fn groups(ports: u32) -> u32 {
    ports.div_ceil(GROUP)
}

/// Serves every `pollers`-th group.
pub(crate) struct Poller<T: Transport, O> {
    index: u32,
    pollers: u32,
    /// Groups of this poller.
    groups: u32,
    ports: u32,
    server: Arc<Server<T, Heap<Device>>>,
    shared: Arc<Shared>,
    control: Arc<Control>,
    observe: Arc<O>,
    /// The call in several steps that each port of this poller is in.
    active: Vec<Option<Box<Active>>>,
    actives: usize,
    /// Groups to look at: up to the highest one in use.
    high: u32,
    /// The highest one in use of this epoch.
    seen: u32,
    passes: u32,
    sweep: u32,
    watch_sweep: u32,
}

impl<T: Transport + Send + Sync + 'static, O: Observe> Poller<T, O> {
    pub(crate) fn new(
        index: usize,
        server: Arc<Server<T, Heap<Device>>>,
        shared: Arc<Shared>,
        observe: Arc<O>,
    ) -> Self {
        let ports = server.transport().geometry().total_ports();
        let pollers = shared.controls.len() as u32;
        let index = index as u32;
        let groups = (groups(ports) - index).div_ceil(pollers);
        let control = Arc::clone(&shared.controls[index as usize]);
        Self {
            index,
            pollers,
            groups,
            ports,
            server,
            shared,
            control,
            observe,
            active: (0..groups * GROUP).map(|_| None).collect(),
            actives: 0,
            high: 1,
            seen: 0,
            passes: 0,
            sweep: 0,
            watch_sweep: 0,
        }
    }

    /// Serves until the service drains or stops.
    pub(crate) fn run(mut self) {
        self.control.adopt_thread();
        let mut counted = false;
        let result = catch_unwind(AssertUnwindSafe(|| {
            self.serve_until_end();
            let (cancelled, late) = self.drain();
            counted = true;
            self.shared.poller_ended(cancelled, late);
        }));
        if result.is_err() {
            // Handlers' panics do not come here: this is a fault of the poller itself. The device
            // must not wait for it.
            self.server.transport().stop();
            self.shared.ending.set(End::SERVER_FAULT);
            // Or the clients would take their own requests for answers.
            let _ = catch_unwind(AssertUnwindSafe(|| self.cancel_all()));
            if !counted {
                self.shared.poller_ended(0, true);
            }
            self.shared.report().say(&format!(
                "server thread {} panicked: this is a bug of gpurpc; the run ends",
                self.index
            ));
        }
    }

    fn serve_until_end(&mut self) {
        let mut idle = Idle::new(self.shared.options.poll);
        while self.shared.phase() == RUNNING {
            let busy = self.pass(idle.is_slow());
            self.control
                .scans
                .store(self.control.scans.load(Relaxed) + 1, Relaxed);
            self.observe.scanned(self.index as usize, busy);
            if busy {
                idle.busy();
            }
            self.rest(&mut idle, busy);
        }
    }

    /// The first port of this poller's group `group`.
    const fn first_port(&self, group: u32) -> u32 {
        (group * self.pollers + self.index) * GROUP
    }

    /// Looks over the ports in use, and some of the others.
    fn pass(&mut self, slow: bool) -> bool {
        let mut busy = false;
        let (high, sweep) = if slow {
            (self.idle_groups(), self.share(IDLE_SWEEP))
        } else {
            (self.high, SWEEP)
        };
        for group in 0..high {
            busy |= self.visit(group);
        }
        if high < self.groups {
            for _ in 0..sweep.min(self.groups - high) {
                self.sweep = if (high..self.groups - 1).contains(&self.sweep) {
                    self.sweep + 1
                } else {
                    high
                };
                busy |= self.visit(self.sweep);
            }
        }
        if self.control.take_conversation() {
            busy |= self.resume_woken();
        }
        if !slow {
            self.passes += 1;
            if self.passes >= EPOCH {
                self.passes = 0;
                // Conversations are where their port is: those stay in reach.
                if self.actives == 0 {
                    self.set_high(self.seen + 1);
                }
                self.seen = 0;
            }
        }
        busy
    }

    fn set_high(&mut self, high: u32) {
        self.high = high.min(self.groups);
    }

    /// This poller's share of what all look at.
    const fn share(&self, all: u32) -> u32 {
        all.div_ceil(self.pollers)
    }

    /// Groups that an idle pass looks at.
    fn idle_groups(&self) -> u32 {
        let low = self.share(IDLE_GROUPS).min(self.groups);
        // Conversations are awaited wherever they are.
        if self.actives > 0 {
            low.max(self.high)
        } else {
            low
        }
    }

    /// Looks at the ports of one group.
    #[inline]
    fn visit(&mut self, group: u32) -> bool {
        let first = self.first_port(group);
        let mut busy = false;
        for port in first..(first + GROUP).min(self.ports) {
            // A relaxed look at two words; nothing more for most ports.
            if self.server.is_waiting(port) {
                busy |= self.serve(port, group * GROUP + (port - first));
            }
        }
        if busy {
            self.seen = self.seen.max(group);
            if group >= self.high {
                self.set_high(group + 1);
            }
        }
        busy
    }

    /// Wakes parked pollers whose ports have requests.
    fn watch(&mut self, slow: bool) {
        let sweep = if slow { self.share(IDLE_SWEEP) } else { SWEEP };
        for (other, control) in self.shared.controls.iter().enumerate() {
            if other as u32 == self.index || !control.parked.load(Relaxed) {
                continue;
            }
            let total = (groups(self.ports) - other as u32).div_ceil(self.pollers);
            let high = control.groups.load(Relaxed).min(total);
            let start = self.watch_sweep % total;
            let swept = (start..start + sweep).map(|group| group % total);
            let wanted = (0..high).chain(swept).any(|group| {
                let first = (group * self.pollers + other as u32) * GROUP;
                (first..(first + GROUP).min(self.ports)).any(|port| {
                    // A handler that works on the host owns its packets: no news for its poller.
                    self.server.is_waiting(port) && self.shared.port(port).0 != PortState::InHandler
                })
            });
            if wanted {
                control.wake();
            }
        }
        self.watch_sweep = self
            .watch_sweep
            .wrapping_add(if slow { IDLE_SWEEP } else { SWEEP });
    }
}
