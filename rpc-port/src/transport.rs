//! How a layout carries a port.

use rpc_bitmap::{Memory, System};
use rpc_types::{Geometry, LayoutKind, Opcode, Packet, Status};

mod compact;
mod line;

pub use compact::Compact;
pub use line::{Line, LineOf};

/// Most bytes of a message that travel in a word with their flag.
pub const WORD_BYTES: usize = 8;

/// What the client hands over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
// Flags of the wire.
#[allow(clippy::struct_excessive_bools)]
pub struct Request {
    /// The client's sequence number: the next one.
    pub sequence: u32,
    /// What the call asks for.
    pub opcode: Opcode,
    /// The lanes that take part.
    pub mask: u64,
    /// It begins a conversation.
    pub opening: bool,
    /// Bytes of each lane's message.
    pub bytes: usize,
    /// The message is in the packets, else in the words.
    pub in_packets: bool,
    /// Each lane looks for the reply, else the leader alone.
    pub by_lane: bool,
    /// What the lanes wrote before, anywhere, is to be seen by whoever sees this.
    pub ordered: bool,
}

/// A request as the server finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What the call asks for.
    pub opcode: Opcode,
    /// The lanes that take part, as the client says.
    pub mask: u64,
    /// What answers it.
    pub sequence: u32,
    /// Which conversation on this port, where the hand-over says so: the client's sequence number
    /// at its first one. Another one than before means that the client has begun anew.
    pub opened: Option<u32>,
    /// The message is in the packets, else in the words.
    pub in_packets: bool,
    /// It has any bytes.
    pub any_bytes: bool,
    /// The client looks at each lane's word.
    pub by_lane: bool,
}

/// A reply as the client finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// What came in the same word as the flag, if the layout puts it there.
    pub status: Option<Status>,
    /// The message, unless it is in the packets.
    pub word: u64,
    /// The message is in the packets.
    pub in_packets: bool,
}

/// One layout: the only code that touches shared memory.
///
/// `poll_...` looks at a flag, relaxed. What came in the same word as the flag may be used at once.
/// Everything else needs [`acquire`](Self::acquire) after the look: then all is seen that the other
/// side's `publish_...` released. `put` and `take` copy a packet and are for the side that owns it.
/// Ports are below [`Geometry::total_ports`], lanes and packets below its `lanes`.
pub trait Transport: Clone {
    /// The memory that both sides reach.
    type Shared: Memory<Scope = System>;

    /// Which layout this is.
    const KIND: LayoutKind;

    /// Whether each packet carries the opcode at the opening, so that each is to be written.
    const OPCODE_IN_PACKETS: bool;

    /// Whether a lane of a stream may use the packets of idle lanes.
    const SPREADS: bool;

    /// The layout over a shared region of [`Geometry::shared_size`] bytes.
    fn new(shared: Self::Shared, geometry: Geometry) -> Self;

    /// The geometry.
    fn geometry(&self) -> &Geometry;

    /// The region.
    fn shared(&self) -> &Self::Shared;

    /// Whether this side, a client, looks for replies lane by lane, and sends short messages in
    /// words.
    fn by_lane(&self) -> bool;

    /// Client: writes a lane's message, to be read with the request of number `sequence`.
    fn put_word(&self, port: u32, lane: u32, sequence: u32, word: u64);

    /// Client: hands the port over.
    fn publish_request(&self, port: u32, request: &Request);

    /// Client: reads what there is of a reply, on `lane` if it looks lane by lane. Two looks may be
    /// under way at a time: what is read is used by [`reply`](Self::reply).
    fn look(&self, port: u32, lane: u32) -> [u64; 2];

    /// Client: the reply to request `sequence`, if that was what a look has seen.
    fn reply(&self, port: u32, seen: [u64; 2], sequence: u32) -> Option<Reply>;

    /// Client: looks for the reply to request `sequence`, on `lane` if it looks lane by lane.
    #[inline(always)]
    fn poll_reply(&self, port: u32, lane: u32, sequence: u32) -> Option<Reply> {
        self.reply(port, self.look(port, lane), sequence)
    }

    /// Client: the status of a reply that has been acquired.
    fn reply_status(&self, port: u32, reply: &Reply) -> Status;

    /// Client: what is to be done before the sequence numbers of `port` start again.
    fn restart(&self, port: u32);

    /// Server: whether there is another request than the one of number `answered`.
    fn poll_request(&self, port: u32, answered: u32) -> bool;

    /// Server: reads a request whose flag has been acquired; `None` while words of its lanes are on
    /// their way.
    fn header(&self, port: u32, answered: u32) -> Option<Header>;

    /// Server: a lane's message of a request that is in words.
    fn take_word(&self, port: u32, lane: u32) -> u64;

    /// Server: answers one lane, with a message in its word; all lanes of the mask are to be
    /// answered. Only if the client looks lane by lane.
    fn put_reply_word(&self, port: u32, lane: u32, sequence: u32, bytes: usize, word: u64);

    /// Server: hands the port back, with a status and, if `in_packets`, with what it put into them.
    fn publish_reply(&self, port: u32, header: &Header, status: Status, in_packets: bool);

    /// Writes the first `bytes` bytes of a packet; `opening` with the first one of a conversation.
    fn put(&self, port: u32, index: u32, packet: &Packet, bytes: usize, opening: Option<Opcode>);

    /// Reads the first `bytes` bytes of a packet.
    fn take(&self, port: u32, index: u32, packet: &mut Packet, bytes: usize);

    /// Server, after `answered` was the number of the last request and before it answers `sequence`.
    fn before_reply(&self, port: u32, answered: u32, sequence: u32);

    /// After a flag was seen turned: what the other side wrote before it turned it is seen now.
    #[inline(always)]
    fn acquire(&self) {
        self.shared().acquire_fence();
    }

    /// Client: leaves word for a server that sleeps that there is a request.
    #[inline(always)]
    fn announce(&self, port: u32, sequence: u32) {
        // Any change will do, so no two requests in a row may leave the same: relaxed, a server
        // that wakes looks at the ports for a while.
        let word = (port % rpc_types::layout::SUMMARY_PORTS) << 26 | sequence & ((1 << 26) - 1);
        self.shared().store32(self.geometry().summary(port), word);
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

/// Lanes of `mask`, lowest first.
#[inline(always)]
pub(crate) fn lanes(mut mask: u64) -> impl Iterator<Item = u32> {
    core::iter::from_fn(move || {
        let lane = mask.trailing_zeros();
        mask &= mask.wrapping_sub(1);
        (lane < 64).then_some(lane)
    })
}
