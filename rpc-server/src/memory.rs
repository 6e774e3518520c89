//! What a handler may do with the device's memory while a kernel runs.

use std::sync::Arc;

use thiserror::Error;

/// Why a copy to or from the device did not happen.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum MemoryError {
    /// The range is not memory of the device that the host may touch.
    #[error("{length} bytes at device address {address:#x} are not memory that the host can copy")]
    OutOfRange {
        /// First device address of the range.
        address: u64,
        /// Its length in bytes.
        length: usize,
    },
    /// The device API refused.
    #[error("the device could not copy: {0}")]
    Device(String),
}

/// Device memory as handlers see it: every call works, and returns, while a kernel runs and waits.
///
/// Addresses are the device's. They come from the device and mean nothing until an implementation
/// has checked them.
pub trait DeviceMemory: Send + Sync {
    /// Allocates `size` bytes from what was reserved before the launch; `None` when there is no
    /// room. Never waits for the kernel.
    fn allocate(&self, size: u64) -> Option<u64>;

    /// Frees what [`allocate`](Self::allocate) gave; `false` for any other address.
    fn free(&self, address: u64) -> bool;

    /// Copies from the device.
    ///
    /// # Errors
    /// When the range is not the device's or the device refuses.
    fn copy_to_host(&self, from: u64, into: &mut [u8]) -> Result<(), MemoryError>;

    /// Copies to the device.
    ///
    /// # Errors
    /// When the range is not the device's or the device refuses.
    fn copy_to_device(&self, from: &[u8], to: u64) -> Result<(), MemoryError>;

    /// Lends memory for a copy that nobody waits for; `None` while all of it is lent, and from a
    /// device that has none. Never waits. Dropping it gives it back: at once, or, while a copy
    /// runs, when that is done.
    fn staging(self: Arc<Self>) -> Option<Box<dyn Staging>> {
        None
    }
}

/// Memory of the host that a device copies from and to by itself, one copy at a time.
///
/// No call waits for a copy, or for a kernel. While a copy runs, its bytes are out of reach.
pub trait Staging: Send {
    /// How many bytes there are: the most that one copy moves.
    fn size(&self) -> usize;

    /// Starts a copy of `length` bytes from the device to the start of this memory.
    ///
    /// # Errors
    /// When the range is not the device's, the length is more than the [`size`](Self::size), a copy
    /// runs already, or the device refuses.
    fn start_to_host(&mut self, from: u64, length: usize) -> Result<(), MemoryError>;

    /// Starts a copy of the first `length` bytes of this memory to the device.
    ///
    /// # Errors
    /// As for [`start_to_host`](Self::start_to_host).
    fn start_to_device(&mut self, length: usize, to: u64) -> Result<(), MemoryError>;

    /// Whether no copy runs: cheap enough to be asked in a loop.
    ///
    /// # Errors
    /// When the copy failed. What it left is unknown, and it may never be known to be over.
    fn is_done(&mut self) -> Result<bool, MemoryError>;

    /// What the last copy from the device has brought; nothing while a copy runs.
    fn bytes(&self) -> &[u8];

    /// All of the memory, to be filled; nothing while a copy runs.
    fn bytes_mut(&mut self) -> &mut [u8];
}

/// No device memory: allocations fail, copies are refused.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoMemory;

impl DeviceMemory for NoMemory {
    fn allocate(&self, _: u64) -> Option<u64> {
        None
    }

    fn free(&self, _: u64) -> bool {
        false
    }

    fn copy_to_host(&self, address: u64, into: &mut [u8]) -> Result<(), MemoryError> {
        Err(MemoryError::OutOfRange {
            address,
            length: into.len(),
        })
    }

    fn copy_to_device(&self, from: &[u8], address: u64) -> Result<(), MemoryError> {
        Err(MemoryError::OutOfRange {
            address,
            length: from.len(),
        })
    }
}
