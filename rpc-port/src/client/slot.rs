//! What a client knows of a port that it holds.

use rpc_types::Opcode;
use rpc_types::layout::next_sequence;

use crate::transport::Reply;

/// What a lane has written for the next hand-over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filled {
    Nothing,
    /// So many bytes, in its word and the tail words.
    Words(usize),
    /// In packets.
    Packets,
}

/// What a client remembers of an open port; the same in all its lanes, but for the reply's word.
///
/// Packets are not kept here: a lane fills or takes one in registers and copies it at once.
#[derive(Debug)]
// Independent of each other, and constants where the calls are inlined.
#[allow(clippy::struct_excessive_bools)]
pub struct ClientSlot {
    pub(super) port: u32,
    pub(super) mask: u64,
    /// Sequence number of the last hand-over.
    pub(super) sequence: u32,
    /// The port's state, when it was opened and but for the lock.
    pub(super) found: u64,
    /// When it was handed over last.
    pub(super) stamp: u32,
    pub(super) opcode: Opcode,
    /// Nothing was handed over yet.
    pub(super) opening: bool,
    pub(super) filled: Filled,
    /// Each lane looks for replies.
    pub(super) by_lane: bool,
    /// The next hand-over orders what was written before it.
    pub(super) ordered: bool,
    /// The last hand-over was ordered: so will be its reply.
    pub(super) was_ordered: bool,
    /// Anything was ordered since the port was opened.
    pub(super) any_ordered: bool,
    /// The lanes have met behind the lock: the packets may be written.
    pub(super) met: bool,
    pub(super) reply: Reply,
}

impl ClientSlot {
    /// Each hand-over orders what the lanes wrote before it, and each reply what they read after.
    #[inline(always)]
    pub(crate) const fn order(&mut self) {
        self.any_ordered = true;
        self.ordered = true;
    }

    /// Nobody will look for the reply.
    #[inline(always)]
    pub(crate) const fn leave_reply(&mut self) {
        self.by_lane = false;
    }

    /// Begins a conversation on a port that is open and owned.
    #[inline(always)]
    pub(crate) const fn begin(&mut self, opcode: Opcode) {
        self.opcode = opcode;
        self.opening = true;
        self.filled = Filled::Nothing;
        self.ordered = false;
    }

    /// The number of the next hand-over.
    #[inline(always)]
    pub(super) const fn next(&self) -> u32 {
        next_sequence(self.sequence)
    }
}

pub(super) const NO_REPLY: Reply = Reply {
    status: None,
    word: 0,
    bytes: 0,
    in_packets: false,
};
