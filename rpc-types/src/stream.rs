//! How a message longer than a packet is cut up.
//!
//! The first packet of a message starts with its length as a `u64`, then come the first bytes;
//! every further packet is full of bytes. A port sends as many packets as its longest lane needs;
//! a lane that is done still takes part, and what its packets hold then means nothing.
//!
//! In `Line`, a lane sends with each hand-over as many packets as there are lanes for each that
//! takes part: a lone lane uses the packets of the idle ones.
//!
//! A message may travel as a *reference*: its length with [`REFERENCE`] set, and no bytes.
//!
//! - From the device, the device address follows the length. When the packets of all lanes have
//!   come, the host copies what was referred to, then hands over once: until then the bytes stay as
//!   they are.
//! - From the host, nothing follows. When the packets of all lanes have come, the device hands over
//!   an [`Answer`] for each lane, in that lane's own packet, and the host copies as much as the device has room for. Then come
//!   messages as packets once more: whole ones for lanes that gave no address, empty ones for all
//!   others.

use bytemuck::{Pod, Zeroable};

/// Bytes of the length in front of a message.
pub const LENGTH_SIZE: usize = 8;

/// In a message's length: what follows is not the message but its address, or nothing.
pub const REFERENCE: u64 = 1 << 63;

/// Where the host puts a message that it has announced as a reference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Answer {
    /// The device address; 0 if the message is to come in packets.
    pub address: u64,
    /// Bytes there is room for.
    pub room: u64,
}

/// How many packets a message of `length` bytes takes where a packet carries `payload` bytes.
pub const fn packets(length: u64, payload: usize) -> u64 {
    let first = (payload - LENGTH_SIZE) as u64;
    1 + length.saturating_sub(first).div_ceil(payload as u64)
}

/// Head of a [`PRINT_PART`](crate::Opcode::PRINT_PART) message; the text of the part follows.
///
/// The host joins the parts of one `message` and writes them at once when the last has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct PrintPart {
    /// Which message: unique in its run while the message is incomplete.
    pub message: u32,
    /// [`STDERR`](Self::STDERR) and [`LAST`](Self::LAST), or-ed.
    pub flags: u32,
}

impl PrintPart {
    /// The text goes to standard error rather than standard output.
    pub const STDERR: u32 = 1;
    /// This is the last part.
    pub const LAST: u32 = 2;
}

const _: () = assert!(size_of::<PrintPart>() == 8 && align_of::<PrintPart>() == 4);
const _: () = assert!(size_of::<Answer>() == 16);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_at_the_edges() {
        for (length, payload, expected) in [
            (0, 64, 1),
            (56, 64, 1),
            (57, 64, 2),
            (120, 64, 2),
            (121, 64, 3),
            (54, 62, 1),
            (55, 62, 2),
        ] {
            assert_eq!(
                packets(length, payload),
                expected,
                "{length} bytes of {payload}"
            );
        }
        assert_eq!(packets(u64::MAX, 64), 1 + (u64::MAX - 56).div_ceil(64));
    }
}
