//! A snapshot from what the pollers have told and what is to be seen of them.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use ringbuf::traits::Consumer;
use rpc_server::{ExchangeState, OpenExchange, Probe};

use crate::observer::{Events, Observer};
use crate::snapshot::{
    Event, OpcodeStats, PollerState, PollerStats, PortState, PortStats, Snapshot,
};

/// Calls that a snapshot shows.
const SHOWN: usize = 256;
/// Ports are dealt to the pollers in groups of so many.
const GROUP: usize = rpc_server::GROUP as usize;

/// Brings a snapshot up to date, time after time.
pub(crate) struct Collector {
    observer: Arc<Observer>,
    events: Events,
    probe: Probe,
    /// What was seen of each port's exchange, to know whether it is the same still.
    seen: Box<[Seen]>,
    /// The ports with an exchange.
    open: Vec<u32>,
    latest: Vec<Event>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Seen {
    state: PortState,
    steps: u32,
    calls: u64,
}

impl Collector {
    pub(crate) fn new(
        observer: Arc<Observer>,
        events: Events,
        probe: Probe,
        snapshot: &mut Snapshot,
    ) -> Self {
        let ports = observer.ports as usize;
        snapshot.ports = vec![PortStats::default(); ports];
        snapshot.pollers = vec![PollerStats::default(); observer.pollers.len()];
        let opcodes = probe.counters().opcodes.into_iter();
        snapshot.opcodes = opcodes
            .map(|counters| OpcodeStats {
                opcode: counters.opcode.map(|opcode| opcode.0),
                name: counters.name.to_owned(),
                ..OpcodeStats::default()
            })
            .collect();
        Self {
            observer,
            events,
            probe,
            seen: vec![Seen::default(); ports].into(),
            open: Vec::new(),
            latest: Vec::new(),
        }
    }

    /// Whether anything has happened since the time before.
    pub(crate) fn collect(&mut self, snapshot: &mut Snapshot) -> bool {
        snapshot.time_ns = self.observer.now();
        self.take_events(snapshot);
        // After the events: no call is shown that is not counted.
        self.counters(snapshot);
        let mut changed = self.ports_and_pollers(snapshot);
        changed |= self.exchanges(snapshot);
        changed
    }

    /// The last time: nothing happens any more.
    pub(crate) fn finish(&mut self, snapshot: &mut Snapshot) {
        self.collect(snapshot);
        // Calls that no later event will stand for.
        for (poller, stats) in self.observer.pollers.iter().zip(&mut snapshot.pollers) {
            let rest = poller.skipped();
            stats.dropped_events += rest;
            snapshot.dropped_events += rest;
        }
    }

    fn take_events(&mut self, snapshot: &mut Snapshot) {
        self.latest.clear();
        for (ring, poller) in self.events.0.iter_mut().zip(&self.observer.pollers) {
            let first = self.latest.len();
            for record in ring.pop_iter() {
                let event = record.event;
                if let Some(opcode) = snapshot.opcodes.get_mut(record.slot) {
                    let n = u64::from(event.sampled);
                    opcode.latency.record_n(event.latency_ns, n);
                    opcode.wait.record_n(event.wait_ns, n);
                    opcode.server_ns = opcode
                        .server_ns
                        .saturating_add(event.latency_ns.saturating_mul(n));
                }
                self.latest.push(event);
            }
            poller.make_room();
            // Of each poller as many as could be shown.
            let more = (self.latest.len() - first).saturating_sub(SHOWN);
            self.latest.drain(first..first + more);
        }
        if self.latest.is_empty() {
            return;
        }
        let events = &mut snapshot.events;
        events.append(&mut self.latest);
        events.sort_by_key(|event| event.time_ns);
        events.drain(..events.len().saturating_sub(SHOWN));
    }

    fn counters(&self, snapshot: &mut Snapshot) {
        let counters = self.probe.counters();
        for (opcode, counters) in snapshot.opcodes.iter_mut().zip(counters.opcodes) {
            opcode.calls = counters.calls;
            opcode.lanes = counters.lanes;
            opcode.bytes_in = counters.bytes_in;
            opcode.bytes_out = counters.bytes_out;
            opcode.errors = counters.errors;
        }
    }

    fn ports_and_pollers(&self, snapshot: &mut Snapshot) -> bool {
        let pollers = self.observer.pollers.len();
        let mut changed = false;
        snapshot.dropped_events = 0;
        let views = self.probe.pollers();
        for (index, view) in views.enumerate().take(pollers) {
            let (stats, poller) = (&mut snapshot.pollers[index], &self.observer.pollers[index]);
            let calls = poller.calls.load(Relaxed);
            let mut news = calls != stats.calls;
            *stats = PollerStats {
                state: match view.state {
                    rpc_server::PollerState::Looking => PollerState::Looking,
                    rpc_server::PollerState::InHandler => PollerState::InHandler,
                    rpc_server::PollerState::Parked => PollerState::Parked,
                },
                scans: view.scans,
                calls,
                longest_gap_ns: poller.gap.swap(0, Relaxed),
                dropped_events: poller.dropped.load(Relaxed),
            };
            snapshot.dropped_events += stats.dropped_events;
            // A call that is open has its bytes to come.
            news |= !self.open.is_empty();
            changed |= news;
            if news {
                self.ports_of(index, &mut snapshot.ports);
            }
        }
        changed
    }

    /// The numbers of a poller's ports.
    fn ports_of(&self, poller: usize, stats: &mut [PortStats]) {
        let step = self.observer.pollers.len() * GROUP;
        let groups = (poller * GROUP..stats.len()).step_by(step);
        let mut own = self.observer.pollers[poller].ports();
        for first in groups {
            let last = (first + GROUP).min(stats.len());
            for (stats, port) in stats[first..last].iter_mut().zip(own.by_ref()) {
                let opcode = port.opcode.load(Relaxed);
                if opcode == 0 {
                    continue;
                }
                stats.opcode = Some((opcode - 1) as u32);
                stats.mask = port.mask.load(Relaxed);
                stats.calls = port.calls.load(Relaxed);
                stats.bytes_in = port.bytes_in.load(Relaxed);
                stats.bytes_out = port.bytes_out.load(Relaxed);
                stats.latency_ns = port.latency.load(Relaxed);
            }
        }
    }

    /// How far the exchanges are; whether any has gone on.
    fn exchanges(&mut self, snapshot: &mut Snapshot) -> bool {
        let time = snapshot.time_ns;
        let mut changed = false;
        let before = std::mem::take(&mut self.open);
        let (ports, seen, open) = (&mut snapshot.ports, &mut self.seen, &mut self.open);
        self.probe.open_exchanges(|exchange| {
            let index = exchange.port as usize;
            let (Some(port), Some(seen)) = (ports.get_mut(index), seen.get_mut(index)) else {
                return;
            };
            open.push(exchange.port);
            let now = Seen {
                state: state(&exchange),
                steps: exchange.steps,
                calls: port.calls,
            };
            if *seen != now {
                *seen = now;
                port.since_ns = time;
                changed = true;
            }
            port.state = now.state;
            port.opcode = Some(exchange.opcode.0);
            port.mask = exchange.mask;
        });
        for port in before {
            // In the order in which they were seen, which is by port.
            if self.open.binary_search(&port).is_err() {
                let stats = &mut snapshot.ports[port as usize];
                stats.state = PortState::Idle;
                stats.since_ns = time;
                self.seen[port as usize].state = PortState::Idle;
                changed = true;
            }
        }
        changed
    }
}

fn state(exchange: &OpenExchange) -> PortState {
    match exchange.state {
        ExchangeState::Waiting => PortState::Waiting,
        ExchangeState::InHandler => PortState::InHandler,
        ExchangeState::MidExchange => PortState::MidExchange,
    }
}
