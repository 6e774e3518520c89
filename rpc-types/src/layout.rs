//! Where everything lies.
//!
//! Two regions are used. The **shared** region is memory that the device and the host both reach
//! (pinned host memory, fine-grained memory); the **private** region is plain device memory that
//! the host only allocates and zeroes. Both start as all zeros. Offsets are in bytes; each array
//! of the shared region starts on a page of its own, so that no page is written by both sides'
//! mailboxes.

/// A page: the alignment of the arrays in the shared region.
pub const PAGE: usize = 4096;
/// Bytes between two ports' request lines in [`LayoutKind::Line`].
pub const REQUEST_STRIDE: usize = 64;
/// Bytes between two ports' reply words in [`LayoutKind::Line`]: closer, replies of different
/// ports share what the GPU fetches in one read, and each waits for the other's.
pub const REPLY_STRIDE: usize = 32;
/// Most ordinary ports a client can have.
pub const MAX_PORTS: u32 = 1 << 16;

/// The layouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum LayoutKind {
    /// One mailbox bit per port, opcodes in the packets: the smallest.
    Compact = 1,
    /// A line per request, reply words apart: the default, made for PCIe.
    Line = 2,
}

impl LayoutKind {
    /// The layout with this number in an image, or `None` if there is no such layout.
    pub const fn from_number(number: u32) -> Option<Self> {
        match number {
            1 => Some(Self::Compact),
            2 => Some(Self::Line),
            _ => None,
        }
    }

    /// Payload bytes of a packet.
    pub const fn payload(self) -> usize {
        match self {
            Self::Compact => 62,
            Self::Line => 64,
        }
    }

    /// The layout's name as people write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Compact => "Compact",
            Self::Line => "Line",
        }
    }
}

/// Offsets within a [`LayoutKind::Line`] request line.
pub mod request {
    /// The client's sequence number, `u32`: its parity is the client's outbox.
    pub const SEQUENCE: usize = 0;
    /// The opcode, `u32`, written before the first hand-over.
    pub const OPCODE: usize = 4;
    /// The lanes that take part, `u64`, written before the first hand-over.
    pub const MASK: usize = 8;
    /// The sequence number that opened the conversation, `u32`: tells the server when a client
    /// has given up a conversation half-way and begun another.
    pub const OPENED: usize = 16;
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

const fn pages(bytes: usize) -> usize {
    bytes.next_multiple_of(PAGE)
}

impl Geometry {
    /// The geometry, or `None` unless there are 1 to [`MAX_PORTS`] ports and 1 to 64 lanes.
    pub const fn new(layout: LayoutKind, ports: u32, lanes: u32) -> Option<Self> {
        if ports == 0 || ports > MAX_PORTS || lanes == 0 || lanes > crate::packet::MAX_LANES {
            return None;
        }
        Some(Self {
            layout,
            ports,
            lanes,
        })
    }

    /// All ports, the panic handler's included.
    pub const fn total_ports(&self) -> u32 {
        self.ports + 1
    }

    /// The port of the panic handler.
    pub const fn panic_port(&self) -> u32 {
        self.ports
    }

    const fn total(&self) -> usize {
        self.total_ports() as usize
    }

    const fn bitmap_bytes(&self) -> usize {
        self.total().div_ceil(32) * 4
    }

    // The shared region.

    /// The stop word, `u32`: nonzero once the host has told the device to end.
    pub const STOP: usize = 0;

    /// The client's mailboxes: request lines, or bits in `u32` words.
    pub const fn requests(&self) -> usize {
        PAGE
    }

    /// [`LayoutKind::Compact`]: the mask of each port, `u64` each, written by the client.
    pub const fn masks(&self) -> usize {
        self.requests() + self.bitmap_bytes().next_multiple_of(64)
    }

    /// [`LayoutKind::Compact`]: the sequence number that opened the conversation of each port, `u32`
    /// each, written by the client; as [`request::OPENED`] in [`LayoutKind::Line`].
    pub const fn openings(&self) -> usize {
        self.masks() + self.total() * 8
    }

    /// The server's mailboxes: reply words (`u64`: sequence number, then status), or bits in
    /// `u32` words.
    pub const fn replies(&self) -> usize {
        match self.layout {
            LayoutKind::Line => self.requests() + pages(self.total() * REQUEST_STRIDE),
            LayoutKind::Compact => pages(self.openings() + self.total() * 4),
        }
    }

    /// [`LayoutKind::Compact`]: the status of each port, `u32` each, written by the server.
    pub const fn statuses(&self) -> usize {
        self.replies() + self.bitmap_bytes().next_multiple_of(64)
    }

    /// The packets: `[port][lane]`, 64 bytes each.
    pub const fn packets(&self) -> usize {
        match self.layout {
            LayoutKind::Line => self.replies() + pages(self.total() * REPLY_STRIDE),
            LayoutKind::Compact => pages(self.statuses() + self.total() * 4),
        }
    }

    /// Where the packet of `lane` of `port` lies.
    pub const fn packet(&self, port: u32, lane: u32) -> usize {
        self.packets()
            + (port as usize * self.lanes as usize + lane as usize) * crate::packet::PACKET_SIZE
    }

    /// Bytes of the shared region.
    pub const fn shared_size(&self) -> usize {
        pages(self.packet(self.total_ports(), 0))
    }

    // The private region.

    /// Numbers given to messages that are printed in parts, `u32`.
    pub const MESSAGES: usize = 0;
    /// Which thread is reporting a panic, `u64`: 0 for none.
    pub const PANICKING: usize = 8;

    /// The lock bit of each port.
    pub const fn locks(&self) -> usize {
        64
    }

    /// A bit for each port whose last call was asynchronous: a hint, [`Self::states`] knows.
    pub const fn in_flight(&self) -> usize {
        self.locks() + self.bitmap_bytes().next_multiple_of(64)
    }

    /// The state of each port, `u64`: in the low half the client's sequence number, its copy of its
    /// own outbox; in the high half 1 if the last call was asynchronous, else 0.
    pub const fn states(&self) -> usize {
        self.in_flight() + self.bitmap_bytes().next_multiple_of(64)
    }

    /// The lanes that still hold each port, `u64`.
    pub const fn holders(&self) -> usize {
        self.states() + self.total() * 8
    }

    /// Bytes of the private region.
    pub const fn private_size(&self) -> usize {
        pages(self.holders() + self.total() * 8)
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
                (g.requests(), total * 64),
                (g.replies(), total * 32),
                packets,
            ]),
            LayoutKind::Compact => Vec::from([
                (g.requests(), bits),
                (g.masks(), total * 8),
                (g.openings(), total * 4),
                (g.replies(), bits),
                (g.statuses(), total * 4),
                packets,
            ]),
        };
        let private = Vec::from([
            (0, 64),
            (g.locks(), bits),
            (g.in_flight(), bits),
            (g.states(), total * 8),
            (g.holders(), total * 8),
        ]);
        [shared, private]
    }

    #[test]
    fn arrays_lie_in_order_and_do_not_overlap() {
        for layout in [LayoutKind::Line, LayoutKind::Compact] {
            for ports in [1, 2, 31, 32, 33, 1000, 4095, MAX_PORTS] {
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
                    assert_eq!(g.requests() % PAGE, 0);
                    assert_eq!(g.replies() % PAGE, 0, "mailboxes lie in different pages");
                    assert_eq!(g.packets() % PAGE, 0);
                }
            }
        }
    }

    #[test]
    fn impossible_shapes_are_refused() {
        assert_eq!(Geometry::new(LayoutKind::Line, 0, 32), None);
        assert_eq!(Geometry::new(LayoutKind::Line, MAX_PORTS + 1, 32), None);
        assert_eq!(Geometry::new(LayoutKind::Line, 1, 0), None);
        assert_eq!(Geometry::new(LayoutKind::Line, 1, 65), None);
    }
}
