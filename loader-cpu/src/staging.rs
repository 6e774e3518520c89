//! Memory for copies that nobody waits for. Here they are done at once.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rpc_server::{MemoryError, Staging};

use crate::device::CpuDevice;

/// Bytes of a buffer. Its copy is made by the thread that asks for it, so that it should not take
/// long: some 25 us.
const SIZE: usize = 256 << 10;
/// How many are lent at a time.
const BUFFERS: usize = 4;

/// A device's buffers, made when they are wanted.
pub(crate) struct Buffers(Mutex<Lent>);

struct Lent {
    free: Vec<Vec<u8>>,
    /// How many more may be made.
    left: usize,
}

impl Default for Buffers {
    fn default() -> Self {
        Self(Mutex::new(Lent {
            free: Vec::new(),
            left: BUFFERS,
        }))
    }
}

impl Buffers {
    fn lent(&self) -> MutexGuard<'_, Lent> {
        // Each change is one call.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Option<Vec<u8>> {
        let mut lent = self.lent();
        if let Some(buffer) = lent.free.pop() {
            return Some(buffer);
        }
        lent.left = lent.left.checked_sub(1)?;
        Some(vec![0; SIZE])
    }
}

/// A buffer that was lent.
pub(crate) struct Staged {
    device: Arc<CpuDevice>,
    buffer: Vec<u8>,
    /// What the last copy has brought.
    filled: usize,
}

impl Staged {
    /// One of the device's buffers, if one is free.
    pub(crate) fn lend(device: Arc<CpuDevice>) -> Option<Self> {
        let buffer = device.buffers.take()?;
        Some(Self {
            device,
            buffer,
            filled: 0,
        })
    }

    /// The part of the buffer that a copy uses.
    fn part(&mut self, length: usize) -> Result<&mut [u8], MemoryError> {
        self.buffer
            .get_mut(..length)
            .ok_or_else(|| MemoryError::Device(format!("{length} bytes are more than {SIZE}")))
    }
}

impl Staging for Staged {
    fn size(&self) -> usize {
        self.buffer.len()
    }

    fn start_to_host(&mut self, from: u64, length: usize) -> Result<(), MemoryError> {
        self.filled = 0;
        let device = Arc::clone(&self.device);
        device.memory.read(from, self.part(length)?)?;
        self.filled = length;
        Ok(())
    }

    fn start_to_device(&mut self, length: usize, to: u64) -> Result<(), MemoryError> {
        self.filled = 0;
        let device = Arc::clone(&self.device);
        device.memory.write(self.part(length)?, to)
    }

    fn is_done(&mut self) -> Result<bool, MemoryError> {
        Ok(true)
    }

    fn bytes(&self) -> &[u8] {
        &self.buffer[..self.filled]
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.buffer
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        let buffer = std::mem::take(&mut self.buffer);
        self.device.buffers.lent().free.push(buffer);
    }
}

#[cfg(test)]
mod tests {
    use loader_core::device::Device as _;
    use loader_core::program::DeviceOptions;
    use rpc_server::DeviceMemory;

    use super::*;

    #[test]
    fn buffers_are_lent_and_given_back() {
        let device = Arc::new(CpuDevice::open(&DeviceOptions::default()).unwrap());
        let lend = || Arc::clone(&device).staging();
        let mut all: Vec<_> = std::iter::from_fn(lend).collect();
        assert_eq!(all.len(), BUFFERS);
        let mut staging = all.pop().unwrap();
        assert!(lend().is_none());
        let address = device.allocate_private(SIZE).unwrap();
        staging.bytes_mut()[..5].copy_from_slice(b"bytes");
        staging.start_to_device(5, address).unwrap();
        assert!(staging.is_done().unwrap() && staging.bytes().is_empty());
        staging.start_to_host(address + 1, 3).unwrap();
        assert_eq!(staging.bytes(), b"yte");
        let wild = staging.start_to_host(8, 3);
        let out = MemoryError::OutOfRange {
            address: 8,
            length: 3,
        };
        assert_eq!((wild, staging.bytes().len()), (Err(out), 0));
        assert!(staging.start_to_host(address, SIZE + 1).is_err());
        drop(staging);
        assert!(lend().is_some());
    }
}
