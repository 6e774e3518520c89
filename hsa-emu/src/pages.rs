//! Whole pages of the host's memory, which come zeroed and are taken back at once when freed.

use crate::memory::pointer;

/// The granule of device memory.
pub(crate) const PAGE: u64 = 4096;

/// Memory that was mapped for the device.
#[derive(Debug)]
pub(crate) struct Pages {
    /// Its address.
    pub(crate) start: u64,
    /// Bytes, a multiple of [`PAGE`].
    pub(crate) size: u64,
}

impl Pages {
    /// At least `size` zeroed bytes.
    pub(crate) fn new(size: u64) -> Option<Self> {
        let size = size.max(1).checked_next_multiple_of(PAGE)?;
        let length = usize::try_from(size).ok()?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping, of no file, anywhere.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), length, protection, flags, -1, 0) };
        if at == libc::MAP_FAILED {
            return None;
        }
        Some(Self {
            start: at.expose_provenance() as u64,
            size,
        })
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: this value's own mapping. Device accesses to it have ended, since it is removed from
        // the space first; the host's are the host's business, as with any freed memory.
        unsafe { libc::munmap(pointer(self.start).cast(), self.size as usize) };
    }
}
