//! What the emulated program may touch, and how.
//!
//! Device memory is host memory at the same address. Every access is looked up in the [`Space`] of
//! allocations first, so that a wild pointer of the program is a fault that is reported and not one of
//! this process. Whoever runs instructions holds the space's lock shared; who takes memory away holds it
//! alone, so nothing disappears under an instruction.
//!
//! The host reads and writes the same memory meanwhile. Loads acquire and stores release, which orders
//! at least what the program's own waits and fences do; an aligned access is one access, an unaligned
//! one is made of bytes.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

/// Who may touch memory from the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Nobody: the host has not allowed it.
    None,
    /// Reads, such as of instructions.
    Read,
    /// Reads and writes.
    Write,
}

/// A range of memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Region {
    /// Its address, for host and device.
    pub(crate) start: u64,
    /// Bytes.
    pub(crate) size: u64,
    /// What the device may do.
    pub(crate) access: Access,
}

/// Why an access is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// No memory there.
    Absent,
    /// It must not be written.
    ReadOnly,
    /// The host has not given the device access.
    HostOnly,
}

/// All memory that the device can name.
#[derive(Debug, Default)]
pub(crate) struct Space {
    /// Sorted by address, disjoint.
    regions: Vec<Region>,
}

impl Space {
    /// The index of the first region that does not end before `address`.
    fn at(&self, address: u64) -> usize {
        self.regions
            .partition_point(|region| region.start + (region.size - 1) < address)
    }

    /// Adds a region; false if it is empty or overlaps another.
    pub(crate) fn insert(&mut self, region: Region) -> bool {
        let Some(last) = region
            .size
            .checked_sub(1)
            .and_then(|n| region.start.checked_add(n))
        else {
            return false;
        };
        let index = self.at(region.start);
        if self
            .regions
            .get(index)
            .is_some_and(|next| next.start <= last)
        {
            return false;
        }
        self.regions.insert(index, region);
        true
    }

    /// Takes away the region that starts at `start`.
    pub(crate) fn remove(&mut self, start: u64) -> Option<Region> {
        let index = self.at(start);
        let found = self.regions.get(index)?.start == start;
        found.then(|| self.regions.remove(index))
    }

    /// The region that starts at `start`.
    pub(crate) fn get_mut(&mut self, start: u64) -> Option<&mut Region> {
        let index = self.at(start);
        self.regions
            .get_mut(index)
            .filter(|region| region.start == start)
    }

    /// Whether the device may access `size` bytes at `address`. `hint` is the index of the region
    /// found last, and is kept up to date.
    #[inline(always)]
    pub(crate) fn check(
        &self,
        address: u64,
        size: u64,
        write: bool,
        hint: &mut [u32; 2],
    ) -> Result<*mut u8, Refusal> {
        for slot in *hint {
            if let Some(region) = self.regions.get(slot as usize)
                && contains(region, address, size)
                && (region.access == Access::Write || !write && region.access == Access::Read)
            {
                return Ok(pointer(address));
            }
        }
        self.check_slowly(address, size, write, hint)
    }

    #[cold]
    fn check_slowly(
        &self,
        address: u64,
        size: u64,
        write: bool,
        hint: &mut [u32; 2],
    ) -> Result<*mut u8, Refusal> {
        let index = self.at(address);
        let region = self
            .regions
            .get(index)
            .filter(|region| contains(region, address, size))
            .ok_or(Refusal::Absent)?;
        match region.access {
            Access::None => Err(Refusal::HostOnly),
            Access::Read if write => Err(Refusal::ReadOnly),
            _ => {
                *hint = [index as u32, hint[0]];
                Ok(pointer(address))
            }
        }
    }
}

#[inline(always)]
fn contains(region: &Region, address: u64, size: u64) -> bool {
    let offset = address.wrapping_sub(region.start);
    offset < region.size && size <= region.size - offset
}

/// An address as a pointer.
#[inline(always)]
pub(crate) fn pointer(address: u64) -> *mut u8 {
    std::ptr::with_exposed_provenance_mut(address as usize)
}

macro_rules! accessors {
    ($load:ident, $store:ident, $int:ty, $atomic:ty) => {
        /// Loads a little-endian number.
        ///
        /// # Safety
        /// `at` is valid for reads of its size for the duration of the call.
        #[inline(always)]
        pub(crate) unsafe fn $load(at: *mut u8) -> $int {
            if at.addr().is_multiple_of(size_of::<$int>()) {
                // SAFETY: valid as promised and aligned as just seen; everyone else who touches the
                // memory meanwhile is another process's code, the host's atomics or these functions.
                return unsafe { <$atomic>::from_ptr(at.cast()) }.load(Ordering::Acquire);
            }
            let mut bytes = [0; size_of::<$int>()];
            for (i, byte) in bytes.iter_mut().enumerate() {
                // SAFETY: within the bytes promised; a byte is aligned.
                *byte = unsafe { AtomicU8::from_ptr(at.add(i)) }.load(Ordering::Acquire);
            }
            <$int>::from_le_bytes(bytes)
        }

        /// Stores a little-endian number.
        ///
        /// # Safety
        /// `at` is valid for writes of its size for the duration of the call.
        #[inline(always)]
        pub(crate) unsafe fn $store(at: *mut u8, value: $int) {
            if at.addr().is_multiple_of(size_of::<$int>()) {
                // SAFETY: as for the load.
                unsafe { <$atomic>::from_ptr(at.cast()) }.store(value, Ordering::Release);
                return;
            }
            for (i, byte) in value.to_le_bytes().into_iter().enumerate() {
                // SAFETY: as for the load.
                unsafe { AtomicU8::from_ptr(at.add(i)) }.store(byte, Ordering::Release);
            }
        }
    };
}

accessors!(load8, store8, u8, AtomicU8);
accessors!(load16, store16, u16, AtomicU16);
accessors!(load32, store32, u32, AtomicU32);
accessors!(load64, store64, u64, AtomicU64);

/// Copies as the copy engine does, which runs beside kernels.
///
/// # Safety
/// Both ranges are valid for `size` bytes for the duration of the call.
pub(crate) unsafe fn copy(to: *mut u8, from: *mut u8, size: usize) {
    let mut done = 0;
    while done < size {
        // SAFETY: all of these lie within the ranges promised.
        unsafe {
            let (to, from) = (to.add(done), from.add(done));
            if size - done >= 8 && to.addr().is_multiple_of(8) && from.addr().is_multiple_of(8) {
                store64(to, load64(from));
                done += 8;
            } else {
                store8(to, load8(from));
                done += 1;
            }
        }
    }
}
