//! How a message is cut into packets and put together again.
//!
//! All lanes of a port send and receive in step, so one [`Cursor`] serves them all; only lengths
//! differ. There is no waiting here: blocking and resumable callers share this.

use rpc_types::Packet;
use rpc_types::packet::{MAX_LANES, PACKET_SIZE, PACKET_WORDS};
use rpc_types::stream::LENGTH_SIZE;

/// How far a message has come: the bytes in front of the next hand-over, which carries some packets
/// for each lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    payload: usize,
    parts: usize,
    position: u64,
    first: bool,
}

impl Cursor {
    /// In front of the first hand-over, of `parts` packets with `payload` bytes for each lane.
    pub const fn new(payload: usize, parts: usize) -> Self {
        Self {
            payload,
            parts,
            position: 0,
            first: true,
        }
    }

    /// Whether the next hand-over is the first.
    pub const fn is_first(&self) -> bool {
        self.first
    }

    /// Bytes of packet `part` that are not message.
    const fn head(&self, part: usize) -> usize {
        if self.first && part == 0 {
            LENGTH_SIZE
        } else {
            0
        }
    }

    /// Bytes of message that a hand-over has room for.
    const fn room(&self) -> usize {
        self.payload * self.parts - self.head(0)
    }

    /// Whether a message of `length` bytes needs another hand-over: it needs at least one.
    #[inline(always)]
    pub const fn more(&self, length: u64) -> bool {
        self.first || self.position < length
    }

    /// Goes behind the next hand-over.
    #[inline(always)]
    pub const fn advance(&mut self) {
        self.position += self.room() as u64;
        self.first = false;
    }

    /// How many packets of the next hand-over a message of `length` bytes uses.
    #[inline(always)]
    pub const fn parts(&self, length: u64) -> usize {
        let left = length.saturating_sub(self.position);
        let room = self.room();
        let bytes = if left < room as u64 {
            left as usize
        } else {
            room
        };
        (bytes + self.head(0)).div_ceil(self.payload)
    }

    /// Where packet `part` of the next hand-over starts in its message.
    #[inline(always)]
    const fn start(&self, part: usize) -> u64 {
        let skipped = if part == 0 {
            0
        } else {
            part * self.payload - self.head(0)
        };
        self.position + skipped as u64
    }

    /// Packet `part` of the next hand-over; past the end it is empty. `BY_WORD` copies words where the
    /// message is aligned to them, for long ones: it takes more code.
    #[inline(always)]
    pub fn put<const BY_WORD: bool>(&self, message: &[u8], part: usize) -> Packet {
        let mut packet = Packet::ZERO;
        let length = message.len() as u64;
        let head = self.head(part);
        if head > 0 {
            packet.words[0] = length;
        }
        let start = self.start(part) as usize;
        if BY_WORD
            && head == 0
            && self.payload == PACKET_SIZE
            && let (unaligned, words, _) = bytemuck::pod_align_to::<u8, u64>(message)
            && unaligned.is_empty()
            && let Some(words) = words.get(start / 8..start / 8 + PACKET_WORDS)
            && let Ok(words) = words.try_into()
        {
            // All of the packet at once, through registers.
            packet.words = words;
            return packet;
        }
        // The packet ends before the message or the message before it; no slicing that could fail,
        // since on a device each check that can panic brings the panic's report into the image.
        let rest = message.get(start..).unwrap_or_default();
        let room = packet.bytes_mut().get_mut(head..self.payload);
        let room = room.unwrap_or_default();
        let count = rest.len().min(room.len());
        copy::<BY_WORD>(&rest[..count], &mut room[..count]);
        packet
    }

    /// Takes packet `part` of the message on `lane`, which is `length` bytes long. The first one
    /// tells the length: [`length`](Self::length).
    #[inline(always)]
    pub fn take(
        &self,
        lane: u32,
        part: usize,
        length: u64,
        packet: &Packet,
        sink: &mut (impl Sink + ?Sized),
    ) {
        let left = length.saturating_sub(self.start(part));
        let bytes = packet.bytes().get(self.head(part)..self.payload);
        let bytes = bytes.unwrap_or_default();
        let count = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        if count > 0 {
            sink.chunk(lane, &bytes[..count]);
        }
    }

    /// The length that the first packet tells, with [`REFERENCE`](rpc_types::stream::REFERENCE) if
    /// the message does not follow.
    #[inline(always)]
    pub const fn length(packet: &Packet) -> u64 {
        packet.words[0]
    }
}

/// Copies bytes; on a GPU a copy of bytes that are not known to be aligned goes byte by byte.
#[inline(always)]
fn copy<const BY_WORD: bool>(from: &[u8], to: &mut [u8]) {
    if BY_WORD {
        let (head, words, tail) = bytemuck::pod_align_to::<u8, u64>(from);
        let (other_head, places, other_tail) = bytemuck::pod_align_to_mut::<u8, u64>(to);
        if head.is_empty() && other_head.is_empty() && words.len() == places.len() {
            for (place, word) in places.iter_mut().zip(words) {
                *place = *word;
            }
            for (place, byte) in other_tail.iter_mut().zip(tail) {
                *place = *byte;
            }
            return;
        }
    }
    for (place, byte) in to.iter_mut().zip(from) {
        *place = *byte;
    }
}

/// What a receiver does with each lane's message.
pub trait Sink {
    /// A message of `length` bytes begins on `lane`. The length is what the other side says; it
    /// may be anything. `false` refuses it: no byte of it will come.
    fn begin(&mut self, lane: u32, length: u64) -> bool;

    /// The next bytes of the message on `lane`: never more than announced in all.
    fn chunk(&mut self, lane: u32, bytes: &[u8]);

    /// On a server: the message on `lane`, of `length` bytes, lies at device address `address`, and no
    /// byte of it will come. `false` refuses it.
    fn refer(&mut self, lane: u32, length: u64, address: u64) -> bool {
        let _ = (lane, length, address);
        false
    }

    /// On a client: where the message on `lane`, which has begun, may be put as a whole, as far as there is room;
    /// `None` if it is to come in chunks.
    fn room(&mut self, lane: u32) -> Option<&mut [u8]> {
        let _ = lane;
        None
    }

    /// On a client: the first `bytes` bytes of the message were put into [`room`](Self::room); no others come.
    fn filled(&mut self, lane: u32, bytes: usize) {
        let _ = (lane, bytes);
    }
}

/// The first bytes of one lane's message, as many as fit into a slice.
#[derive(Debug)]
pub struct Prefix<'b> {
    buffer: &'b mut [u8],
    length: u64,
    received: usize,
}

impl<'b> Prefix<'b> {
    /// A sink that fills `buffer` and forgets what does not fit.
    pub const fn new(buffer: &'b mut [u8]) -> Self {
        Self {
            buffer,
            length: 0,
            received: 0,
        }
    }

    /// The message's length, which may be more than the buffer's.
    pub const fn length(&self) -> u64 {
        self.length
    }
}

impl Sink for Prefix<'_> {
    #[inline(always)]
    fn begin(&mut self, _: u32, length: u64) -> bool {
        self.length = length;
        true
    }

    #[inline(always)]
    fn chunk(&mut self, _: u32, bytes: &[u8]) {
        let room = self.buffer.get_mut(self.received..).unwrap_or(&mut []);
        let count = bytes.len().min(room.len());
        copy::<true>(&bytes[..count], &mut room[..count]);
        self.received += bytes.len();
    }

    #[inline(always)]
    fn room(&mut self, _: u32) -> Option<&mut [u8]> {
        Some(self.buffer)
    }

    #[inline(always)]
    fn filled(&mut self, _: u32, bytes: usize) {
        self.received = bytes;
    }
}

/// A length for each lane that a process stands for.
pub trait Lengths {
    /// All zero.
    const ZERO: Self;
    /// The length of `lane`.
    fn of(&mut self, lane: u32) -> &mut u64;
}

/// The length of the caller's own lane.
#[derive(Clone, Copy, Debug)]
pub struct OwnLength(u64);

/// The lengths of all lanes.
#[derive(Clone, Copy, Debug)]
pub struct AllLengths([u64; MAX_LANES as usize]);

impl Lengths for OwnLength {
    const ZERO: Self = Self(0);

    #[inline(always)]
    fn of(&mut self, _: u32) -> &mut u64 {
        &mut self.0
    }
}

impl Lengths for AllLengths {
    const ZERO: Self = Self([0; MAX_LANES as usize]);

    fn of(&mut self, lane: u32) -> &mut u64 {
        &mut self.0[lane as usize]
    }
}
