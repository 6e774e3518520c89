//! A workgroup: what its waves share.

use std::cell::UnsafeCell;
use std::sync::{Arc, Mutex, PoisonError};

use crate::code::{Code, CodeMap};
use crate::fault::Cause;
use crate::wave::Wave;

/// Local memory of a workgroup, which its waves may touch at the same time.
pub(crate) struct Local {
    words: Box<[UnsafeCell<u64>]>,
    size: u64,
}

// SAFETY: all access goes through the atomic accessors of `crate::memory`.
unsafe impl Sync for Local {}

impl Local {
    /// `size` zeroed bytes.
    pub(crate) fn new(size: u32) -> Self {
        let words = (0..size.div_ceil(8)).map(|_| UnsafeCell::new(0));
        Self {
            words: words.collect(),
            size: size.into(),
        }
    }

    /// Where `size` bytes at `offset` lie.
    #[inline(always)]
    pub(crate) fn locate(&self, offset: u64, size: u64) -> Result<*mut u8, Cause> {
        if offset + size > self.size {
            return Err(Cause::Local {
                offset,
                limit: self.size,
            });
        }
        let start = UnsafeCell::raw_get(self.words.as_ptr()).cast::<u8>();
        // SAFETY: just checked; both numbers are far below the largest.
        Ok(unsafe { start.add(offset as usize) })
    }
}

/// What is known of the waves of a workgroup.
#[derive(Default)]
struct Barrier {
    /// Waves that have not ended.
    alive: u32,
    /// Waves that wait.
    waiting: Vec<Box<Wave>>,
}

/// A workgroup.
pub(crate) struct Group {
    /// Its position in the grid.
    pub(crate) id: [u32; 3],
    /// Its local memory.
    pub(crate) local: Local,
    barrier: Mutex<Barrier>,
    codes: Arc<CodeMap>,
}

impl Group {
    /// A workgroup of `waves` waves.
    pub(crate) fn new(id: [u32; 3], waves: u32, local: u32, codes: Arc<CodeMap>) -> Self {
        Self {
            id,
            local: Local::new(local),
            barrier: Mutex::new(Barrier {
                alive: waves,
                waiting: Vec::new(),
            }),
            codes,
        }
    }

    /// The code at an address.
    pub(crate) fn code(&self, pc: u64) -> Option<Arc<Code>> {
        self.codes.find(pc)
    }

    /// Lets `wave` wait; gives all waves of the group if it was the last one.
    pub(crate) fn arrive(&self, wave: Box<Wave>) -> Vec<Box<Wave>> {
        let mut barrier = self.barrier.lock().unwrap_or_else(PoisonError::into_inner);
        barrier.waiting.push(wave);
        barrier.released()
    }

    /// A wave has ended; gives those that waited only for it. The second value tells whether it was
    /// the last one of the group.
    pub(crate) fn leave(&self) -> (Vec<Box<Wave>>, bool) {
        let mut barrier = self.barrier.lock().unwrap_or_else(PoisonError::into_inner);
        barrier.alive -= 1;
        (barrier.released(), barrier.alive == 0)
    }

    /// Drops the waves that wait: they refer to the group, which would never be freed.
    pub(crate) fn clear(&self) {
        let waves = {
            let mut barrier = self.barrier.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut barrier.waiting)
        };
        drop(waves);
    }
}

impl Barrier {
    fn released(&mut self) -> Vec<Box<Wave>> {
        if self.waiting.len() as u32 == self.alive {
            std::mem::take(&mut self.waiting)
        } else {
            Vec::new()
        }
    }
}
