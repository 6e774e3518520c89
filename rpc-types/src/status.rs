//! How the host answers besides data.

use core::fmt;

use bytemuck::{Pod, Zeroable};

/// What the server says of an exchange; any `u32` is representable, since the wire may carry any.
///
/// A status other than [`SUCCESS`](Self::SUCCESS) ends the conversation: both sides have let go
/// of it once the client has seen it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable)]
#[repr(transparent)]
pub struct Status(pub u32);

impl Status {
    /// The packet holds the answer.
    pub const SUCCESS: Self = Self(0);
    /// The handler failed or panicked.
    pub const SERVER_ERROR: Self = Self(0x1000);
    /// No handler knows the opcode.
    pub const UNHANDLED: Self = Self(0x1001);
    /// A message was longer than the server takes.
    pub const TOO_LONG: Self = Self(0x1002);
    /// The request made no sense to its handler.
    pub const INVALID: Self = Self(0x1003);
    /// The run is ending; the exchange was given up.
    pub const CANCELLED: Self = Self(0x1004);

    /// Whether the packet holds the answer.
    pub const fn is_success(self) -> bool {
        self.0 == Self::SUCCESS.0
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            Self::SUCCESS => "success",
            Self::SERVER_ERROR => "the host's handler failed",
            Self::UNHANDLED => "the host has no handler for this opcode",
            Self::TOO_LONG => "the message is longer than the host takes",
            Self::INVALID => "the host's handler could not make sense of the request",
            Self::CANCELLED => "the run is ending",
            _ => return write!(f, "status {:#x}", self.0),
        })
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Status({:#x}: {self})", self.0)
    }
}

const _: () = assert!(size_of::<Status>() == 4 && align_of::<Status>() == 4);
