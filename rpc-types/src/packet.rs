//! One lane's share of a port.

use bytemuck::{Pod, Zeroable};

/// Bytes of a packet, whatever the layout.
pub const PACKET_SIZE: usize = 64;
/// Words of a packet.
pub const PACKET_WORDS: usize = PACKET_SIZE / 8;
/// Payload bytes every layout has room for: what a typed request or reply may use.
pub const MIN_PAYLOAD: usize = 62;
/// Most lanes a warp can have: the bits of a mask.
pub const MAX_LANES: u32 = 64;

/// Bytes of a message that a lane's word of 16 bytes carries beside its flag.
pub const WORD_BYTES: usize = 8;
/// Bytes of it that each of the tail words carries, beside its number.
pub const TAIL_BYTES: usize = 12;
/// Tail words of the longest message that has any.
pub const TAILS: usize = (PACKET_SIZE - WORD_BYTES).div_ceil(TAIL_BYTES);

/// A local copy of one lane's packet; how many of its bytes are payload is the layout's affair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(64))]
pub struct Packet {
    /// The packet as 8-byte words.
    pub words: [u64; PACKET_WORDS],
}

impl Packet {
    /// A packet of zeros.
    pub const ZERO: Self = Self {
        words: [0; PACKET_WORDS],
    };

    /// The packet as bytes.
    #[inline(always)]
    pub fn bytes(&self) -> &[u8; PACKET_SIZE] {
        bytemuck::cast_ref(&self.words)
    }

    /// The packet as bytes, to be changed.
    #[inline(always)]
    pub fn bytes_mut(&mut self) -> &mut [u8; PACKET_SIZE] {
        bytemuck::cast_mut(&mut self.words)
    }

    /// Puts `value` at the start.
    ///
    /// # Panics
    /// Does not compile if `T` is larger than [`MIN_PAYLOAD`] bytes.
    #[inline(always)]
    pub fn set<T: Pod>(&mut self, value: &T) {
        const { assert_fits::<T>() };
        self.bytes_mut()[..size_of::<T>()].copy_from_slice(bytemuck::bytes_of(value));
    }

    /// The 12 bytes that tail word `tail` of a message carries, those behind its end as zeros.
    #[inline(always)]
    pub const fn tail(&self, tail: usize) -> [u32; 3] {
        let first = tail_start(tail);
        [self.half(first), self.half(first + 1), self.half(first + 2)]
    }

    /// Sets the 12 bytes that tail word `tail` carries.
    #[inline(always)]
    pub const fn set_tail(&mut self, tail: usize, [a, b, c]: [u32; 3]) {
        let first = tail_start(tail);
        self.set_half(first, a);
        self.set_half(first + 1, b);
        self.set_half(first + 2, c);
    }

    /// As [`set_tail`](Self::set_tail), for packets in memory: what behind its number is in `word`.
    #[inline(always)]
    pub fn put_tail(&mut self, tail: usize, [low, high]: [u64; 2]) {
        let place = WORD_BYTES + tail * TAIL_BYTES;
        let bytes = self.bytes_mut();
        bytes[place..place + 4].copy_from_slice(&((low >> 32) as u32).to_le_bytes());
        if place + TAIL_BYTES <= PACKET_SIZE {
            bytes[place + 4..place + 12].copy_from_slice(&high.to_le_bytes());
        } else {
            bytes[place + 4..place + 8].copy_from_slice(&(high as u32).to_le_bytes());
        }
    }

    /// As [`tail`](Self::tail), for packets in memory: the word with number `sequence`.
    #[inline(always)]
    pub fn get_tail(&self, tail: usize, sequence: u32) -> [u64; 2] {
        let place = WORD_BYTES + tail * TAIL_BYTES;
        let half = |place: usize| -> u64 {
            let bytes = self.bytes()[place..].first_chunk();
            bytes.map_or(0, |&bytes| u32::from_le_bytes(bytes)).into()
        };
        let high = if place + TAIL_BYTES <= PACKET_SIZE {
            let bytes = self.bytes()[place + 4..].first_chunk();
            bytes.map_or(0, |&bytes| u64::from_le_bytes(bytes))
        } else {
            half(place + 4)
        };
        [u64::from(sequence) | half(place) << 32, high]
    }

    /// Half a word. Not by casting to an array of them: what a GPU has in registers stays there.
    #[inline(always)]
    const fn half(&self, half: usize) -> u32 {
        if half / 2 < PACKET_WORDS {
            (self.words[half / 2] >> (half % 2 * 32)) as u32
        } else {
            0
        }
    }

    #[inline(always)]
    const fn set_half(&mut self, half: usize, value: u32) {
        if half / 2 < PACKET_WORDS {
            let word = &mut self.words[half / 2];
            *word = *word & !(0xFFFF_FFFF << (half % 2 * 32)) | (value as u64) << (half % 2 * 32);
        }
    }

    /// The value at the start.
    ///
    /// # Panics
    /// Does not compile if `T` is larger than [`MIN_PAYLOAD`] bytes.
    #[inline(always)]
    pub fn get<T: Pod>(&self) -> T {
        const { assert_fits::<T>() };
        bytemuck::pod_read_unaligned(&self.bytes()[..size_of::<T>()])
    }
}

/// The first half word of tail word `tail`.
const fn tail_start(tail: usize) -> usize {
    (WORD_BYTES + tail * TAIL_BYTES) / 4
}

/// How many tail words a message of `bytes` bytes has.
#[must_use]
#[inline(always)]
pub const fn tails(bytes: usize) -> usize {
    bytes.saturating_sub(WORD_BYTES).div_ceil(TAIL_BYTES)
}

const _: () = assert!(tails(PACKET_SIZE) == TAILS && tails(WORD_BYTES) == 0);

/// Fails to compile for a type that is too large for a packet.
const fn assert_fits<T>() {
    assert!(
        size_of::<T>() <= MIN_PAYLOAD,
        "a typed message has at most 62 bytes"
    );
}

impl Default for Packet {
    fn default() -> Self {
        Self::ZERO
    }
}

const _: () = assert!(size_of::<Packet>() == PACKET_SIZE && align_of::<Packet>() == 64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_carry_all_but_the_first_word() {
        for bytes in 0..=PACKET_SIZE {
            let mut sent = Packet::ZERO;
            for (i, byte) in sent.bytes_mut().iter_mut().enumerate().take(bytes) {
                *byte = i as u8 + 1;
            }
            let mut come = Packet::ZERO;
            come.words[0] = sent.words[0];
            for tail in 0..tails(bytes) {
                come.set_tail(tail, sent.tail(tail));
            }
            assert_eq!(come, sent, "{bytes}");
            let mut copied = Packet::ZERO;
            copied.words[0] = sent.words[0];
            for tail in 0..tails(bytes) {
                copied.put_tail(tail, sent.get_tail(tail, 7));
            }
            assert_eq!(copied, sent, "{bytes}");
        }
    }
}
