//! What all threads of a service see.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use rpc_types::Opcode;

use crate::budget::Budget;
use crate::counters::Block;
use crate::handler::End;
use crate::memory::DeviceMemory;
use crate::options::Options;
use crate::pool::{DISK, OUTSIDE, Pool, TEXT};
use crate::reports::Reports;
use crate::table::Frozen;

/// A lock whose holder panicked still guards good data here: every holder leaves it whole.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The end of the run, once somebody has asked for it.
#[derive(Default)]
pub(crate) struct Ending {
    end: OnceLock<End>,
    waiting: Mutex<()>,
    changed: Condvar,
}

impl Ending {
    /// The first end counts.
    pub(crate) fn set(&self, end: End) {
        if self.end.set(end).is_ok() {
            // Held, so that nobody is between looking and sleeping.
            let _waiting = lock(&self.waiting);
            self.changed.notify_all();
        }
    }

    pub(crate) fn get(&self) -> Option<End> {
        self.end.get().copied()
    }

    pub(crate) fn wait(&self, limit: Duration) -> Option<End> {
        let waiting = lock(&self.waiting);
        let still = |(): &mut ()| self.end.get().is_none();
        drop(self.changed.wait_timeout_while(waiting, limit, still));
        self.get()
    }
}

/// What conversations need of their service.
pub(crate) struct Context {
    pub(crate) memory: Arc<dyn DeviceMemory>,
    pub(crate) budget: Arc<Budget>,
    pub(crate) pool: Pool,
    /// For work that waits for somebody outside: it never holds up what the pool does.
    pub(crate) outside: Pool,
    /// For text that may have to wait for its reader, by stream.
    pub(crate) text: [Pool; 2],
    pub(crate) max_message: u64,
    pub(crate) bulk: u64,
}

/// A port is nobody's, or a call's that took longer than one visit of its poller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum PortState {
    Free = 0,
    /// The handler waits for something else than its client.
    InHandler = 1,
    /// The client has the packets.
    MidExchange = 2,
}

const STATE: u32 = 32;
const STEPS: u32 = 34;

/// Written by the port's poller alone.
#[derive(Default)]
struct PortWord {
    /// The opcode in the low half, above it the state and how often that was set.
    word: AtomicU64,
    mask: AtomicU64,
}

/// A poller as other threads see it. On lines of its own: its owner writes it at each call.
#[repr(align(128))]
pub(crate) struct Control {
    thread: OnceLock<Thread>,
    /// Somebody has something for the poller: it stays awake.
    signal: AtomicBool,
    pub(crate) parked: AtomicBool,
    conversation: AtomicBool,
    /// The procedure it is in: port + 1 in the high half, the opcode in the low one; else 0.
    current: AtomicU64,
    current_mask: AtomicU64,
    pub(crate) scans: AtomicU64,
    pub(crate) counters: Block,
}

impl Control {
    pub(crate) fn new(slots: usize) -> Arc<Self> {
        Arc::new(Self {
            thread: OnceLock::new(),
            signal: AtomicBool::new(false),
            parked: AtomicBool::new(false),
            conversation: AtomicBool::new(false),
            current: AtomicU64::new(0),
            current_mask: AtomicU64::new(0),
            scans: AtomicU64::new(0),
            counters: Block::new(slots),
        })
    }

    /// The calling thread is this poller.
    pub(crate) fn adopt_thread(&self) {
        let _ = self.thread.set(thread::current());
    }

    pub(crate) fn is_current_thread(&self) -> bool {
        self.thread
            .get()
            .is_some_and(|thread| thread.id() == thread::current().id())
    }

    pub(crate) fn wake(&self) {
        // Release: pairs with the acquire of `take_signal`.
        self.signal.store(true, Release);
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    pub(crate) fn take_signal(&self) -> bool {
        self.signal.swap(false, AcqRel)
    }

    /// One of its conversations can go on.
    pub(crate) fn wake_conversation(&self) {
        // Release: pairs with `take_conversation`, which then finds the woken ones.
        self.conversation.store(true, Release);
        self.wake();
    }

    pub(crate) fn take_conversation(&self) -> bool {
        self.conversation.load(Relaxed) && self.conversation.swap(false, AcqRel)
    }

    pub(crate) fn enter(&self, port: u32, opcode: Opcode, mask: u64) {
        self.current_mask.store(mask, Relaxed);
        self.current
            .store(u64::from(port + 1) << 32 | u64::from(opcode.0), Relaxed);
    }

    pub(crate) fn leave(&self) {
        self.current.store(0, Relaxed);
    }

    /// The procedure it is in: port, opcode, lanes.
    pub(crate) fn current(&self) -> Option<(u32, Opcode, u64)> {
        let word = self.current.load(Relaxed);
        let port = ((word >> 32) as u32).checked_sub(1)?;
        Some((port, Opcode(word as u32), self.current_mask.load(Relaxed)))
    }
}

pub(crate) const RUNNING: u8 = 0;
/// Serve what is complete, then cancel the rest and end.
pub(crate) const DRAINING: u8 = 1;
/// Cancel everything and end.
pub(crate) const STOPPING: u8 = 2;

/// How far the pollers have come in their end.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    /// Pollers that have ended.
    pub(crate) ended: usize,
    pub(crate) cancelled: u64,
    pub(crate) late: bool,
}

pub(crate) struct Shared {
    pub(crate) table: Frozen,
    pub(crate) context: Arc<Context>,
    pub(crate) options: Options,
    pub(crate) ending: Ending,
    pub(crate) controls: Box<[Arc<Control>]>,
    ports: Box<[PortWord]>,
    /// The poller that looks after the parked ones.
    pub(crate) watcher: AtomicUsize,
    phase: AtomicU8,
    deadline: Mutex<Option<Instant>>,
    progress: Mutex<Progress>,
    progressed: Condvar,
    pub(crate) reports: Reports,
}

impl Shared {
    pub(crate) fn new(
        table: Frozen,
        memory: Arc<dyn DeviceMemory>,
        options: Options,
        ports: u32,
        pollers: usize,
    ) -> Self {
        let slots = if options.counters {
            table.entries.len() + 1
        } else {
            0
        };
        let context = Arc::new(Context {
            memory,
            budget: Budget::new(options.max_in_flight),
            pool: Pool::new(DISK),
            outside: Pool::new(OUTSIDE),
            text: [TEXT; 2].map(Pool::new),
            max_message: options.max_message,
            bulk: options.bulk,
        });
        Self {
            table,
            reports: Reports::new(options.report.clone(), Arc::clone(&context)),
            context,
            options,
            ending: Ending::default(),
            controls: (0..pollers).map(|_| Control::new(slots)).collect(),
            ports: (0..ports).map(|_| PortWord::default()).collect(),
            watcher: AtomicUsize::new(0),
            phase: AtomicU8::new(RUNNING),
            deadline: Mutex::new(None),
            progress: Mutex::new(Progress::default()),
            progressed: Condvar::new(),
        }
    }

    pub(crate) fn set_port(&self, port: u32, state: PortState, opcode: Opcode, mask: u64) {
        let place = &self.ports[port as usize];
        place.mask.store(mask, Relaxed);
        let steps = (place.word.load(Relaxed) >> STEPS).wrapping_add(1);
        let word = steps << STEPS | (state as u64) << STATE | u64::from(opcode.0);
        place.word.store(word, Relaxed);
    }

    /// How often the state of `port` was set.
    pub(crate) fn steps(&self, port: u32) -> u32 {
        (self.ports[port as usize].word.load(Relaxed) >> STEPS) as u32
    }

    pub(crate) fn port(&self, port: u32) -> (PortState, Opcode, u64) {
        let place = &self.ports[port as usize];
        let word = place.word.load(Relaxed);
        let state = match word >> STATE & 3 {
            0 => PortState::Free,
            1 => PortState::InHandler,
            _ => PortState::MidExchange,
        };
        (state, Opcode(word as u32), place.mask.load(Relaxed))
    }

    pub(crate) fn phase(&self) -> u8 {
        self.phase.load(Acquire)
    }

    /// Goes to `phase`, never back.
    pub(crate) fn enter(&self, phase: u8, deadline: Instant) {
        lock(&self.deadline).get_or_insert(deadline);
        self.phase.fetch_max(phase, AcqRel);
        for control in &self.controls {
            control.wake();
        }
    }

    pub(crate) fn deadline(&self) -> Instant {
        lock(&self.deadline).unwrap_or_else(Instant::now)
    }

    pub(crate) fn poller_ended(&self, cancelled: u64, late: bool) {
        let mut progress = lock(&self.progress);
        progress.ended += 1;
        progress.cancelled += cancelled;
        progress.late |= late;
        drop(progress);
        self.progressed.notify_all();
    }

    /// Waits until all pollers have ended or `limit` has come.
    pub(crate) fn wait_ended(&self, limit: Instant) -> Progress {
        let mut progress = lock(&self.progress);
        loop {
            let left = limit.saturating_duration_since(Instant::now());
            if progress.ended == self.controls.len() || left.is_zero() {
                return *progress;
            }
            progress = self
                .progressed
                .wait_timeout(progress, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }
}
