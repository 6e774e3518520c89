//! What the pollers tell: numbers that one thread writes each, and a ring of calls for each poller.
//!
//! Each number has one writer, and none publishes anything by it: all are relaxed. What costs most is
//! the clock. It is read once in some passes and for each call that makes an event, and under load few
//! do: of an opcode's calls one in so many, which then stands for all of them. An opcode that is called
//! now and then, beside others that are called all the time, has its events.

use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::time::Instant;

use ringbuf::traits::{Observer as _, Producer, Split};
use ringbuf::{HeapCons, HeapProd, HeapRb};
use rpc_server::{CallInfo, GROUP, Observe, Outcome};

use crate::snapshot::Event;

/// Calls that a poller's ring holds. An event reads the clock twice, which under load is much beside a
/// call: the fewer of a busy opcode's calls have one between two visits of the recorder, the better. So up
/// to a quarter of this every call has one, which is some 2000 calls a second.
const RING: usize = 512;
/// When so much of a ring is full, in quarters, one call in so many makes an event.
const EVERY: [u32; 5] = [1, 16, 64, 1024, 1024];
/// The clock is read in one of so many passes: an idle pass takes only a few times as long as that.
const CLOCKED: u32 = 8;
/// No calls: the clock was not read in this pass.
const UNTIMED: u64 = u64::MAX;
/// Opcodes are told apart by so many: those whose slots are as far apart are sampled as one.
const SAMPLINGS: usize = 16;
/// Lines between the ports of one poller and those of the next, a page of them. A processor that goes from
/// line to line fetches the next ones ahead, though not beyond a page: it would take them from the poller
/// that writes them.
const GUARD: usize = 4096 / size_of::<Port>();
/// Ports below this one are looked at so soon after the start of a pass that its time is theirs, if
/// nothing was served before.
const NEAR: u32 = 64;

/// A call with an event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    pub(crate) event: Event,
    /// Where its opcode's numbers are.
    pub(crate) slot: usize,
}

/// The other ends of the rings.
pub struct Events(pub(crate) Vec<HeapCons<Record>>);

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Events").field(&self.0.len()).finish()
    }
}

/// Counts what a service's pollers do, for a [`Recorder`](crate::Recorder) to publish.
pub struct Observer {
    start: Instant,
    pub(crate) pollers: Box<[Poller]>,
    /// Of all pollers.
    pub(crate) ports: u32,
}

/// On lines of its own: its poller writes it at each call.
#[repr(align(128))]
pub(crate) struct Poller {
    pub(crate) calls: AtomicU64,
    /// By place, and [`GUARD`] that nobody uses.
    ports: Box<[Port]>,
    /// When its clock was last read.
    now: AtomicU64,
    /// How many calls had begun by then, if that was in this pass.
    timed: AtomicU64,
    samplings: [Sampling; SAMPLINGS],
    passes: AtomicU32,
    /// When the last pass with a time began, and the last one with a time before the current pass.
    pass: AtomicU64,
    before: AtomicU64,
    parked: AtomicBool,
    /// The longest time between two passes: the recorder takes it away.
    pub(crate) gap: AtomicU64,
    pub(crate) dropped: AtomicU64,
    /// Nobody else locks it.
    ring: Mutex<HeapProd<Record>>,
}

/// How the calls of an opcode are sampled.
struct Sampling {
    /// Calls since the last one with an event, which its next one stands for.
    skipped: AtomicU32,
    /// One call in so many makes an event: the recorder, who makes room, says 1.
    every: AtomicU32,
}

impl Poller {
    #[inline(always)]
    fn port(&self, place: u32) -> &Port {
        &self.ports[place as usize]
    }

    /// By place; behind them are those that nobody uses.
    pub(crate) fn ports(&self) -> impl Iterator<Item = &Port> {
        self.ports.iter()
    }

    #[inline(always)]
    fn sampling(&self, call: &CallInfo) -> &Sampling {
        &self.samplings[call.slot % SAMPLINGS]
    }

    /// The rings have room: each opcode's next call makes an event.
    pub(crate) fn make_room(&self) {
        for sampling in &self.samplings {
            sampling.every.store(1, Relaxed);
        }
    }

    /// Calls that no event stands for so far.
    pub(crate) fn skipped(&self) -> u64 {
        let skipped = |sampling: &Sampling| u64::from(sampling.skipped.load(Relaxed));
        self.samplings.iter().map(skipped).sum()
    }
}

/// A port's line, its poller's alone.
#[derive(Default)]
#[repr(align(64))]
pub(crate) struct Port {
    pub(crate) calls: AtomicU64,
    /// One more than the opcode.
    pub(crate) opcode: AtomicU64,
    pub(crate) mask: AtomicU64,
    pub(crate) bytes_in: AtomicU64,
    pub(crate) bytes_out: AtomicU64,
    pub(crate) latency: AtomicU64,
    /// One more than when its call began, if that makes an event; else 0.
    begun: AtomicU64,
    wait: AtomicU64,
}

const _: () = assert!(size_of::<Port>() == 64);

#[inline(always)]
fn add(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(n), Relaxed);
}

impl Observer {
    /// For a service of so many ports and pollers
    /// ([`Options::pollers_for`](rpc_server::Options::pollers_for)).
    pub fn new(ports: u32, pollers: usize) -> (Self, Events) {
        let mut events = Vec::new();
        let groups = ports.div_ceil(GROUP);
        let pollers = (0..pollers).map(|index| {
            // As they are dealt.
            let groups = (groups as usize).saturating_sub(index).div_ceil(pollers);
            let (ring, other) = HeapRb::new(RING).split();
            events.push(other);
            Poller {
                calls: AtomicU64::new(0),
                ports: (0..groups * GROUP as usize + GUARD)
                    .map(|_| Port::default())
                    .collect(),
                now: AtomicU64::new(0),
                timed: AtomicU64::new(UNTIMED),
                samplings: std::array::from_fn(|_| Sampling {
                    skipped: AtomicU32::new(0),
                    every: AtomicU32::new(1),
                }),
                passes: AtomicU32::new(0),
                pass: AtomicU64::new(0),
                before: AtomicU64::new(0),
                parked: AtomicBool::new(true),
                gap: AtomicU64::new(0),
                dropped: AtomicU64::new(0),
                ring: Mutex::new(ring),
            }
        });
        let observer = Self {
            start: Instant::now(),
            pollers: pollers.collect(),
            ports,
        };
        (observer, Events(events))
    }

    /// The time of this moment, which is good for the poller's next call too.
    fn read_clock(&self, poller: &Poller) -> u64 {
        let now = self.now();
        poller.now.store(now, Relaxed);
        poller.timed.store(poller.calls.load(Relaxed), Relaxed);
        now
    }

    /// Nanoseconds since the start.
    pub(crate) fn now(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    /// Ends the measurement of a call and tells the recorder.
    #[inline(never)]
    fn measured(&self, poller: &Poller, port: &Port, call: &CallInfo, outcome: &Outcome) {
        let now = self.read_clock(poller);
        let sampling = poller.sampling(call);
        let sampled = sampling.skipped.load(Relaxed) + 1;
        sampling.skipped.store(0, Relaxed);
        let latency_ns = (now + 1).saturating_sub(port.begun.load(Relaxed));
        port.begun.store(0, Relaxed);
        port.latency.store(latency_ns, Relaxed);
        let record = Record {
            event: Event {
                time_ns: now,
                poller: call.poller as u32,
                port: call.port,
                opcode: call.opcode.0,
                mask: call.mask,
                latency_ns,
                wait_ns: port.wait.load(Relaxed),
                bytes_in: outcome.bytes_in,
                bytes_out: outcome.bytes_out,
                status: outcome.status.0,
                sampled,
            },
            slot: call.slot,
        };
        let mut full = true;
        if let Ok(mut ring) = poller.ring.try_lock() {
            full = ring.try_push(record).is_err();
            let quarters = ring.occupied_len() / (RING / 4);
            sampling.every.store(EVERY[quarters], Relaxed);
        }
        if full {
            add(&poller.dropped, sampled.into());
        }
    }
}

impl Observe for Observer {
    #[inline(always)]
    fn call_coming(&self, poller: usize, place: u32) {
        // Its line comes while others are served.
        rpc_bitmap::prefetch(self.pollers[poller].port(place), true);
    }

    #[inline(always)]
    fn call_begun(&self, call: &CallInfo) {
        let poller = &self.pollers[call.poller];
        let port = poller.port(call.place);
        add(&port.calls, 1);
        add(&poller.calls, 1);
        port.opcode.store(u64::from(call.opcode.0) + 1, Relaxed);
        port.mask.store(call.mask, Relaxed);
        let sampling = poller.sampling(call);
        let skipped = sampling.skipped.load(Relaxed) + 1;
        if skipped < sampling.every.load(Relaxed) {
            sampling.skipped.store(skipped, Relaxed);
            return;
        }
        let before = poller.calls.load(Relaxed) - 1;
        let timed = call.port < NEAR && poller.timed.load(Relaxed) == before;
        let now = if timed {
            poller.now.load(Relaxed)
        } else {
            self.read_clock(poller)
        };
        // What is done for it takes time.
        poller.timed.store(UNTIMED, Relaxed);
        port.begun.store(now + 1, Relaxed);
        port.wait
            .store(now.saturating_sub(poller.before.load(Relaxed)), Relaxed);
    }

    #[inline(always)]
    fn call_ended(&self, call: &CallInfo, outcome: &Outcome) {
        let poller = &self.pollers[call.poller];
        let port = poller.port(call.place);
        add(&port.bytes_in, outcome.bytes_in);
        add(&port.bytes_out, outcome.bytes_out);
        if port.begun.load(Relaxed) != 0 {
            self.measured(poller, port, call, outcome);
        }
    }

    #[inline(always)]
    fn scan_begun(&self, poller: usize) {
        let poller = &self.pollers[poller];
        let passes = poller.passes.load(Relaxed).wrapping_add(1);
        poller.passes.store(passes, Relaxed);
        let before = poller.pass.load(Relaxed);
        if !passes.is_multiple_of(CLOCKED) && !poller.parked.load(Relaxed) {
            poller.before.store(before, Relaxed);
            poller.timed.store(UNTIMED, Relaxed);
            return;
        }
        let now = self.read_clock(poller);
        poller.before.store(before, Relaxed);
        poller.pass.store(now, Relaxed);
        if poller.parked.load(Relaxed) {
            // Others have looked for it meanwhile: a request has waited since one of their looks at most.
            let awake = self
                .pollers
                .iter()
                .filter(|other| !other.parked.load(Relaxed));
            let looks = awake.map(|other| other.before.load(Relaxed));
            poller.before.store(looks.fold(before, u64::max), Relaxed);
            poller.parked.store(false, Relaxed);
        } else if now.saturating_sub(before) > poller.gap.load(Relaxed) {
            poller.gap.store(now.saturating_sub(before), Relaxed);
        }
    }

    fn parked(&self, poller: usize) {
        let poller = &self.pollers[poller];
        poller.parked.store(true, Relaxed);
        // Calls that it finds while it is parked are of another time.
        poller.timed.store(UNTIMED, Relaxed);
    }
}

impl std::fmt::Debug for Observer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Observer")
            .field("ports", &self.ports)
            .field("pollers", &self.pollers.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringbuf::traits::Consumer;
    use rpc_types::{Opcode, Status};

    fn call(port: u32) -> CallInfo {
        CallInfo {
            poller: 0,
            port,
            place: port,
            opcode: Opcode::NOOP,
            slot: 0,
            mask: 1,
        }
    }

    const OUTCOME: Outcome = Outcome {
        bytes_in: 3,
        bytes_out: 5,
        status: Status::SUCCESS,
    };

    /// However far behind the recorder is: each call has an event, or one that stands for it, or is
    /// known to have none.
    #[test]
    fn what_the_rings_do_not_hold_is_counted() {
        for (calls, drained, sampled) in [
            (100, usize::MAX, false),
            (100_000, usize::MAX, true),
            (5_000_000, usize::MAX, true),
            (200_000, 100, false),
        ] {
            let (observer, Events(mut events)) = Observer::new(70, 1);
            let (mut sum, mut most) = (0, 0);
            for n in 0..calls {
                if n % 10 == 0 {
                    observer.scan_begun(0);
                }
                let call = call(n as u32 % 70);
                observer.call_begun(&call);
                observer.call_ended(&call, &OUTCOME);
                if n % drained == drained - 1 {
                    sum += events[0]
                        .pop_iter()
                        .map(|r| u64::from(r.event.sampled))
                        .sum::<u64>();
                    observer.pollers[0].make_room();
                }
            }
            for record in events[0].pop_iter() {
                assert!(record.event.wait_ns <= record.event.time_ns);
                sum += u64::from(record.event.sampled);
                most = most.max(record.event.sampled);
            }
            let poller = &observer.pollers[0];
            let dropped = poller.dropped.load(Relaxed);
            assert_eq!(sum + poller.skipped() + dropped, calls as u64);
            assert_eq!(most > 1, sampled);
            assert_eq!(dropped > 0, calls > 3_000_000);
            assert_eq!(poller.calls.load(Relaxed), calls as u64);
            let bytes = poller.ports().map(|port| port.bytes_out.load(Relaxed));
            assert_eq!(bytes.sum::<u64>(), calls as u64 * 5);
        }
    }

    /// Between two visits of the recorder a busy opcode has most of its calls without an event, and a
    /// rare one still has its own.
    #[test]
    fn a_rare_opcode_has_its_events() {
        let (observer, Events(mut events)) = Observer::new(70, 1);
        for round in 0..20 {
            for n in 0..100_000 {
                let call = call(n % 70);
                observer.call_begun(&call);
                observer.call_ended(&call, &OUTCOME);
            }
            let rare = CallInfo {
                slot: 3,
                ..call(round)
            };
            observer.call_begun(&rare);
            observer.call_ended(&rare, &OUTCOME);
            let mut counts = [0; 2];
            for record in events[0].pop_iter() {
                counts[usize::from(record.slot == 3)] += record.event.sampled;
            }
            assert!(counts[0] > 90_000, "{counts:?}");
            assert_eq!(counts[1], 1);
            observer.pollers[0].make_room();
        }
    }

    #[test]
    fn parking_is_no_time_of_calls() {
        let (observer, Events(mut events)) = Observer::new(4, 2);
        let own = CallInfo {
            poller: 1,
            ..call(1)
        };
        let mut served = |since: Instant| {
            observer.call_begun(&own);
            observer.call_ended(&own, &OUTCOME);
            let event = events[1].try_pop().expect("each has its event").event;
            (event, since.elapsed().as_nanos() as u64)
        };
        // In one of so many passes the clock is read.
        let pass = |poller| (0..CLOCKED).for_each(|_| observer.scan_begun(poller));
        pass(0);
        pass(1);
        observer.parked(1);
        std::thread::sleep(std::time::Duration::from_millis(20));
        // Before it is woken by the other one.
        let (event, most) = served(Instant::now());
        assert!(event.latency_ns <= most, "{event:?}, {most} ns");
        let looked = Instant::now();
        pass(0);
        pass(0);
        observer.scan_begun(1);
        let (event, most) = served(looked);
        assert!(
            event.latency_ns + event.wait_ns <= most,
            "{event:?}, {most} ns"
        );
    }

    #[test]
    fn parking_is_no_gap() {
        let (observer, _events) = Observer::new(4, 1);
        let nap = || std::thread::sleep(std::time::Duration::from_millis(20));
        nap();
        observer.scan_begun(0);
        observer.parked(0);
        nap();
        observer.scan_begun(0);
        assert!(observer.pollers[0].gap.load(Relaxed) < 20_000_000);
        nap();
        for _ in 0..CLOCKED {
            observer.scan_begun(0);
        }
        assert!(observer.pollers[0].gap.load(Relaxed) >= 20_000_000);
    }
}
