//! Why an operation on a port did not happen.

use core::fmt;

use rpc_types::Status;

/// Why an operation on a port did not happen. On the client every lane of the warp gets the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The server answered with this instead of data and has ended the conversation.
    Status(Status),
    /// The host has told the device to end: nothing will be answered any more.
    Stopped,
    /// The client asked to receive before it had sent anything.
    NothingSent,
    /// The client gave up the conversation half-way and has begun another on the same port.
    Abandoned,
}

impl Error {
    /// As one word that is no status, for handing from lane to lane.
    pub(crate) const fn to_word(result: Result<Status, Self>) -> u64 {
        match result {
            Ok(status) => status.0 as u64,
            Err(Self::Status(status)) => 1 << 32 | status.0 as u64,
            Err(Self::Stopped) => 2 << 32,
            Err(Self::NothingSent) => 3 << 32,
            Err(Self::Abandoned) => 4 << 32,
        }
    }

    /// The inverse of [`to_word`](Self::to_word).
    pub(crate) const fn from_word(word: u64) -> Result<Status, Self> {
        let status = Status(word as u32);
        match word >> 32 {
            0 => Ok(status),
            1 => Err(Self::Status(status)),
            2 => Err(Self::Stopped),
            3 => Err(Self::NothingSent),
            _ => Err(Self::Abandoned),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => status.fmt(f),
            Self::Stopped => f.write_str("the host has ended the run"),
            Self::NothingSent => f.write_str("a client receives only after it has sent"),
            Self::Abandoned => f.write_str("the client has begun another call on this port"),
        }
    }
}

impl core::error::Error for Error {}
