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
