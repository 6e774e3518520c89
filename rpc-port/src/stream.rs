//! How a message is cut into packets and put together again.
//!
//! All lanes of a port send and receive in step, so one [`Cursor`] serves them all; only lengths
//! differ. There is no waiting here: blocking and resumable callers share this.

use rpc_types::Packet;
use rpc_types::packet::MAX_LANES;
use rpc_types::stream::LENGTH_SIZE;

/// How far a message has come: the bytes in front of the next packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    payload: usize,
    position: u64,
    first: bool,
}

impl Cursor {
    /// In front of the first packet, of `payload` bytes.
    pub const fn new(payload: usize) -> Self {
        Self {
            payload,
            position: 0,
            first: true,
        }
    }

    /// Bytes of the next packet that are not message.
    const fn head(&self) -> usize {
        if self.first { LENGTH_SIZE } else { 0 }
    }

    /// Whether a message of `length` bytes needs another packet: it needs at least one.
    #[inline(always)]
    pub const fn more(&self, length: u64) -> bool {
        self.first || self.position < length
    }

    /// Goes behind the next packet.
    #[inline(always)]
    pub const fn advance(&mut self) {
        self.position += (self.payload - self.head()) as u64;
        self.first = false;
    }

    /// Bytes of a message of `length` bytes that the next packet carries.
    #[inline(always)]
    const fn count(&self, length: u64) -> usize {
        let left = length.saturating_sub(self.position);
        let room = self.payload - self.head();
        if left < room as u64 {
            left as usize
        } else {
            room
        }
    }

    /// Puts the next part of `message` into `packet`; past the end it changes nothing.
    #[inline(always)]
    pub fn put(&self, message: &[u8], packet: &mut Packet) {
        if self.first {
            packet.words[0] = message.len() as u64;
        }
        // The packet ends before the message or the message before it; no slicing that could fail,
        // since on a device each check that can panic brings the panic's report into the image.
        let rest = message.get(self.position as usize..).unwrap_or_default();
        let bytes = packet.bytes_mut().get_mut(self.head()..self.payload);
        let room = bytes.unwrap_or_default();
        let count = rest.len().min(room.len());
        room[..count].copy_from_slice(&rest[..count]);
    }

    /// Takes the next part of the message on `lane` out of `packet`. `length` is the message's
    /// length, learned from the first packet. `false` if the sink refuses it.
    #[inline(always)]
    pub fn take(&self, lane: u32, length: &mut u64, packet: &Packet, sink: &mut impl Sink) -> bool {
        if self.first {
            *length = packet.words[0];
            if !sink.begin(lane, *length) {
                *length = 0;
                return false;
            }
        }
        let count = self.count(*length);
        if count > 0 {
            sink.chunk(lane, &packet.bytes()[self.head()..][..count]);
        }
        true
    }
}

/// What a receiver does with each lane's message.
pub trait Sink {
    /// A message of `length` bytes begins on `lane`. The length is what the other side says; it
    /// may be anything. `false` refuses it: no byte of it will come.
    fn begin(&mut self, lane: u32, length: u64) -> bool;

    /// The next bytes of the message on `lane`: never more than announced in all.
    fn chunk(&mut self, lane: u32, bytes: &[u8]);
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
        room[..count].copy_from_slice(&bytes[..count]);
        self.received += bytes.len();
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
