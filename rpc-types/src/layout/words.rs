//! What stands in the words of [`LayoutKind::Line`](super::LayoutKind::Line).

/// The words of a [`LayoutKind::Line`](super::LayoutKind::Line) request block.
///
/// First the header word: {sequence `u32`, [`meta`](request::meta) `u32`, lanes that take part
/// `u64`}. Then the opcode's word, then a word for each lane: {sequence `u32`, 0 `u32`, message
/// `u64`}, which is there only if the header says that the message is in words.
pub mod request {
    use super::super::{LINE, WORD};

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

/// The words of a [`LayoutKind::Line`](super::LayoutKind::Line) tail block, [`TAILS`](crate::packet::TAILS) for each lane:
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

/// The words of a [`LayoutKind::Line`](super::LayoutKind::Line) reply block, one for each lane: {sequence `u32`,
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
/// 0 comes only once, at the start: a word that was never written matches no request. And before a
/// number comes again, the side that writes a block clears its lanes' words. So a lane's word that
/// carries the number of a message was written for that message.
#[must_use]
#[inline(always)]
pub const fn next_sequence(sequence: u32) -> u32 {
    if sequence == u32::MAX {
        2
    } else {
        sequence + 1
    }
}
