//! What a handler gets and what it gives.

use std::fmt;
use std::io;

use rpc_types::{Opcode, Status};
use thiserror::Error;

use crate::memory::{DeviceMemory, MemoryError};
use crate::shared::Ending;

/// Why a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndCause {
    /// The device called `exit`.
    Exit,
    /// The device panicked.
    Panic,
    /// The device called `abort`.
    Abort,
    /// A poller thread panicked: a fault of this program.
    ServerFault,
    /// A call failed, or nobody handles it, over a layout on which the device cannot be told.
    Untold,
}

/// The end of a run, as the device or the server wishes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// The process's exit code, of which the low 8 bits count.
    pub code: i32,
    /// Why.
    pub cause: EndCause,
}

impl End {
    /// The device's `exit(code)`.
    pub const fn exit(code: i32) -> Self {
        Self {
            code,
            cause: EndCause::Exit,
        }
    }

    /// A panic on the device.
    pub const PANIC: Self = Self {
        code: 101,
        cause: EndCause::Panic,
    };
    /// The device's `abort()`.
    pub const ABORT: Self = Self {
        code: 134,
        cause: EndCause::Abort,
    };
    /// A call failed, or nobody handles it, and the device cannot be told.
    pub const UNTOLD: Self = Self {
        code: 125,
        cause: EndCause::Untold,
    };
    /// A poller thread panicked.
    pub const SERVER_FAULT: Self = Self {
        code: 125,
        cause: EndCause::ServerFault,
    };
}

/// What happens after a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// The run goes on.
    Continue,
    /// The run ends; the first end of a run counts.
    End(End),
}

/// Why a conversation failed. The client is told a status if it still waits for one.
#[derive(Debug, Error)]
pub enum Failure {
    /// The client is told this status.
    #[error("{0}")]
    Status(Status),
    /// The conversation is over: its client has begun another one, or the run is ending.
    #[error("{0}")]
    Port(#[from] rpc_port::Error),
    /// The host's work failed: reported once per opcode, the client is told
    /// [`Status::SERVER_ERROR`].
    #[error("{0}")]
    Io(#[from] io::Error),
    /// A copy from or to the device failed: reported once per opcode, the client is told
    /// [`Status::INVALID`] if it named what is not its memory, else [`Status::SERVER_ERROR`].
    #[error("{0}")]
    Memory(#[from] MemoryError),
    /// As [`Io`](Self::Io), in the handler's own words: one sentence.
    #[error("{0}")]
    Handler(String),
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        Self::Status(status)
    }
}

impl Failure {
    /// What the client is told.
    pub fn status(&self) -> Status {
        match self {
            Self::Status(status) => *status,
            Self::Port(_) => Status::CANCELLED,
            Self::Memory(MemoryError::OutOfRange { .. }) => Status::INVALID,
            Self::Memory(MemoryError::Device(_)) | Self::Io(_) | Self::Handler(_) => {
                Status::SERVER_ERROR
            }
        }
    }
}

/// One lane's call of a procedure.
#[derive(Clone, Copy)]
pub struct Call<'c> {
    /// The port it came by.
    pub port: u32,
    /// What it asks for.
    pub opcode: Opcode,
    /// The lanes that call together.
    pub mask: u64,
    /// The lane that this call is for.
    pub lane: u32,
    /// The device's memory.
    pub memory: &'c dyn DeviceMemory,
    pub(crate) ending: &'c Ending,
}

impl Call<'_> {
    /// Ends the run; the first end of a run counts. The call is answered all the same.
    pub fn end_run(&self, end: End) {
        self.ending.set(end);
    }
}

impl fmt::Debug for Call<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("port", &self.port)
            .field("opcode", &self.opcode)
            .field("mask", &self.mask)
            .field("lane", &self.lane)
            .finish_non_exhaustive()
    }
}
