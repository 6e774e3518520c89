//! A thread that serves some of the ports.
//!
//! Ports are dealt to the pollers in groups of 4, round robin: what a server writes for itself lies
//! on lines of their own for each group, and as callers start at low ports, the load of few callers
//! is spread as well, the more evenly the smaller the groups are.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use rpc_bitmap::{Device, Heap};
use rpc_port::server::GROUP;
use rpc_port::transport::Room;
use rpc_port::{Server, Transport};

use crate::handler::End;
use crate::observe::Observe;
use crate::options::Poll;
use crate::port::lanes;
use crate::shared::{Control, RUNNING, Shared};

mod drain;
mod idle;
mod report;
mod serve;
mod watch;

use idle::Idle;
use serve::Active;
use watch::News;

/// Groups behind the highest in use that are looked at in each pass, in turn: when one of them is
/// found in use, passes go up to it.
const SWEEP: u32 = 2;
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
    /// Room for the messages of a call, here so that no call has to clear it.
    room: Box<Room>,
    news: News,
}

impl<T: Transport + Send + Sync + 'static, O: Observe> Poller<T, O> {
    pub(crate) fn new(
        index: usize,
        server: Arc<Server<T, Heap<Device>>>,
        shared: Arc<Shared>,
        observe: Arc<O>,
    ) -> Self {
        let ports = server.transport().geometry().total_ports();
        let words = server.transport().geometry().summary_words();
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
            room: Box::new(Room::EMPTY),
            news: News::new(words),
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
            // A drain waits for it from the poller's end on.
            self.shared.reports.say(format!(
                "server thread {} panicked: this is a bug of gpurpc; the run ends",
                self.index
            ));
            if !counted {
                self.shared.poller_ended(0, true);
            }
        }
    }

    fn serve_until_end(&mut self) {
        let mut idle = Idle::new(self.shared.options.poll);
        while self.shared.phase() == RUNNING {
            self.observe.scan_begun(self.index as usize);
            let busy = if idle.is_slow() {
                let (news, busy) = self.slow_pass(self.watches());
                // Whom the news is for may be parked, and others may follow.
                busy || news && self.shared.options.poll == Poll::Adaptive
            } else {
                self.pass()
            };
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

    /// This poller's group `group` among those of all.
    const fn global(&self, group: u32) -> u32 {
        group * self.pollers + self.index
    }

    /// Looks over the ports in use, and some of the others.
    pub(crate) fn pass(&mut self) -> bool {
        let mut busy = false;
        for group in 0..self.high {
            busy |= self.visit(group);
        }
        let high = self.high;
        if high < self.groups {
            for _ in 0..SWEEP.min(self.groups - high) {
                self.sweep = if (high..self.groups - 1).contains(&self.sweep) {
                    self.sweep + 1
                } else {
                    high
                };
                busy |= self.visit(self.sweep);
            }
        }
        busy |= self.go_on();
        self.passes += 1;
        if self.passes >= EPOCH {
            self.passes = 0;
            // Conversations are where their port is: those stay in reach.
            if self.actives == 0 {
                self.set_high(self.seen + 1);
            }
            self.seen = 0;
        }
        busy
    }

    /// Lets conversations go on that somebody else than their client has woken.
    fn go_on(&mut self) -> bool {
        self.control.take_conversation() && self.resume_woken()
    }

    fn set_high(&mut self, high: u32) {
        self.high = high.min(self.groups);
    }

    /// Looks at the ports of one group.
    #[inline]
    fn visit(&mut self, group: u32) -> bool {
        let waiting = self.server.waiting(self.global(group));
        // Nothing more for most groups.
        waiting != 0 && self.visit_waiting(group, waiting)
    }

    #[inline(never)]
    fn visit_waiting(&mut self, group: u32, waiting: u32) -> bool {
        let first = self.global(group) * GROUP;
        let ports = || lanes(waiting.into());
        self.server.prefetch(self.global(group + 1));
        for i in ports() {
            self.server.prefetch_request(first + i);
        }
        for i in ports() {
            self.observe
                .call_coming(self.index as usize, group * GROUP + i);
        }
        let mut busy = false;
        for i in ports() {
            busy |= self.serve(first + i, group * GROUP + i);
        }
        if busy {
            self.seen = self.seen.max(group);
            if group >= self.high {
                self.set_high(group + 1);
            }
        }
        busy
    }
}
