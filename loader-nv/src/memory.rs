//! Memory: shared with the host, the device's own, the heap; copies while a kernel runs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cust::sys::{self, CUpointer_attribute as Attribute};
use loader_core::device::{DeviceError, SharedBuffer};
use loader_core::heap::Heap;
use rpc_server::{DeviceMemory, MemoryError, Staging};

use crate::copies::Staged;
use crate::cuda::{Pinned, Private, check, code};
use crate::device::CudaDevice;

/// What was allocated, so that it can be freed and so that addresses can be checked.
#[derive(Default)]
pub(crate) struct Memory {
    shared: Vec<Pinned>,
    private: Vec<Private>,
    /// The range that `heap` gives out is one of `private`.
    heap: Option<Heap>,
}

impl Memory {
    /// Whether the range lies inside one allocation.
    fn holds(&self, address: u64, length: u64) -> bool {
        let inside = |start: u64, size: u64| {
            address >= start && address - start <= size && length <= size - (address - start)
        };
        self.private
            .iter()
            .any(|private| inside(private.address, private.size))
            || self
                .shared
                .iter()
                .any(|shared| inside(shared.device, shared.size as u64))
    }
}

/// Nothing in this crate panics with a lock held; what a lock guards is whole at all times.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl CudaDevice {
    pub(crate) fn new_shared(&self, size: usize) -> Result<SharedBuffer, DeviceError> {
        self.enter()?;
        let pinned = Pinned::new(size)?;
        let buffer = SharedBuffer {
            host: pinned.host,
            device: pinned.device,
            size,
        };
        lock(&self.memory).shared.push(pinned);
        Ok(buffer)
    }

    pub(crate) fn new_private(&self, size: usize) -> Result<u64, DeviceError> {
        self.enter()?;
        let private = Private::new(size as u64)?;
        // Zeroed in a stream of ours and waited for: the legacy stream's work is not ordered with
        // the kernel's.
        let stream = &self.copies.to_device;
        // SAFETY: the driver gave `size` bytes at `address` that nobody else knows of yet.
        let result = unsafe { sys::cuMemsetD8Async(private.address, 0, size, stream.raw()) };
        check("cuMemsetD8Async", result)?;
        stream.synchronize()?;
        let address = private.address;
        lock(&self.memory).private.push(private);
        Ok(address)
    }

    pub(crate) fn new_heap(&self, size: u64) -> Result<(), DeviceError> {
        let already = lock(&self.memory).heap.is_some();
        let reserved = Heap::reserve(already, size, |room| {
            self.enter()?;
            let private = Private::new(room)?;
            Ok((private.address, private))
        })?;
        if let Some((heap, memory)) = reserved {
            let mut all = lock(&self.memory);
            all.heap = Some(heap);
            all.private.push(memory);
        }
        Ok(())
    }

    /// Copies from device memory, in pieces through page-locked memory, beside any kernel.
    pub(crate) fn read(&self, from: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        self.enter()?;
        let mut buffer = self.copies.blocking();
        let size = buffer.size();
        for (index, piece) in into.chunks_mut(size).enumerate() {
            let from = from + (index * size) as u64;
            buffer.start_to_host(&self.copies.to_host, from, piece.len())?;
            buffer.wait()?;
            piece.copy_from_slice(buffer.bytes());
        }
        Ok(())
    }

    /// Copies to device memory, likewise.
    pub(crate) fn write(&self, from: &[u8], to: u64) -> Result<(), DeviceError> {
        self.enter()?;
        let mut buffer = self.copies.blocking();
        let size = buffer.size();
        for (index, piece) in from.chunks(size).enumerate() {
            let to = to + (index * size) as u64;
            if let Some(place) = buffer.bytes_mut().get_mut(..piece.len()) {
                place.copy_from_slice(piece);
            }
            buffer.start_to_device(&self.copies.to_device, piece.len(), to)?;
            buffer.wait()?;
        }
        Ok(())
    }

    /// Whether the range is memory of this device, or shared with it by this loader. The address
    /// comes from the device: any other host memory that the driver could reach stays out.
    pub(crate) fn may_copy(&self, address: u64, length: usize) -> bool {
        let length = length as u64;
        lock(&self.memory).holds(address, length) || self.is_global(address, length)
    }

    /// Whether the range lies in an allocation of this device that the driver made itself: a
    /// global of the image.
    fn is_global(&self, address: u64, length: u64) -> bool {
        if self.enter().is_err() {
            return false;
        }
        let number = |attribute| {
            let mut value = 0_u32;
            // SAFETY: both attributes asked for below are 32-bit values; the driver looks the
            // address up and does not follow it.
            let result =
                unsafe { sys::cuPointerGetAttribute((&raw mut value).cast(), attribute, address) };
            (code(result) == 0).then_some(value)
        };
        let device_memory = sys::CUmemorytype::CU_MEMORYTYPE_DEVICE as u32;
        if number(Attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE) != Some(device_memory)
            || number(Attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) != Some(self.ordinal)
        {
            return false;
        }
        let (mut start, mut size) = (0, 0);
        // SAFETY: places for an address and a size; the driver looks the address up.
        let result =
            unsafe { sys::cuMemGetAddressRange_v2(&raw mut start, &raw mut size, address) };
        code(result) == 0
            && address >= start
            && address - start <= size as u64
            && length <= size as u64 - (address - start)
    }
}

impl DeviceMemory for CudaDevice {
    fn allocate(&self, size: u64) -> Option<u64> {
        lock(&self.memory).heap.as_mut()?.allocate(size)
    }

    fn free(&self, address: u64) -> bool {
        lock(&self.memory)
            .heap
            .as_mut()
            .is_some_and(|heap| heap.free(address))
    }

    fn copy_to_host(&self, from: u64, into: &mut [u8]) -> Result<(), MemoryError> {
        if !self.may_copy(from, into.len()) {
            return Err(MemoryError::OutOfRange {
                address: from,
                length: into.len(),
            });
        }
        self.read(from, into)
            .map_err(|failed| MemoryError::Device(failed.to_string()))
    }

    fn copy_to_device(&self, from: &[u8], to: u64) -> Result<(), MemoryError> {
        if !self.may_copy(to, from.len()) {
            return Err(MemoryError::OutOfRange {
                address: to,
                length: from.len(),
            });
        }
        self.write(from, to)
            .map_err(|failed| MemoryError::Device(failed.to_string()))
    }

    fn staging(self: Arc<Self>) -> Option<Box<dyn Staging>> {
        Staged::lend(self).map(|staged| Box::new(staged) as Box<dyn Staging>)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_held_by_one_allocation() {
        let memory = Memory {
            private: vec![
                Private {
                    address: 0x1000,
                    size: 0x100,
                },
                Private {
                    address: 0x1100,
                    size: 0x100,
                },
            ],
            ..Memory::default()
        };
        assert!(memory.holds(0x1000, 0x100) && memory.holds(0x11ff, 1) && memory.holds(0x1080, 0));
        assert!(!memory.holds(0x1080, 0x100), "two allocations are two");
        assert!(
            !memory.holds(0xfff, 2) && !memory.holds(0x1201, 0) && !memory.holds(0x1000, u64::MAX)
        );
        assert!(!memory.holds(u64::MAX, u64::MAX));
        // These were never the driver's.
        memory.private.into_iter().for_each(std::mem::forget);
    }
}
