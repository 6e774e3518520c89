//! Where everything lies.
//!
//! Two regions are used. The **shared** region is memory that the device and the host both reach
//! (pinned host memory, fine-grained memory); the **private** region is plain device memory that
//! the host only allocates and zeroes. Both start as all zeros. Offsets are in bytes; each array
//! of the shared region starts on a page of its own, so that no page is written by both sides'
//! mailboxes.

use crate::packet::TAILS;

mod kind;
mod words;

pub use kind::LayoutKind;
pub use words::{next_sequence, reply, request, tail};

/// A page: the alignment of the arrays in the shared region.
pub const PAGE: usize = 4096;
/// Bytes of a word in [`LayoutKind::Line`] that is read and written in one access: its flag comes
/// with what it carries.
pub const WORD: usize = 16;
/// Request blocks of [`LayoutKind::Line`] start on a line of this size. A server reads it all the
/// while, so a client writes it once for each request: there is the header, and lanes have others.
pub const LINE: usize = 64;
/// Reply blocks of different ports are at least so far apart: closer, replies of different ports
/// share what the GPU fetches in one read, and each waits for the other's.
pub const REPLY_STRIDE: usize = 32;
/// Ports whose client sets the same summary word.
pub const SUMMARY_PORTS: u32 = 64;
/// In a summary word, from this bit on: which of its ports was handed over. Below it, the lower bits of
/// the hand-over's number.
pub const SUMMARY_SHIFT: u32 = u32::BITS - SUMMARY_PORTS.ilog2();
const _: () = assert!(
    SUMMARY_PORTS.is_power_of_two() && SUMMARY_SHIFT == 26,
    "what docs/protocol.md says"
);
/// Bytes between two summary words: far enough apart for hundreds of ports that call at once, close
/// enough that a server that wakes, its caches cold, sees those of thousands in a few lines.
pub const SUMMARY_STRIDE: usize = 16;
/// Most ordinary ports a client can have; see [`LayoutKind::max_ports`].
pub const MAX_PORTS: u32 = 1 << 16;

/// Sizes and offsets for one layout, number of ports and number of lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Which layout.
    pub layout: LayoutKind,
    /// Ordinary ports. One more, the last, is the panic handler's.
    pub ports: u32,
    /// Lanes of a warp.
    pub lanes: u32,
}

/// In a port's state: a warp holds it.
pub const LOCKED: u64 = 1 << 32;
/// In a port's state: its last call was asynchronous, the server may still own it.
pub const IN_FLIGHT: u64 = 1 << 33;
/// In the state of a port in flight, from this bit on, in 6 bits: the lane by whose reply word it will
/// be known that it no longer is.
pub const LEADER_SHIFT: u32 = 40;
/// In a port's state, from this bit on, in [`STAMP_BITS`] bits: when it was handed over last.
pub const STAMP_SHIFT: u32 = 48;
/// Bits of the time in a port's state.
pub const STAMP_BITS: u32 = 14;

#[inline(always)]
const fn pages(bytes: usize) -> usize {
    bytes.next_multiple_of(PAGE)
}

impl Geometry {
    /// The geometry, or `None` unless there are 1 to [`LayoutKind::max_ports`] ports and 1 to 64
    /// lanes.
    #[inline(always)]
    pub const fn new(layout: LayoutKind, ports: u32, lanes: u32) -> Option<Self> {
        if ports == 0
            || ports > layout.max_ports()
            || lanes == 0
            || lanes > crate::packet::MAX_LANES
        {
            return None;
        }
        Some(Self {
            layout,
            ports,
            lanes,
        })
    }

    /// All ports, the panic handler's included.
    #[inline(always)]
    pub const fn total_ports(&self) -> u32 {
        self.ports + 1
    }

    /// The port of the panic handler.
    #[inline(always)]
    pub const fn panic_port(&self) -> u32 {
        self.ports
    }

    #[inline(always)]
    const fn total(&self) -> usize {
        self.total_ports() as usize
    }

    #[inline(always)]
    const fn bitmap_bytes(&self) -> usize {
        self.total().div_ceil(32) * 4
    }

    // The shared region.

    /// Where the stop word lies, `u32`: nonzero once the host has told the device to end. Clients of
    /// LLVM's libc know of none: there it lies behind what is theirs.
    #[inline(always)]
    pub const fn stop(&self) -> usize {
        match self.layout {
            LayoutKind::Line | LayoutKind::Compact => 0,
            LayoutKind::Llvm22 | LayoutKind::Llvm | LayoutKind::First => self.summaries(),
        }
    }

    /// The client's mailboxes: request blocks, bits in `u32` words, or such words.
    #[inline(always)]
    pub const fn requests(&self) -> usize {
        match self.layout {
            LayoutKind::Line | LayoutKind::Compact => PAGE,
            LayoutKind::Llvm22 | LayoutKind::Llvm => self.replies() + self.total() * 4,
            LayoutKind::First => LINE,
        }
    }

    /// [`LayoutKind::Llvm22`] and [`LayoutKind::Llvm`]: the header of each port, {lanes that take part
    /// `u64`, opcode `u32`, 0 `u32`}, written by the client when it opens the port.
    #[inline(always)]
    pub const fn headers(&self) -> usize {
        self.requests() + self.total() * 4
    }

    /// [`LayoutKind::Line`]: bytes between two ports' request blocks.
    #[inline(always)]
    pub const fn request_stride(&self) -> usize {
        (request::LANES + self.lanes as usize * WORD).next_multiple_of(LINE)
    }

    /// [`LayoutKind::Line`]: where the request block of `port` starts.
    #[inline(always)]
    pub const fn request(&self, port: u32) -> usize {
        self.requests() + port as usize * self.request_stride()
    }

    /// [`LayoutKind::Line`]: where the request word of `lane` of `port` lies.
    #[inline(always)]
    pub const fn request_word(&self, port: u32, lane: u32) -> usize {
        self.request(port) + request::LANES + lane as usize * WORD
    }

    /// [`LayoutKind::Line`]: bytes between two ports' reply blocks.
    #[inline(always)]
    pub const fn reply_stride(&self) -> usize {
        (self.lanes as usize * WORD).next_multiple_of(REPLY_STRIDE)
    }

    /// [`LayoutKind::Line`]: where the reply word of `lane` of `port` lies.
    #[inline(always)]
    pub const fn reply_word(&self, port: u32, lane: u32) -> usize {
        self.replies() + port as usize * self.reply_stride() + lane as usize * WORD
    }

    /// [`LayoutKind::Compact`]: the mask of each port, `u64` each, written by the client.
    #[inline(always)]
    pub const fn masks(&self) -> usize {
        self.requests() + self.bitmap_bytes().next_multiple_of(64)
    }

    /// [`LayoutKind::Compact`]: the sequence number that opened the conversation of each port, `u32`
    /// each, written by the client: tells the server when a client has given up a conversation
    /// half-way and begun another.
    #[inline(always)]
    pub const fn openings(&self) -> usize {
        self.masks() + self.total() * 8
    }

    /// The server's mailboxes: reply blocks, bits in `u32` words, or such words.
    #[inline(always)]
    pub const fn replies(&self) -> usize {
        match self.layout {
            LayoutKind::Line => self.requests() + pages(self.total() * self.request_stride()),
            LayoutKind::Compact => pages(self.openings() + self.total() * 4),
            LayoutKind::Llvm22 | LayoutKind::First => 0,
            LayoutKind::Llvm => crate::llvm::DOORBELL,
        }
    }

    /// [`LayoutKind::Compact`]: the status of each port, `u32` each, written by the server.
    #[inline(always)]
    pub const fn statuses(&self) -> usize {
        self.replies() + self.bitmap_bytes().next_multiple_of(64)
    }

    /// The packets, `[port][lane]`, 64 bytes each; in [`LayoutKind::Line`] those of a port are
    /// interleaved, see [`unit`](Self::unit).
    #[inline(always)]
    pub const fn packets(&self) -> usize {
        match self.layout {
            LayoutKind::Line => self.replies() + pages(self.total() * self.reply_stride()),
            LayoutKind::Compact => pages(self.statuses() + self.total() * 4),
            LayoutKind::Llvm22 | LayoutKind::Llvm => (self.headers()
                + self.total() * crate::llvm::HEADER_SIZE)
                .next_multiple_of(crate::packet::PACKET_SIZE),
            LayoutKind::First => 2 * LINE,
        }
    }

    /// [`LayoutKind::Line`]: where bytes `16 * unit ..` of packet `index` of `port` lie. Of all packets
    /// of a port the first 16 bytes come first, then the second: what the lanes of a warp access
    /// together is contiguous.
    #[inline(always)]
    pub const fn unit(&self, port: u32, index: u32, unit: usize) -> usize {
        self.packet(port, 0) + (unit * self.lanes as usize + index as usize) * WORD
    }

    /// [`LayoutKind::Line`]: the tail blocks of all requests, then those of all replies.
    #[inline(always)]
    pub const fn request_tails(&self) -> usize {
        pages(self.packet(self.total_ports(), 0))
    }

    /// [`LayoutKind::Line`]: bytes between two ports' tail blocks.
    #[inline(always)]
    pub const fn tail_stride(&self) -> usize {
        TAILS * self.tail_row()
    }

    /// [`LayoutKind::Line`]: bytes between two tail words of a lane: what the lanes of a warp access
    /// together is contiguous.
    #[inline(always)]
    pub const fn tail_row(&self) -> usize {
        self.lanes as usize * WORD
    }

    /// [`LayoutKind::Line`]: the tail blocks of all replies.
    #[inline(always)]
    pub const fn reply_tails(&self) -> usize {
        self.request_tails() + pages(self.total() * self.tail_stride())
    }

    /// [`LayoutKind::Line`]: where the first request tail word of `lane` of `port` lies.
    #[inline(always)]
    pub const fn request_tail(&self, port: u32, lane: u32) -> usize {
        self.request_tails() + port as usize * self.tail_stride() + lane as usize * WORD
    }

    /// [`LayoutKind::Line`]: where the first reply tail word of `lane` of `port` lies.
    #[inline(always)]
    pub const fn reply_tail(&self, port: u32, lane: u32) -> usize {
        self.reply_tails() + port as usize * self.tail_stride() + lane as usize * WORD
    }

    /// All layouts but [`LayoutKind::Line`]: where the packet of `lane` of `port` lies.
    #[inline(always)]
    pub const fn packet(&self, port: u32, lane: u32) -> usize {
        self.packets()
            + (port as usize * self.lanes as usize + lane as usize) * crate::packet::PACKET_SIZE
    }

    /// Words that the client changes when it hands over a port of theirs, `u32`,
    /// [`SUMMARY_STRIDE`] apart: a server that sleeps looks at these. The layouts of LLVM's libc have
    /// none.
    #[inline(always)]
    pub const fn summaries(&self) -> usize {
        match self.layout {
            LayoutKind::Line => self.reply_tails() + pages(self.total() * self.tail_stride()),
            LayoutKind::Compact | LayoutKind::Llvm22 | LayoutKind::Llvm | LayoutKind::First => {
                pages(self.packet(self.total_ports(), 0))
            }
        }
    }

    /// Where the summary word of `port` lies.
    #[inline(always)]
    pub const fn summary(&self, port: u32) -> usize {
        self.summaries() + (port / SUMMARY_PORTS) as usize * SUMMARY_STRIDE
    }

    /// How many summary words there are.
    #[inline(always)]
    pub const fn summary_words(&self) -> u32 {
        self.total_ports().div_ceil(SUMMARY_PORTS)
    }

    /// Bytes of the shared region.
    #[inline(always)]
    pub const fn shared_size(&self) -> usize {
        self.summaries() + pages(self.summary_words() as usize * SUMMARY_STRIDE)
    }

    // The private region.

    /// Numbers given to messages that are printed in parts, `u32`.
    pub const MESSAGES: usize = 0;
    /// Which thread is reporting a panic, `u64`: 0 for none.
    pub const PANICKING: usize = 8;

    /// A bit for each port that is locked or in flight: a hint, [`Self::state`] knows.
    #[inline(always)]
    pub const fn busy(&self) -> usize {
        Self::states() + self.total() * 16
    }

    /// A bit for each port whose last call was asynchronous: a hint, [`Self::state`] knows.
    #[inline(always)]
    pub const fn in_flight(&self) -> usize {
        self.busy() + self.bitmap_bytes()
    }

    #[inline(always)]
    const fn states() -> usize {
        64
    }

    /// The state of `port`, `u64`: in the low half the client's sequence number, its copy of its
    /// own outbox; in the high half [`LOCKED`], [`IN_FLIGHT`] and what is from [`LEADER_SHIFT`] and
    /// [`STAMP_SHIFT`] on.
    #[inline(always)]
    pub const fn state(&self, port: u32) -> usize {
        Self::states() + port as usize * 16
    }

    /// The lanes that have let go of `port` while others still hold it, `u64`.
    #[inline(always)]
    pub const fn holders(&self, port: u32) -> usize {
        self.state(port) + 8
    }

    /// Bytes of the private region.
    #[inline(always)]
    pub const fn private_size(&self) -> usize {
        pages(self.in_flight() + self.bitmap_bytes())
    }
}

#[cfg(test)]
mod tests;
