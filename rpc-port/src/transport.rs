//! How a layout carries a port.

use rpc_bitmap::{Memory, System};
use rpc_types::layout::{SUMMARY_PORTS, SUMMARY_SHIFT};
use rpc_types::packet::MAX_LANES;
use rpc_types::{Geometry, LayoutKind, Opcode, Packet, Status};

mod compact;
mod line;
mod llvm;

pub use compact::Compact;
pub use line::{Line, LineOf, Places};
pub use llvm::{First, Llvm, Llvm22, LlvmOf, Mailboxes};

pub use rpc_types::packet::WORD_BYTES;

/// A word for each lane that a warp can have.
pub type Words = [u64; MAX_LANES as usize];

/// Room for all lanes' messages of a call.
#[derive(Clone, Debug)]
pub struct Room {
    /// What is in the lanes' words.
    pub words: Words,
    /// Messages that are longer than a word, if they came in numbered words.
    pub packets: [Packet; MAX_LANES as usize],
}

impl Room {
    /// Nothing but zeros.
    pub const EMPTY: Self = Self {
        words: [0; MAX_LANES as usize],
        packets: [Packet::ZERO; MAX_LANES as usize],
    };
}

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
    /// Bytes of each lane's message, where the layout says so.
    pub bytes: usize,
    /// The client looks at each lane's word.
    pub by_lane: bool,
}

impl Header {
    /// There is a message, in the lanes' words and their tails.
    #[inline(always)]
    pub const fn by_number(&self) -> bool {
        self.bytes > 0 && !self.in_packets
    }

    /// There is a message, in the lanes' words alone.
    #[inline(always)]
    pub const fn in_words(&self) -> bool {
        self.by_number() && self.bytes <= WORD_BYTES
    }
}

/// A reply as the client finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// What came in the same word as the flag, if the layout puts it there.
    pub status: Option<Status>,
    /// The message's first bytes, unless it is in the packets.
    pub word: u64,
    /// Bytes of the message, unless it is in the packets.
    pub bytes: usize,
    /// The message is in the packets.
    pub in_packets: bool,
}

/// One layout: the only code that touches shared memory.
///
/// `poll_...` looks at a flag, relaxed. What came in the same word as the flag may be used at once.
/// Everything else needs [`acquire`](Self::acquire) after the look: then all is seen that the other
/// side's `publish_...` released. `put` and `take` copy a packet and are for the side that owns it.
/// Ports are below [`Geometry::total_ports`], lanes and packets below its `lanes`.
///
/// What has a body is for layouts without words of 16 bytes: nothing is in words there.
pub trait Transport: Clone {
    /// The memory that both sides reach.
    type Shared: Memory<Scope = System>;

    /// Which layout this is.
    const KIND: LayoutKind;

    /// Whether each packet carries the opcode at the opening, so that each is to be written.
    const OPCODE_IN_PACKETS: bool;

    /// Whether a lane of a stream may use the packets of idle lanes.
    const SPREADS: bool;

    /// Whether a client can be told that its call failed. Where it cannot, such a call gets no answer,
    /// since its client would take its own request for one.
    const HAS_STATUS: bool = true;

    /// Whether clients leave word of their requests for a server that sleeps.
    const ANNOUNCES: bool = true;

    /// Where a server finds things, worked out once.
    type Places: Copy + core::fmt::Debug + Send + Sync + 'static;

    /// The layout over a shared region of [`Geometry::shared_size`] bytes.
    fn new(shared: Self::Shared, geometry: Geometry) -> Self;

    /// Server: where things are, to be given to the methods that ask for it.
    fn places(&self) -> Self::Places;

    /// The geometry.
    fn geometry(&self) -> &Geometry;

    /// The region.
    fn shared(&self) -> &Self::Shared;

    /// Whether this side, a client, looks for replies lane by lane, and sends short messages in
    /// words.
    #[inline(always)]
    fn by_lane(&self) -> bool {
        false
    }

    /// Client: writes a lane's message, to be read with the request of number `sequence`.
    #[inline(always)]
    fn put_word(&self, port: u32, lane: u32, sequence: u32, word: u64) {
        let _ = (port, lane, sequence, word);
    }

    /// Client: writes what of a lane's message does not go into its word, as
    /// [`put_word`](Self::put_word) writes that.
    #[inline(always)]
    fn put_tails(&self, port: u32, lane: u32, sequence: u32, packet: &Packet, bytes: usize) {
        let _ = (port, lane, sequence, packet, bytes);
    }

    /// Client: hands the port over.
    fn publish_request(&self, port: u32, request: &Request);

    /// Client: looks for the reply to request `sequence`, on `lane` if it looks lane by lane.
    fn poll_reply(&self, port: u32, lane: u32, sequence: u32) -> Option<Reply>;

    /// Client: reads the first `bytes` bytes of what of a lane's `reply` to request `sequence` is not
    /// in its word; `false` while it is on its way.
    #[inline(always)]
    fn take_reply_tails(
        &self,
        port: u32,
        sequence: u32,
        reply: &Reply,
        of_lane: (u32, &mut Packet),
        bytes: usize,
    ) -> bool {
        let _ = (port, sequence, reply, of_lane, bytes);
        true
    }

    /// Client: the status of a reply that has been acquired.
    fn reply_status(&self, port: u32, reply: &Reply) -> Status;

    /// Client: what is to be done before the sequence numbers of `port` start again.
    #[inline(always)]
    fn restart(&self, port: u32) {
        let _ = port;
    }

    /// Server: whether there is another request than the one of number `answered`.
    fn poll_request(&self, port: u32, answered: u32) -> bool;

    /// Server: reads a request whose flag has been acquired; `None` while words of its lanes are on
    /// their way.
    fn header(&self, port: u32, answered: u32) -> Option<Header>;

    /// Server: which of the `N` ports from `first` on have another request than the one of the number
    /// in `answered`, a bit each. Made to cost little where none has.
    #[inline(always)]
    fn poll_each<const N: usize>(
        &self,
        places: &Self::Places,
        first: u32,
        answered: &[u32; N],
    ) -> u32 {
        let _ = places;
        let has =
            |(i, answered): (u32, &u32)| u32::from(self.poll_request(first + i, *answered)) << i;
        (0..).zip(answered).map(has).sum()
    }

    /// Server: the ports from `first` on will be polled soon. A hint.
    #[inline(always)]
    fn prefetch_flags(&self, places: &Self::Places, first: u32, count: u32) {
        let _ = (places, first, count);
    }

    /// Server: `port`, which has a request, will be opened soon and answered. A hint.
    #[inline(always)]
    fn prefetch_request(&self, places: &Self::Places, port: u32) {
        let _ = (places, port);
    }

    /// Server: polls, acquires and reads a request's header, and all lanes' messages if they are in
    /// numbered words: those that are longer than a word into the packets. `None` if there is no request but that of number `answered`, or not all of it.
    #[inline(always)]
    fn take_request(
        &self,
        places: &Self::Places,
        port: u32,
        answered: u32,
        room: &mut Room,
    ) -> Option<Header> {
        let _ = (places, room);
        if !self.poll_request(port, answered) {
            return None;
        }
        self.acquire();
        self.header(port, answered)
    }

    /// Server: answers all lanes of a request, as [`put_reply_word`](Self::put_reply_word) does one.
    #[inline(always)]
    fn put_reply_words(
        &self,
        places: &Self::Places,
        port: u32,
        header: &Header,
        bytes: usize,
        words: &Words,
    ) {
        let _ = places;
        for lane in lanes(header.mask) {
            self.put_reply_word(port, lane, header.sequence, bytes, words[lane as usize]);
        }
    }

    /// Server: a lane's message of a request that is in words.
    #[inline(always)]
    fn take_word(&self, port: u32, lane: u32) -> u64 {
        let _ = (port, lane);
        0
    }

    /// Server: reads what of a lane's message is not in its word, once [`header`](Self::header) or
    /// [`take_request`](Self::take_request) has seen it.
    #[inline(always)]
    fn take_tails(&self, port: u32, lane: u32, packet: &mut Packet, bytes: usize) {
        let _ = (port, lane, packet, bytes);
    }

    /// Server: writes what of all lanes' replies does not go into their words, before
    /// [`put_reply_words`](Self::put_reply_words).
    #[inline(always)]
    fn put_reply_tails(
        &self,
        places: &Self::Places,
        port: u32,
        header: &Header,
        bytes: usize,
        room: &Room,
    ) {
        let _ = (places, port, header, bytes, room);
    }

    /// Server: answers one lane, with a message in its word; all lanes of the mask are to be
    /// answered. Only if the client looks lane by lane.
    #[inline(always)]
    fn put_reply_word(&self, port: u32, lane: u32, sequence: u32, bytes: usize, word: u64) {
        let _ = (port, lane, sequence, bytes, word);
    }

    /// Server: hands the port back, with a status and, if `in_packets`, with what it put into them.
    fn publish_reply(&self, port: u32, header: &Header, status: Status, in_packets: bool);

    /// Writes the first `bytes` bytes of a packet; `opening` with the first one of a conversation.
    fn put(&self, port: u32, index: u32, packet: &Packet, bytes: usize, opening: Option<Opcode>);

    /// Reads the first `bytes` bytes of a packet.
    fn take(&self, port: u32, index: u32, packet: &mut Packet, bytes: usize);

    /// Server, after `answered` was the number of the last request and before it answers `sequence`.
    #[inline(always)]
    fn before_reply(&self, port: u32, answered: u32, sequence: u32) {
        let _ = (port, answered, sequence);
    }

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
        let word = (port % SUMMARY_PORTS) << SUMMARY_SHIFT | sequence & ((1 << SUMMARY_SHIFT) - 1);
        self.shared().store32(self.geometry().summary(port), word);
    }

    /// Server: what was left in summary word `index`, or what changes with the requests of its ports.
    #[inline(always)]
    fn announced(&self, places: &Self::Places, index: u32) -> u64 {
        let _ = places;
        let port = index * SUMMARY_PORTS;
        self.shared().load32(self.geometry().summary(port)).into()
    }

    /// Whether the host has told the device to end.
    #[inline(always)]
    fn stopped(&self) -> bool {
        self.shared().load32(self.geometry().stop()) != 0
    }

    /// Tells the device to end: waiting device code finds out within 1024 polls.
    fn stop(&self) {
        self.shared().store32(self.geometry().stop(), 1);
    }
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
