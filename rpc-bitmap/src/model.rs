//! A region made of loom's cells, for models of what is built on [`Memory`].
//!
//! loom's atomics are larger than real ones, so a region lists its cells: those that are accessed
//! atomically, and the plain words, where loom reports every access that is not ordered.

use std::collections::HashMap;
use std::sync::Arc;
use std::vec::Vec;

use core::marker::PhantomData;

use loom::cell::UnsafeCell;
use loom::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use loom::sync::atomic::{AtomicU32, AtomicU64, fence};

use crate::memory::Memory;
use crate::scope::Scope;

/// A region of loom's cells.
#[derive(Debug)]
pub struct Model<S> {
    cells: Arc<Cells>,
    scope: PhantomData<S>,
}

impl<S> Clone for Model<S> {
    fn clone(&self) -> Self {
        Self {
            cells: Arc::clone(&self.cells),
            scope: PhantomData,
        }
    }
}

#[derive(Debug)]
struct Cells {
    words: HashMap<usize, AtomicU32>,
    doubles: HashMap<usize, AtomicU64>,
    plain: HashMap<usize, UnsafeCell<u64>>,
    /// 16-byte words: loom has no atomic as large, so each is the place of its value in `values`.
    words16: HashMap<usize, AtomicU64>,
    /// Only grows. Not loom's: it stands for bits of an atomic, so it must not order anything.
    values: std::sync::Mutex<Vec<[u64; 2]>>,
}

// SAFETY: loom's `UnsafeCell` is what keeps this from being `Sync`, and it checks each access.
unsafe impl Sync for Cells {}
// SAFETY: as for `Sync`.
unsafe impl Send for Cells {}

impl<S: Scope> Model<S> {
    /// A region of zeros with atomic words and double words and plain words at these offsets.
    pub fn new(words: &[usize], doubles: &[usize], plain: &[usize]) -> Self {
        Self::with_words16(words, doubles, plain, &[])
    }

    /// As [`new`](Self::new), with atomic words of 16 bytes besides. The lowest four bytes of one
    /// can be read by [`load32`](Memory::load32) too, its low half by [`load64`](Memory::load64).
    pub fn with_words16(
        words: &[usize],
        doubles: &[usize],
        plain: &[usize],
        words16: &[usize],
    ) -> Self {
        let cells = Cells {
            words: words
                .iter()
                .map(|&offset| (offset, AtomicU32::new(0)))
                .collect(),
            doubles: doubles
                .iter()
                .map(|&offset| (offset, AtomicU64::new(0)))
                .collect(),
            plain: plain
                .iter()
                .map(|&offset| (offset, UnsafeCell::new(0)))
                .collect(),
            words16: words16
                .iter()
                .map(|&offset| (offset, AtomicU64::new(0)))
                .collect(),
            values: std::sync::Mutex::new(Vec::from([[0; 2]])),
        };
        Self {
            cells: Arc::new(cells),
            scope: PhantomData,
        }
    }

    fn word(&self, offset: usize) -> &AtomicU32 {
        self.cells
            .words
            .get(&offset)
            .unwrap_or_else(|| panic!("no word at {offset:#x}"))
    }

    fn double(&self, offset: usize) -> &AtomicU64 {
        self.cells
            .doubles
            .get(&offset)
            .unwrap_or_else(|| panic!("no double word at {offset:#x}"))
    }

    fn word16(&self, offset: usize) -> &AtomicU64 {
        self.cells
            .words16
            .get(&offset)
            .unwrap_or_else(|| panic!("no 16-byte word at {offset:#x}"))
    }

    fn values(&self) -> std::sync::MutexGuard<'_, Vec<[u64; 2]>> {
        self.cells.values.lock().expect("nobody panics holding it")
    }

    fn plain(&self, offset: usize, count: usize) -> Vec<&UnsafeCell<u64>> {
        (0..count)
            .map(|i| {
                let at = offset + i * 8;
                self.cells
                    .plain
                    .get(&at)
                    .unwrap_or_else(|| panic!("no plain word at {at:#x}"))
            })
            .collect()
    }
}

impl<S: Scope> Memory for Model<S> {
    type Scope = S;
    const WORDS: bool = true;

    fn load32(&self, offset: usize) -> u32 {
        if self.cells.words16.contains_key(&offset) {
            return self.load128(offset)[0] as u32;
        }
        self.word(offset).load(Relaxed)
    }
    fn load64(&self, offset: usize) -> u64 {
        if self.cells.words16.contains_key(&offset) {
            return self.load128(offset)[0];
        }
        self.double(offset).load(Relaxed)
    }
    fn load128(&self, offset: usize) -> [u64; 2] {
        if !self.cells.words16.contains_key(&offset) {
            // Made of smaller cells: not in one access.
            let low = u64::from(self.load32(offset)) | u64::from(self.load32(offset + 4)) << 32;
            return [low, self.load64(offset + 8)];
        }
        let place = self.word16(offset).load(Relaxed);
        self.values()[place as usize]
    }
    fn store128(&self, offset: usize, value: [u64; 2]) {
        let mut values = self.values();
        values.push(value);
        let place = values.len() as u64 - 1;
        drop(values);
        // A swap, so that stores of different threads keep the order in which they are made. That the
        // device's stores do so where the protocol needs it is an assumption (A9) that no lock or
        // fence of the code gives.
        self.word16(offset).swap(place, Relaxed);
    }
    fn fetch_add64_release(&self, offset: usize, value: u64) -> u64 {
        self.double(offset).fetch_add(value, Release)
    }
    fn fetch_or64(&self, offset: usize, value: u64) -> u64 {
        self.double(offset).fetch_or(value, Relaxed)
    }
    fn store32(&self, offset: usize, value: u32) {
        self.word(offset).store(value, Relaxed);
    }
    fn store64(&self, offset: usize, value: u64) {
        self.double(offset).store(value, Relaxed);
    }
    fn fetch_add32(&self, offset: usize, value: u32) -> u32 {
        self.word(offset).fetch_add(value, Relaxed)
    }
    fn fetch_add64(&self, offset: usize, value: u64) -> u64 {
        self.double(offset).fetch_add(value, Relaxed)
    }
    fn fetch_or32_acquire(&self, offset: usize, value: u32) -> u32 {
        self.word(offset).fetch_or(value, Acquire)
    }
    fn fetch_or32(&self, offset: usize, value: u32) -> u32 {
        self.word(offset).fetch_or(value, Relaxed)
    }
    fn fetch_and32_release(&self, offset: usize, value: u32) -> u32 {
        self.word(offset).fetch_and(value, Release)
    }
    fn fetch_and32(&self, offset: usize, value: u32) -> u32 {
        self.word(offset).fetch_and(value, Relaxed)
    }
    fn fetch_or64_acq_rel(&self, offset: usize, value: u64) -> u64 {
        self.double(offset).fetch_or(value, AcqRel)
    }
    fn compare_exchange64(&self, offset: usize, current: u64, new: u64) -> u64 {
        self.double(offset)
            .compare_exchange(current, new, Relaxed, Relaxed)
            .unwrap_or_else(|found| found)
    }
    fn acquire_fence(&self) {
        fence(Acquire);
    }
    fn release_fence(&self) {
        fence(Release);
    }
    fn read(&self, offset: usize, into: &mut [u64]) {
        for (cell, word) in self.plain(offset, into.len()).into_iter().zip(into) {
            // SAFETY: the pointer is loom's and valid; loom fails the model if a write is not
            // ordered before this read.
            *word = cell.with(|value| unsafe { *value });
        }
    }
    fn write(&self, offset: usize, from: &[u64]) {
        for (cell, word) in self.plain(offset, from.len()).into_iter().zip(from) {
            // SAFETY: as in `read`, for any access that is not ordered before this write.
            cell.with_mut(|value| unsafe { *value = *word });
        }
    }
}
