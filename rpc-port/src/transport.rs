//! How a layout carries a port.

use rpc_bitmap::{Memory, System};
use rpc_types::{Geometry, LayoutKind, Opcode, Packet, Status};

mod compact;
mod line;

pub use compact::Compact;
pub use line::Line;

/// What the client writes when it opens a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What the call asks for.
    pub opcode: Opcode,
    /// The lanes that take part.
    pub mask: u64,
    /// Which conversation on this port, where the layout carries it (ours do): the client's sequence
    /// number at its first hand-over.
    pub opened: Option<u32>,
}

/// A mailbox as its reader finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The flag: changes with each hand-over.
    pub parity: bool,
    /// What came in the same word as the flag, if the layout puts it there.
    pub status: Option<Status>,
}

/// One layout: the only code that touches shared memory.
///
/// `poll` reads a flag, relaxed. `publish` writes one: everything this thread wrote before, and
/// everything others wrote that it has synchronised with, is seen by whoever polls the flag and
/// then calls [`acquire`](Self::acquire). `put` and `take` copy a packet and are for the side that
/// owns it. Ports are below [`Geometry::total_ports`], lanes below its `lanes`.
pub trait Transport: Clone {
    /// The memory that both sides reach.
    type Shared: Memory<Scope = System>;

    /// Which layout this is.
    const KIND: LayoutKind;

    /// The layout over a shared region of [`Geometry::shared_size`] bytes.
    fn new(shared: Self::Shared, geometry: Geometry) -> Self;

    /// The geometry.
    fn geometry(&self) -> &Geometry;

    /// The region.
    fn shared(&self) -> &Self::Shared;

    /// Client: reads the server's flag.
    fn poll_reply(&self, port: u32) -> Turn;

    /// Client: the status that goes with a reply whose flag has been acquired.
    fn reply_status(&self, port: u32, turn: Turn) -> Status;

    /// Client: hands the port over by sequence number `sequence`, one more than the last. With the
    /// first hand-over of a conversation goes its header.
    fn publish_request(&self, port: u32, sequence: u32, opening: Option<&Header>);

    /// Server: reads the client's flag.
    fn poll_request(&self, port: u32) -> bool;

    /// Server: reads the header of a request whose flag has been acquired.
    fn header(&self, port: u32) -> Header;

    /// Server: which conversation the client is in, where the layout carries it.
    fn opened(&self, port: u32) -> Option<u32>;

    /// Server: its own flag.
    fn outbox(&self, port: u32) -> bool;

    /// Server: hands the port back.
    fn publish_reply(&self, port: u32, status: Status);

    /// Writes the first `bytes` bytes of a lane's packet; `opening` with the first one of a
    /// conversation.
    fn put(&self, port: u32, lane: u32, packet: &Packet, bytes: usize, opening: Option<Opcode>);

    /// Reads the first `bytes` bytes of a lane's packet.
    fn take(&self, port: u32, lane: u32, packet: &mut Packet, bytes: usize);

    /// After a flag was seen turned: what the other side wrote before it turned it is seen now.
    #[inline(always)]
    fn acquire(&self) {
        self.shared().acquire_fence();
    }

    /// Whether the host has told the device to end.
    #[inline(always)]
    fn stopped(&self) -> bool {
        self.shared().load32(Geometry::STOP) != 0
    }

    /// Tells the device to end: waiting device code finds out within 1024 polls.
    fn stop(&self) {
        self.shared().store32(Geometry::STOP, 1);
    }
}

/// Words that hold `bytes` bytes.
#[inline(always)]
const fn words(bytes: usize) -> usize {
    bytes.div_ceil(8)
}
