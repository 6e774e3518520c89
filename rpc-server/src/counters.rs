//! Exact numbers per opcode.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rpc_types::Opcode;

use crate::table::Frozen;

/// What was asked of one opcode's handler.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpcodeCounters {
    /// The opcode; `None` for all those together that have no handler.
    pub opcode: Option<Opcode>,
    /// Its name.
    pub name: &'static str,
    /// Port openings.
    pub calls: u64,
    /// Lanes of all calls.
    pub lanes: u64,
    /// Payload of the active lanes that the host received.
    pub bytes_in: u64,
    /// Payload of the active lanes that the host sent.
    pub bytes_out: u64,
    /// Calls that ended with a status other than success, or were given up.
    pub errors: u64,
}

impl OpcodeCounters {
    fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.lanes += other.lanes;
        self.bytes_in += other.bytes_in;
        self.bytes_out += other.bytes_out;
        self.errors += other.errors;
    }
}

/// A snapshot: each number is exact, though they are not read at the same instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// One for each handler, in the order they were registered, then one for unknown opcodes.
    pub opcodes: Vec<OpcodeCounters>,
    /// How often a poller has looked over its ports.
    pub scans: u64,
}

impl Counters {
    /// All opcodes together.
    pub fn total(&self) -> OpcodeCounters {
        let mut total = OpcodeCounters {
            name: "total",
            ..OpcodeCounters::default()
        };
        for opcode in &self.opcodes {
            total.add(opcode);
        }
        total
    }

    /// The numbers of the handler of `opcode`.
    pub fn of(&self, opcode: Opcode) -> Option<&OpcodeCounters> {
        self.opcodes
            .iter()
            .find(|counters| counters.opcode == Some(opcode))
    }

    /// The numbers of the opcodes without a handler.
    pub fn unknown(&self) -> Option<&OpcodeCounters> {
        self.opcodes.last()
    }
}

/// On a line of its own: what lies next to a block is another poller's.
#[derive(Default)]
#[repr(align(64))]
struct Slot {
    calls: AtomicU64,
    lanes: AtomicU64,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
    errors: AtomicU64,
}

/// The numbers of one poller: it alone writes them. Without slots nothing is counted.
pub(crate) struct Block(Box<[Slot]>);

/// Relaxed: there is one writer, and nothing is published by a count.
fn add(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(n), Relaxed);
}

impl Block {
    pub(crate) fn new(slots: usize) -> Self {
        Self((0..slots).map(|_| Slot::default()).collect())
    }

    pub(crate) fn begun(&self, slot: usize, lanes: u64) {
        if let Some(slot) = self.0.get(slot) {
            add(&slot.calls, 1);
            add(&slot.lanes, lanes);
        }
    }

    pub(crate) fn ended(&self, slot: usize, bytes_in: u64, bytes_out: u64, error: bool) {
        let Some(slot) = self.0.get(slot) else {
            return;
        };
        add(&slot.bytes_in, bytes_in);
        add(&slot.bytes_out, bytes_out);
        if error {
            add(&slot.errors, 1);
        }
    }

    fn read(&self, slot: usize) -> OpcodeCounters {
        let Some(slot) = self.0.get(slot) else {
            return OpcodeCounters::default();
        };
        OpcodeCounters {
            opcode: None,
            name: "",
            calls: slot.calls.load(Relaxed),
            lanes: slot.lanes.load(Relaxed),
            bytes_in: slot.bytes_in.load(Relaxed),
            bytes_out: slot.bytes_out.load(Relaxed),
            errors: slot.errors.load(Relaxed),
        }
    }
}

pub(crate) fn sum<'b>(table: &Frozen, blocks: impl Iterator<Item = &'b Block>) -> Counters {
    let known = table
        .entries
        .iter()
        .map(|entry| (Some(entry.opcode), entry.name));
    let mut opcodes: Vec<_> = known
        .chain([(None, "unknown")])
        .map(|(opcode, name)| OpcodeCounters {
            opcode,
            name,
            ..OpcodeCounters::default()
        })
        .collect();
    for block in blocks {
        for (slot, counters) in opcodes.iter_mut().enumerate() {
            counters.add(&block.read(slot));
        }
    }
    Counters { opcodes, scans: 0 }
}
