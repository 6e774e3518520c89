//! Where everything lies.
//!
//! Two regions are used. The **shared** region is memory that the device and the host both reach
//! (pinned host memory, fine-grained memory); the **private** region is plain device memory that
//! the host only allocates and zeroes. Both start as all zeros. Offsets are in bytes; each array
//! of the shared region starts on a page of its own, so that no page is written by both sides'
//! mailboxes.

use crate::packet::TAILS;

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
/// Bytes between two summary words: far enough apart for hundreds of ports that call at once, close
/// enough that a server that wakes, its caches cold, sees those of thousands in a few lines.
pub const SUMMARY_STRIDE: usize = 16;
/// Most ordinary ports a client can have; see [`LayoutKind::max_ports`].
pub const MAX_PORTS: u32 = 1 << 16;

/// The layouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum LayoutKind {
    /// One mailbox bit per port, opcodes in the packets: the smallest.
    Compact = 1,
    /// Words that carry their flag with them, reply blocks apart: the default, made for PCIe.
    Line = 2,
    /// One mailbox word per port, opcodes in headers, no status: what images made with the LLVM libc
    /// of the releases 20 to 22 expect.
    Llvm22 = 3,
    /// As [`Llvm22`](Self::Llvm22) with room for a doorbell in front: what those made since April 2026
    /// expect.
    Llvm = 4,
    /// One port, whose three addresses are passed to the kernel, and the opcode in its packet: what
    /// images made with LLVM's first patch for RPC expect, in March 2023. One lane at a time.
    First = 5,
}

impl LayoutKind {
    /// The layout with this number in an image, or `None` if there is no such layout.
    pub const fn from_number(number: u32) -> Option<Self> {
        match number {
            1 => Some(Self::Compact),
            2 => Some(Self::Line),
            3 => Some(Self::Llvm22),
            4 => Some(Self::Llvm),
            5 => Some(Self::First),
            _ => None,
        }
    }

    /// The most ordinary ports that a client with this layout can have: LLVM's have one bit for each
    /// port, the last one included. Those of [`First`](Self::First) know of no other than the first.
    pub const fn max_ports(self) -> u32 {
        match self {
            Self::Compact | Self::Line => MAX_PORTS,
            Self::Llvm22 | Self::Llvm => crate::llvm::max_ports(self) - 1,
            Self::First => 1,
        }
    }

    /// Whether this is what LLVM's libc expects, in one of its forms.
    pub const fn is_llvm(self) -> bool {
        matches!(self, Self::Llvm22 | Self::Llvm | Self::First)
    }

    /// Payload bytes of a packet.
    pub const fn payload(self) -> usize {
        match self {
            Self::Compact => 62,
            Self::Line | Self::Llvm22 | Self::Llvm | Self::First => 64,
        }
    }

    /// The layout's name as people write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Compact => "Compact",
            Self::Line => "Line",
            Self::Llvm22 => "Llvm22",
            Self::Llvm => "Llvm",
            Self::First => "First",
        }
    }
}

/// The words of a [`LayoutKind::Line`] request block.
///
/// First the header word: {sequence `u32`, [`meta`](request::meta) `u32`, lanes that take part
/// `u64`}. Then the opcode's word, then a word for each lane: {sequence `u32`, 0 `u32`, message
/// `u64`}, which is there only if the header says that the message is in words.
pub mod request {
    use super::{LINE, WORD};

    /// The whole opcode, `u32`, for one that has no 16-bit form.
    pub const OPCODE: usize = WORD;
    /// The word of lane 0. Not on the header's line: a server that looks at that while it is written
    /// to in several stores takes it away from the device between them, for which all of the device's
    /// later stores wait. With 8 servers at 132 ports that made calls six times as long.
    pub const LANES: usize = LINE;

    /// This message begins a conversation.
    pub const OPENING: u32 = 1 << 8;
    /// The message is in the packets. Else it is in the lanes' words and, from the ninth byte on, in
    /// their tail words; one without bytes is nowhere.
    pub const IN_PACKETS: u32 = 1 << 9;
    /// Each lane looks at its own reply word, and reads it in one access. Without this flag only the
    /// lowest lane looks, at the first 8 bytes of its word, and the reply's message is in packets.
    pub const BY_LANE: u32 = 1 << 10;
    /// The opcode has no 16-bit form and is in its word.
    pub const LONG_OPCODE: u32 = 1 << 11;

    /// The header's second `u32`: 16-bit opcode, flags, bytes of each lane's message (at most 64).
    #[must_use]
    #[inline(always)]
    pub const fn meta(opcode: u16, flags: u32, bytes: usize) -> u32 {
        (opcode as u32) << 16 | flags | bytes as u32
    }

    /// The 16-bit opcode in a header's second word.
    #[must_use]
    #[inline(always)]
    pub const fn opcode(meta: u32) -> u16 {
        (meta >> 16) as u16
    }

    /// The bytes of each lane's message in a header's second word.
    #[must_use]
    #[inline(always)]
    pub const fn bytes(meta: u32) -> usize {
        (meta & 0xFF) as usize
    }
}

/// The words of a [`LayoutKind::Line`] tail block, [`TAILS`](crate::packet::TAILS) for each lane:
/// {sequence `u32`, 12 bytes of the message}. Requests and replies have blocks of their own, so that
/// each word has one writer.
pub mod tail {
    /// The word of 16 bytes with a number and 12 bytes.
    #[must_use]
    #[inline(always)]
    pub const fn pack(sequence: u32, [a, b, c]: [u32; 3]) -> [u64; 2] {
        [
            sequence as u64 | (a as u64) << 32,
            b as u64 | (c as u64) << 32,
        ]
    }

    /// The number and the 12 bytes of a word.
    #[must_use]
    #[inline(always)]
    pub const fn unpack([low, high]: [u64; 2]) -> (u32, [u32; 3]) {
        let bytes = [(low >> 32) as u32, high as u32, (high >> 32) as u32];
        (low as u32, bytes)
    }
}

/// The words of a [`LayoutKind::Line`] reply block, one for each lane: {sequence `u32`,
/// [`meta`](reply::meta) `u32`, message `u64`}. The sequence number is that of the request.
pub mod reply {
    /// The message is in the packets. Else it is in the word and, from the ninth byte on, in the lane's
    /// tail words.
    pub const IN_PACKETS: u32 = 1 << 31;
    /// The largest status that a word has room for.
    pub const MAX_STATUS: u32 = (1 << 24) - 1;

    /// A reply word's second `u32`: flags, bytes of the message (at most 64), status.
    #[must_use]
    #[inline(always)]
    pub const fn meta(status: u32, flags: u32, bytes: usize) -> u32 {
        flags | (bytes as u32) << 24 | status
    }

    /// The bytes of the message in a reply word's second `u32`.
    #[must_use]
    #[inline(always)]
    pub const fn bytes(meta: u32) -> usize {
        (meta >> 24 & 0x7F) as usize
    }

    /// The status in a reply word's second `u32`.
    #[must_use]
    #[inline(always)]
    pub const fn status(meta: u32) -> u32 {
        meta & MAX_STATUS
    }
}

/// The sequence number after `sequence`.
///
/// 0 comes only once, at the start: a word that was never written matches no request. And when the
/// numbers start again, the side that writes a block clears its lanes' words first. So a lane's word
/// that carries the number of a message was written for that message.
#[must_use]
#[inline(always)]
pub const fn next_sequence(sequence: u32) -> u32 {
    if sequence == u32::MAX {
        2
    } else {
        sequence + 1
    }
}

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
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    /// Ends where it says, overlaps nothing: every array with its size, in order.
    fn arrays(g: &Geometry) -> [Vec<(usize, usize)>; 2] {
        let total = g.total_ports() as usize;
        let bits = total.div_ceil(32) * 4;
        let packets = (g.packets(), total * g.lanes as usize * 64);
        let shared = match g.layout {
            LayoutKind::Line => Vec::from([
                (g.requests(), total * g.request_stride()),
                (g.replies(), total * g.reply_stride()),
                packets,
                (g.request_tails(), total * g.lanes as usize * 80),
                (g.reply_tails(), total * g.lanes as usize * 80),
            ]),
            LayoutKind::Compact => Vec::from([
                (g.requests(), bits),
                (g.masks(), total * 8),
                (g.openings(), total * 4),
                (g.replies(), bits),
                (g.statuses(), total * 4),
                packets,
            ]),
            LayoutKind::Llvm22 | LayoutKind::Llvm => Vec::from([
                (g.replies(), total * 4),
                (g.requests(), total * 4),
                (g.headers(), total * 16),
                packets,
                (g.stop(), 4),
            ]),
            LayoutKind::First => Vec::from([
                (g.replies(), total * 4),
                (g.requests(), total * 4),
                packets,
                (g.stop(), 4),
            ]),
        };
        let mut shared = shared;
        if !g.layout.is_llvm() {
            shared.push((g.summaries(), total.div_ceil(64) * 16));
        }
        let private = Vec::from([
            (0, 64),
            (g.state(0), total * 16),
            (g.busy(), bits),
            (g.in_flight(), bits),
        ]);
        [shared, private]
    }

    #[test]
    fn arrays_lie_in_order_and_do_not_overlap() {
        for number in 1..6 {
            let layout = LayoutKind::from_number(number).unwrap();
            let most = layout.max_ports();
            for ports in [1, 2, 31, 32, 33, 1000, 4095, most].map(|ports| ports.min(most)) {
                for lanes in [1, 32, 64] {
                    let g = Geometry::new(layout, ports, lanes).unwrap();
                    let [shared, private] = arrays(&g);
                    for (list, size) in [(shared, g.shared_size()), (private, g.private_size())] {
                        let mut end = 0;
                        for (start, bytes) in list {
                            assert!(start >= end, "{g:?}");
                            assert_eq!(start % 4, 0);
                            end = start + bytes;
                        }
                        assert!(end <= size, "{g:?}");
                        assert_eq!(size % PAGE, 0);
                    }
                    if layout.is_llvm() {
                        assert_eq!((g.headers() % 8, g.packets() % 64), (0, 0));
                        continue;
                    }
                    assert_eq!(g.requests() % PAGE, 0);
                    assert_eq!(g.replies() % PAGE, 0, "mailboxes lie in different pages");
                    assert_eq!(g.packets() % PAGE, 0);
                }
            }
        }
    }

    #[test]
    fn words_of_a_line_are_aligned_and_their_own() {
        for lanes in [1, 2, 3, 32, 64] {
            let g = Geometry::new(LayoutKind::Line, 3, lanes).unwrap();
            for port in 0..4 {
                assert_eq!(g.request(port) % LINE, 0);
                assert!(g.request_word(port, lanes - 1) + WORD <= g.request(port + 1));
                assert!(g.reply_word(port, lanes - 1) + WORD <= g.reply_word(port + 1, 0));
                assert!(g.reply_word(port + 1, 0) - g.reply_word(port, 0) >= REPLY_STRIDE);
                assert_eq!(g.request_word(port, lanes - 1) % WORD, 0);
                assert_eq!(g.reply_word(port, lanes - 1) % WORD, 0);
                for tail in [Geometry::request_tail, Geometry::reply_tail] {
                    assert_eq!(tail(&g, port, lanes - 1) % WORD, 0);
                    let end = tail(&g, port, lanes - 1) + 4 * g.tail_row() + WORD;
                    assert_eq!(end, tail(&g, port + 1, 0));
                }
            }
        }
        assert_eq!(
            Geometry::new(LayoutKind::Line, 3, 32)
                .unwrap()
                .request_stride(),
            576
        );
    }

    #[test]
    fn meta_words_come_apart() {
        let meta = request::meta(0xFFFF, request::OPENING | request::LONG_OPCODE, 64);
        assert_eq!(request::opcode(meta), 0xFFFF);
        assert_eq!(request::bytes(meta), 64);
        assert_eq!(meta & request::IN_PACKETS, 0);
        let meta = reply::meta(reply::MAX_STATUS, reply::IN_PACKETS, 64);
        assert_eq!(reply::status(meta), reply::MAX_STATUS);
        assert_ne!(meta & reply::IN_PACKETS, 0);
        assert_eq!(reply::bytes(meta), 64);
        assert_eq!(
            tail::unpack(tail::pack(7, [1, 2, u32::MAX])),
            (7, [1, 2, u32::MAX])
        );
    }

    #[test]
    fn sequence_numbers_alternate_and_0_never_comes_again() {
        assert_eq!(next_sequence(0), 1);
        assert_eq!(next_sequence(u32::MAX - 1), u32::MAX);
        assert_eq!(next_sequence(u32::MAX), 2);
    }

    #[test]
    fn impossible_shapes_are_refused() {
        assert_eq!(Geometry::new(LayoutKind::Line, 0, 32), None);
        assert_eq!(Geometry::new(LayoutKind::Line, MAX_PORTS + 1, 32), None);
        assert_eq!(Geometry::new(LayoutKind::Line, 1, 0), None);
        assert_eq!(Geometry::new(LayoutKind::Line, 1, 65), None);
    }
}
