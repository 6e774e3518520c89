//! Private memory: each lane's stack.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

use crate::fault::Cause;

/// Private memory of the lanes of one wave, one part after the other.
pub(crate) struct Private {
    start: NonNull<u8>,
    /// Bytes of a lane.
    size: u32,
    layout: Option<Layout>,
}

// SAFETY: an allocation that only the owner of this value names.
unsafe impl Send for Private {}

impl Private {
    /// `size` zeroed bytes for each of `lanes` lanes; `None` if there is not as much memory.
    pub(crate) fn new(size: u32, lanes: u16) -> Option<Self> {
        let size = size.checked_next_multiple_of(16)?;
        if size == 0 {
            return Some(Self {
                start: NonNull::dangling(),
                size,
                layout: None,
            });
        }
        let bytes = usize::try_from(size).ok()?.checked_mul(lanes.into())?;
        let layout = Layout::from_size_align(bytes, 16).ok()?;
        // SAFETY: the size is not zero.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        Some(Self {
            start,
            size,
            layout: Some(layout),
        })
    }

    /// Where `size` bytes at `offset` of `lane`'s part lie.
    #[inline(always)]
    pub(crate) fn locate(&self, lane: usize, offset: u32, size: u64) -> Result<*mut u8, Cause> {
        if u64::from(offset) + size > u64::from(self.size) {
            return Err(Cause::Private {
                offset,
                limit: self.size,
            });
        }
        // SAFETY: lanes are fewer than the allocation was made for, and the offset was just checked.
        Ok(unsafe {
            self.start
                .as_ptr()
                .add(lane * self.size as usize + offset as usize)
        })
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        if let Some(layout) = self.layout {
            // SAFETY: allocated with this layout, and nothing refers to it any more.
            unsafe { dealloc(self.start.as_ptr(), layout) };
        }
    }
}
