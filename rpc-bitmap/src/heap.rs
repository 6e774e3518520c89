//! A region of this process's own, for servers' private state, the CPU device and tests.

use core::marker::PhantomData;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::sync::Arc;

use crate::memory::Memory;
use crate::raw::Raw;
use crate::scope::Scope;

/// A zeroed region that lives as long as its last handle.
#[derive(Clone, Debug)]
pub struct Heap<S> {
    block: Arc<Block>,
    scope: PhantomData<S>,
}

const ALIGNMENT: usize = 4096;

#[derive(Debug)]
struct Block {
    base: *mut u8,
    layout: Layout,
}

// SAFETY: the block is only an address to free; accesses go through `Raw`, which is `Send + Sync`.
unsafe impl Send for Block {}
// SAFETY: as for `Send`.
unsafe impl Sync for Block {}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: `base` came from `alloc_zeroed` with this layout, and this is the last handle.
        unsafe { dealloc(self.base, self.layout) };
    }
}

impl<S: Scope> Heap<S> {
    /// A region of `size` zero bytes, aligned to a page.
    ///
    /// # Panics
    /// If `size` is larger than half the address space.
    pub fn new(size: usize) -> Self {
        let layout =
            Layout::from_size_align(size.max(8), ALIGNMENT).expect("a size that can exist");
        // SAFETY: the layout's size is not zero.
        let base = unsafe { alloc_zeroed(layout) };
        if base.is_null() {
            handle_alloc_error(layout);
        }
        Self {
            block: Arc::new(Block { base, layout }),
            scope: PhantomData,
        }
    }

    /// Where the region starts. It is valid as long as a handle exists.
    pub fn as_ptr(&self) -> *mut u8 {
        self.block.base
    }

    /// Bytes of the region.
    pub fn size(&self) -> usize {
        self.block.layout.size()
    }

    /// The same region seen at another scope.
    pub fn at_scope<T: Scope>(&self) -> Heap<T> {
        Heap {
            block: Arc::clone(&self.block),
            scope: PhantomData,
        }
    }

    #[inline(always)]
    fn raw(&self) -> Raw<S> {
        // SAFETY: the block is page-aligned and allocated while `self` is borrowed, which is
        // longer than the handle is used; nothing else accesses it.
        unsafe { Raw::new(self.block.base, self.block.layout.size()) }
    }
}

macro_rules! forward {
    ($($name:ident($($arg:ident: $ty:ty),*) $(-> $ret:ty)?;)*) => {$(
        #[inline(always)]
        fn $name(&self, $($arg: $ty),*) $(-> $ret)? {
            self.raw().$name($($arg),*)
        }
    )*};
}

impl<S: Scope> Memory for Heap<S> {
    type Scope = S;
    const WORDS: bool = Raw::<S>::WORDS;

    forward! {
        load32(offset: usize) -> u32;
        load64(offset: usize) -> u64;
        store32(offset: usize, value: u32);
        store64(offset: usize, value: u64);
        fetch_add64_release(offset: usize, value: u64) -> u64;
        load128(offset: usize) -> [u64; 2];
        store128(offset: usize, value: [u64; 2]);
        fetch_or64(offset: usize, value: u64) -> u64;
        fetch_add32(offset: usize, value: u32) -> u32;
        fetch_add64(offset: usize, value: u64) -> u64;
        fetch_or32_acquire(offset: usize, value: u32) -> u32;
        fetch_or32(offset: usize, value: u32) -> u32;
        fetch_and32_release(offset: usize, value: u32) -> u32;
        fetch_and32(offset: usize, value: u32) -> u32;
        fetch_or64_acq_rel(offset: usize, value: u64) -> u64;
        compare_exchange64(offset: usize, current: u64, new: u64) -> u64;
        acquire_fence();
        release_fence();
        read16(offset: usize) -> [u64; 2];
        write16(offset: usize, from: [u64; 2]);
        read(offset: usize, into: &mut [u64]);
        write(offset: usize, from: &[u64]);
    }

    #[inline(always)]
    fn load32_each<const N: usize>(&self, offset: usize, stride: u16) -> [u32; N] {
        self.raw().load32_each(offset, stride)
    }

    #[inline(always)]
    fn load128_each<const N: usize>(
        &self,
        offset: usize,
        stride: usize,
        mask: u64,
        f: impl FnMut(u32, [[u64; 2]; N]),
    ) {
        self.raw().load128_each(offset, stride, mask, f);
    }

    #[inline(always)]
    fn store128_each<const N: usize>(
        &self,
        offset: usize,
        stride: usize,
        mask: u64,
        f: impl FnMut(u32) -> [[u64; 2]; N],
    ) {
        self.raw().store128_each(offset, stride, mask, f);
    }

    #[inline(always)]
    fn prefetch(&self, offset: usize, write: bool) {
        self.raw().prefetch(offset, write);
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::scope::System;

    /// Copies of the same place in two threads, in no order: what is read is what was there before or
    /// what is written. A race detector finds nothing either.
    #[test]
    fn copies_of_two_threads_meet() {
        const OLD: u64 = 0;
        const NEW: u64 = u64::MAX;
        for _ in 0..100 {
            let heap = Heap::<System>::new(64);
            let other = heap.clone();
            let writer = thread::spawn(move || {
                other.write(0, &[NEW; 4]);
                other.write16(32, [NEW; 2]);
            });
            let mut words = [OLD; 4];
            heap.read(0, &mut words);
            let pair = heap.read16(32);
            for word in words.into_iter().chain(pair) {
                assert!(word == OLD || word == NEW, "{word:#x}");
            }
            writer.join().expect("it only writes");
            assert_eq!(heap.read16(32), [NEW; 2]);
        }
    }
}
