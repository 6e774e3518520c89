//! The CPU device's memory: this process's.

use std::io;
use std::ptr::{NonNull, null_mut, with_exposed_provenance_mut};
use std::sync::{Mutex, MutexGuard, PoisonError};

use loader_core::device::DeviceError;
use loader_core::heap::Heap;
use rpc_server::MemoryError;
use rpc_types::layout::PAGE;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// Everything that was allocated for the device.
#[derive(Default)]
pub(crate) struct Memory(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    blocks: Vec<Block>,
    heap: Heap,
}

struct Block {
    base: NonNull<u8>,
    size: usize,
}

// SAFETY: the block is only an address to unmap.
unsafe impl Send for Block {}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: `base` came from a mapping of `size` bytes that is given back once. The device
        // drops its memory only when none of its threads runs any more. It cannot fail then.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.size) };
    }
}

impl Memory {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        // No invariant is ever half-way: each change is one call.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `size` zero bytes at the start of a page, as long as the device lives.
    pub(crate) fn new_block(&self, size: usize) -> Result<NonNull<u8>, DeviceError> {
        let failed = || DeviceError::Api {
            call: "allocating memory",
            reason: format!("the host has no {size} bytes"),
        };
        let size = size
            .max(1)
            .checked_next_multiple_of(PAGE)
            .ok_or_else(failed)?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // Pages that are never touched cost nothing: so large a heap is no burden.
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new mapping, at an address that the system chooses, concerns no other memory.
        let base = unsafe { mmap_anonymous(null_mut(), size, access, flags) };
        let base = base.ok().and_then(|base| NonNull::new(base.cast::<u8>()));
        let base = base.ok_or_else(failed)?;
        // Device addresses are pointers made of numbers.
        base.as_ptr().expose_provenance();
        self.inner().blocks.push(Block { base, size });
        Ok(base)
    }

    /// Makes the heap anew; its pages are the host's only once they are touched.
    pub(crate) fn reserve_heap(&self, size: u64) -> Result<(), DeviceError> {
        if size == 0 {
            return Ok(());
        }
        let bytes = usize::try_from(size).unwrap_or(usize::MAX);
        let base = self.new_block(bytes)?.as_ptr().addr() as u64;
        self.inner().heap = Heap::new(base, size);
        Ok(())
    }

    pub(crate) fn allocate(&self, size: u64) -> Option<u64> {
        self.inner().heap.allocate(size)
    }

    pub(crate) fn free(&self, address: u64) -> bool {
        self.inner().heap.free(address)
    }

    /// Forgets all blocks without freeing them.
    pub(crate) fn leak(&self) {
        std::mem::forget(std::mem::take(&mut self.inner().blocks));
    }

    /// Whether the range lies in one block.
    fn holds(&self, address: u64, length: usize) -> bool {
        self.inner().blocks.iter().any(|block| {
            let start = block.base.as_ptr().addr() as u64;
            let size = block.size as u64;
            address >= start && address - start <= size && length as u64 <= size - (address - start)
        })
    }

    /// Copies from any address of the device, which is one of this process.
    pub(crate) fn read(&self, from: u64, into: &mut [u8]) -> Result<(), MemoryError> {
        let length = into.len();
        if self.holds(from, length) {
            let source = with_exposed_provenance_mut::<u8>(from as usize);
            // SAFETY: the range lies in a block, which lives as long as `self`; `into` is not part
            // of one, since no reference into a block is ever made. What a device thread writes
            // meanwhile may be copied in part, as on any device.
            unsafe { source.copy_to_nonoverlapping(into.as_mut_ptr(), length) };
            return Ok(());
        }
        transfer(libc::process_vm_readv, into.as_mut_ptr(), from, length)
    }

    /// Copies to any address of the device, which is one of this process.
    pub(crate) fn write(&self, from: &[u8], to: u64) -> Result<(), MemoryError> {
        let length = from.len();
        if self.holds(to, length) {
            let target = with_exposed_provenance_mut::<u8>(to as usize);
            // SAFETY: as for `read`, the other way.
            unsafe { target.copy_from_nonoverlapping(from.as_ptr(), length) };
            return Ok(());
        }
        transfer(
            libc::process_vm_writev,
            from.as_ptr().cast_mut(),
            to,
            length,
        )
    }
}

type Transfer = unsafe extern "C" fn(
    libc::pid_t,
    *const libc::iovec,
    libc::c_ulong,
    *const libc::iovec,
    libc::c_ulong,
    libc::c_ulong,
) -> libc::ssize_t;

/// Copies by a system call that says so when there is no memory at `device`: device programs may
/// name their stacks and globals, and any number that is no address at all.
fn transfer(by: Transfer, host: *mut u8, device: u64, length: usize) -> Result<(), MemoryError> {
    let range = |base: *mut u8| libc::iovec {
        iov_base: base.cast(),
        iov_len: length,
    };
    let local = range(host);
    let remote = range(with_exposed_provenance_mut(device as usize));
    // SAFETY: the local range is the caller's slice, which is written to only if that is mutable;
    // the kernel checks the other one. That one is the device program's: if it is memory of the
    // host, the program shares the process and could have written there itself.
    let done = unsafe {
        by(
            std::process::id() as i32,
            &raw const local,
            1,
            &raw const remote,
            1,
            0,
        )
    };
    if usize::try_from(done) == Ok(length) {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    if done >= 0 || error.raw_os_error() == Some(libc::EFAULT) {
        return Err(MemoryError::OutOfRange {
            address: device,
            length,
        });
    }
    Err(MemoryError::Device(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_heap_and_foreign_memory_are_copied() {
        let memory = Memory::default();
        let block = memory.new_block(100).unwrap().as_ptr().expose_provenance() as u64;
        assert_eq!(block % PAGE as u64, 0);
        memory.write(b"block", block + 95).unwrap();
        memory.reserve_heap(4096).unwrap();
        let heap = memory.allocate(10).unwrap();
        memory.write(b"heap", heap).unwrap();
        let own = Box::new(*b"own!");
        let mut bytes = [0; 5];
        memory.read(block + 95, &mut bytes).unwrap();
        assert_eq!(&bytes, b"block");
        memory.read(heap, &mut bytes[..4]).unwrap();
        assert_eq!(&bytes[..4], b"heap");
        memory
            .read(own.as_ptr().expose_provenance() as u64, &mut bytes[..4])
            .unwrap();
        assert_eq!(&bytes[..4], b"own!");
        assert!(memory.free(heap) && !memory.free(heap));
    }

    #[test]
    fn wild_addresses_are_errors() {
        let memory = Memory::default();
        for address in [0, 8, 1 << 47, u64::MAX] {
            let out = MemoryError::OutOfRange { address, length: 3 };
            assert_eq!(memory.read(address, &mut [0; 3]), Err(out.clone()));
            assert_eq!(memory.write(&[0; 3], address), Err(out));
        }
        // Read-only memory can be read alone.
        let address = "abc".as_ptr().expose_provenance() as u64;
        assert_eq!(memory.read(address, &mut [0; 3]), Ok(()));
        assert!(memory.write(&[0; 3], address).is_err());
        memory.read(1, &mut []).unwrap();
    }

    #[test]
    fn no_heap_gives_nothing() {
        let memory = Memory::default();
        memory.reserve_heap(0).unwrap();
        assert_eq!(memory.allocate(1), None);
        assert!(memory.new_block(usize::MAX).is_err());
    }
}
