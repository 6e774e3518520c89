//! What a handler may do with the device's memory while a kernel runs.

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
