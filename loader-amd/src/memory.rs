//! Memory: shared with the host, the device's own, the heap; which of it may be copied.
//!
//! Shared memory is fine-grained host memory, which both sides see while a kernel runs. The client's
//! private region, arguments and results are coarse-grained device memory: only the device touches
//! them while a kernel runs. The heap is fine-grained device memory where the agent has any, since
//! the host may copy from it meanwhile.

use std::ffi::c_void;
use std::ops::Range;
use std::ptr::{NonNull, null, null_mut, with_exposed_provenance, with_exposed_provenance_mut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hsa_sys::{Api, hsa_agent_t};
use loader_core::device::{DeviceError, SharedBuffer};
use loader_core::heap::Heap;
use rpc_server::{DeviceMemory, MemoryError, Staging};

use crate::agents::Pool;
use crate::copies::Staged;
use crate::device::AmdDevice;
use crate::hsa::check;

/// Memory of a pool. It is freed by [`free`](Self::free), at the latest when the runtime ends.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) start: NonNull<u8>,
    pub(crate) size: usize,
}

// SAFETY: plain memory; who reads and writes it when is the business of those who take its address.
unsafe impl Send for Block {}
// SAFETY: shared, it gives its address and size.
unsafe impl Sync for Block {}

impl Block {
    /// `size` bytes of `pool`, which `agent` may access too.
    pub(crate) fn new(
        api: &Api,
        pool: &Pool,
        agent: hsa_agent_t,
        size: usize,
    ) -> Result<Self, DeviceError> {
        let size = size
            .max(1)
            .checked_next_multiple_of(4)
            .unwrap_or(usize::MAX);
        let mut place: *mut c_void = null_mut();
        // SAFETY: `place` is a place for a pointer; the pool allows allocation, or the runtime says.
        let status =
            unsafe { (api.hsa_amd_memory_pool_allocate)(pool.handle, size, 0, &raw mut place) };
        check(api, "hsa_amd_memory_pool_allocate", status)?;
        let start = NonNull::new(place.cast::<u8>()).ok_or_else(|| DeviceError::Api {
            call: "hsa_amd_memory_pool_allocate",
            reason: "it gave no memory".to_owned(),
        })?;
        // The host's and the device's addresses are the same; the device's travel as numbers.
        start.as_ptr().expose_provenance();
        let block = Self { start, size };
        // SAFETY: one agent, flags as they must be, memory of a pool.
        let status =
            unsafe { (api.hsa_amd_agents_allow_access)(1, &raw const agent, null(), place) };
        if let Err(error) = check(api, "hsa_amd_agents_allow_access", status) {
            block.free(api);
            return Err(error);
        }
        Ok(block)
    }

    /// Host memory, zeroed.
    pub(crate) fn of_host(
        api: &Api,
        pool: &Pool,
        agent: hsa_agent_t,
        size: usize,
    ) -> Result<Self, DeviceError> {
        let block = Self::new(api, pool, agent, size)?;
        // SAFETY: `size` bytes of host memory that nobody else knows of yet.
        unsafe { block.start.write_bytes(0, block.size) };
        Ok(block)
    }

    /// Device memory, zeroed.
    pub(crate) fn of_device(
        api: &Api,
        pool: &Pool,
        agent: hsa_agent_t,
        size: usize,
    ) -> Result<Self, DeviceError> {
        let block = Self::new(api, pool, agent, size)?;
        let place = block.start.as_ptr().cast();
        // SAFETY: allocated just now, in whole words; the call returns when it is done.
        let status = unsafe { (api.hsa_amd_memory_fill)(place, 0, block.size / 4) };
        if let Err(error) = check(api, "hsa_amd_memory_fill", status) {
            block.free(api);
            return Err(error);
        }
        Ok(block)
    }

    pub(crate) fn address(&self) -> u64 {
        self.start.as_ptr().addr() as u64
    }

    pub(crate) fn free(self, api: &Api) {
        // SAFETY: allocated by `new`, freed once, since this takes the block. A failure leaves
        // nothing to do.
        unsafe { (api.hsa_amd_memory_pool_free)(self.start.as_ptr().cast()) };
    }
}

/// What was allocated, so that it can be freed and so that addresses can be checked.
#[derive(Default)]
pub(crate) struct Memory {
    pub(crate) shared: Vec<Block>,
    pub(crate) private: Vec<Block>,
    /// The range that `heap` gives out is one of `private`.
    pub(crate) heap: Option<Heap>,
    /// The image's own data, where it lies on the device.
    pub(crate) globals: Vec<Range<u64>>,
}

/// Whose memory a range is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Host,
    Device,
}

impl Memory {
    /// The side on which the range lies, inside one allocation.
    fn side(&self, address: u64, length: u64) -> Option<Side> {
        let inside = |start: u64, size: u64| {
            address >= start && address - start <= size && length <= size - (address - start)
        };
        let block = |block: &Block| inside(block.address(), block.size as u64);
        let global = |range: &Range<u64>| inside(range.start, range.end - range.start);
        if self.shared.iter().any(block) {
            Some(Side::Host)
        } else if self.private.iter().any(block) || self.globals.iter().any(global) {
            Some(Side::Device)
        } else {
            None
        }
    }
}

/// Nothing in this crate panics with a lock held; what a lock guards is whole at all times.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An address of the device for the runtime, which takes pointers.
pub(crate) fn pointer(address: u64) -> *const c_void {
    with_exposed_provenance(address as usize)
}

/// As [`pointer`], to be written to.
pub(crate) fn pointer_mut(address: u64) -> *mut c_void {
    with_exposed_provenance_mut(address as usize)
}

impl AmdDevice {
    pub(crate) fn new_shared(&self, size: usize) -> Result<SharedBuffer, DeviceError> {
        let block = Block::of_host(&self.runtime, &self.places.host, self.agent, size)?;
        let buffer = SharedBuffer {
            host: block.start,
            device: block.address(),
            size,
        };
        lock(&self.memory).shared.push(block);
        Ok(buffer)
    }

    pub(crate) fn new_private(&self, size: usize) -> Result<u64, DeviceError> {
        let block = Block::of_device(&self.runtime, &self.places.device, self.agent, size)?;
        let address = block.address();
        lock(&self.memory).private.push(block);
        Ok(address)
    }

    pub(crate) fn new_heap(&self, size: u64) -> Result<(), DeviceError> {
        let already = lock(&self.memory).heap.is_some();
        let reserved = Heap::reserve(already, size, |room| {
            let bytes = usize::try_from(room).unwrap_or(usize::MAX);
            let block = Block::new(&self.runtime, &self.places.heap, self.agent, bytes)?;
            Ok((block.address(), block))
        })?;
        if let Some((heap, memory)) = reserved {
            let mut all = lock(&self.memory);
            all.heap = Some(heap);
            all.private.push(memory);
        }
        Ok(())
    }

    /// The side on which the range lies, if it is memory of this device or shared with it by this
    /// loader. The address comes from the device: any other memory stays out.
    pub(crate) fn may_copy(&self, address: u64, length: usize) -> Result<Side, MemoryError> {
        lock(&self.memory)
            .side(address, length as u64)
            .ok_or(MemoryError::OutOfRange { address, length })
    }
}

impl DeviceMemory for AmdDevice {
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
        let side = self.may_copy(from, into.len())?;
        self.read(side, from, into)
            .map_err(|failed| MemoryError::Device(failed.to_string()))
    }

    fn copy_to_device(&self, from: &[u8], to: u64) -> Result<(), MemoryError> {
        let side = self.may_copy(to, from.len())?;
        self.write(from, side, to)
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
    fn ranges_lie_in_one_allocation() {
        let block = |start: usize, size| Block {
            start: NonNull::new(std::ptr::without_provenance_mut(start)).unwrap(),
            size,
        };
        let memory = Memory {
            shared: vec![block(0x5000, 0x100)],
            private: vec![block(0x1000, 0x100), block(0x1100, 0x100)],
            globals: vec![0x9000..0x9010, 0xA000..0xA000],
            heap: None,
        };
        let device = [(0x1000, 0x100), (0x11FF, 1), (0x1080, 0), (0x9008, 8)];
        assert!(
            device
                .iter()
                .all(|&(a, n)| memory.side(a, n) == Some(Side::Device))
        );
        assert_eq!(memory.side(0x50FF, 1), Some(Side::Host));
        let outside = [
            (0x1080, 0x100),
            (0xFFF, 2),
            (0x1201, 0),
            (0x1000, u64::MAX),
            (0x9008, 9),
            (u64::MAX, u64::MAX),
        ];
        assert!(outside.iter().all(|&(a, n)| memory.side(a, n).is_none()));
    }
}
