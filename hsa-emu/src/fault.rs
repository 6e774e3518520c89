//! What a program did wrong, and where.

use std::fmt;

use crate::memory::Refusal;

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// An access that the memory refuses.
    Memory {
        /// Where.
        address: u64,
        /// Bytes.
        size: u64,
        /// A store or an atomic operation.
        write: bool,
        /// Why.
        refusal: Refusal,
    },
    /// An access past the end of private memory.
    Private {
        /// Offset in the lane's part.
        offset: u32,
        /// Bytes of that part.
        limit: u32,
    },
    /// An access past the end of the workgroup's local memory.
    Local {
        /// Offset.
        offset: u64,
        /// Bytes of the workgroup.
        limit: u64,
    },
    /// An atomic access whose address is no multiple of its size.
    Unaligned(u64),
    /// No instruction that the tables know; its first word.
    Illegal(u32),
    /// The program counter is outside all code.
    Fetch,
    /// A trap.
    Trap(u32),
    /// The packet asks for what cannot be.
    Packet(&'static str),
    /// The host has not enough memory for the waves.
    NoMemory,
    /// The emulator itself has failed.
    Broken,
}

/// A fault.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    /// What went wrong.
    pub(crate) cause: Cause,
    /// The address of the instruction.
    pub(crate) pc: u64,
    /// The same as a symbol with an offset, if it has one.
    pub(crate) place: String,
    /// The instruction as text.
    pub(crate) instruction: Option<String>,
    /// The workgroup.
    pub(crate) workgroup: [u32; 3],
    /// The wave in it.
    pub(crate) wave: u32,
}

impl Fault {
    /// A fault that is no instruction's.
    pub(crate) fn of_packet(cause: Cause) -> Box<Self> {
        Box::new(Self {
            cause,
            pc: 0,
            place: String::new(),
            instruction: None,
            workgroup: [0; 3],
            wave: 0,
        })
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory {
                address,
                size,
                write,
                refusal,
            } => {
                let what = if *write { "write" } else { "read" };
                let why = match refusal {
                    Refusal::Absent => "no memory is there",
                    Refusal::ReadOnly => "it is read-only",
                    Refusal::HostOnly => "the host has not allowed it",
                };
                write!(f, "{what} of {size} bytes at {address:#x}: {why}")
            }
            Self::Private { offset, limit } => write!(
                f,
                "access at {offset:#x} of private memory, which has {limit} bytes for a lane: \
                 a larger private segment (stack) may help"
            ),
            Self::Local { offset, limit } => write!(
                f,
                "access at {offset:#x} of local memory, which has {limit} bytes for the workgroup"
            ),
            Self::Unaligned(address) => write!(f, "atomic access at unaligned {address:#x}"),
            Self::Illegal(word) => write!(f, "illegal or unknown instruction {word:#010x}"),
            Self::Fetch => f.write_str("no code is there"),
            Self::Trap(number) => write!(f, "trap {number}"),
            Self::Packet(why) => write!(f, "the dispatch packet is wrong: {why}"),
            Self::NoMemory => f.write_str(
                "the host has not enough memory for the kernel's waves: a smaller private segment \
                 (stack) may help",
            ),
            Self::Broken => {
                f.write_str("the emulator failed, which is a bug of it: please report it")
            }
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.cause)?;
        // What no instruction has done has no place.
        if self.pc == 0
            && matches!(
                self.cause,
                Cause::Packet(_) | Cause::NoMemory | Cause::Broken
            )
        {
            return Ok(());
        }
        if let Some(text) = &self.instruction {
            write!(f, ", by `{text}`")?;
        }
        let [x, y, z] = self.workgroup;
        write!(f, " at {:#x}", self.pc)?;
        if !self.place.is_empty() {
            write!(f, " ({})", self.place)?;
        }
        write!(f, ", workgroup {x},{y},{z} wave {}", self.wave)
    }
}
