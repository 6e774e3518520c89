//! A region given by its address.

use core::marker::PhantomData;

use crate::memory::Memory;
use crate::scope::Scope;

#[cfg(not(target_arch = "nvptx64"))]
#[path = "raw/core_atomics.rs"]
mod target;
#[cfg(target_arch = "nvptx64")]
#[path = "raw/nvptx.rs"]
mod target;

/// Whether this processor does what [`Memory::WORDS`] promises for its target. It asks the
/// processor, which takes a while: ask once.
pub fn words_here() -> bool {
    target::words_here()
}

/// `place` will be written soon, or read: its line comes meanwhile. A hint, of which a GPU makes
/// nothing.
#[inline(always)]
pub fn prefetch<T>(place: &T, write: bool) {
    target::prefetch(core::ptr::from_ref(place).cast(), write);
}

/// Memory at an address, as any agent that can reach it sees it.
///
/// No reference into the region is ever made: each access is an atomic instruction, or a volatile one
/// of a GPU, on a raw pointer, since the other side may write at any time.
#[derive(Debug)]
pub struct Raw<S> {
    base: *mut u8,
    size: usize,
    scope: PhantomData<S>,
}

impl<S> Clone for Raw<S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Raw<S> {}

// SAFETY: `new`'s caller promises that the region may be accessed from any thread through this
// type; a host's accesses are atomic, and a GPU's are that or volatile copies of data whose ownership
// the protocol passes on with fences.
unsafe impl<S> Send for Raw<S> {}
// SAFETY: as for `Send`; no method hands out a reference into the region.
unsafe impl<S> Sync for Raw<S> {}

impl<S: Scope> Raw<S> {
    /// The region of `size` bytes at `base`.
    ///
    /// # Safety
    /// `base` is aligned to the largest access that is made, and the region stays allocated, readable
    /// and writable for as long as this handle or a copy of it is used. On NVPTX it lies in the global
    /// window. While it is used, the region is accessed only
    /// through handles like this one, or by other agents that reach the same memory.
    ///
    /// On GPUs, where a call waits for each instruction in its way, offsets are not checked: there
    /// the caller also promises that every offset given to this handle or a copy of it lies in the
    /// region and is aligned to its access. So such a handle must not get into the hands of code that
    /// cannot promise this.
    pub const unsafe fn new(base: *mut u8, size: usize) -> Self {
        Self {
            base,
            size,
            scope: PhantomData,
        }
    }

    /// Bytes of the region.
    pub const fn size(&self) -> usize {
        self.size
    }

    /// The address of `count` values at `offset`: checked on a host.
    #[inline(always)]
    fn at<T>(&self, offset: usize, count: usize) -> *mut T {
        let bytes = count * size_of::<T>();
        let inside = bytes <= self.size && offset <= self.size - bytes;
        if target::CHECKS && (!inside || !offset.is_multiple_of(size_of::<T>())) {
            target::out_of_bounds(offset, bytes, self.size);
        }
        // SAFETY: `offset` lies within the region, as was checked or, on a GPU, as `new`'s caller
        // promises; the region is one allocation by `new`'s contract.
        unsafe { self.base.add(offset).cast() }
    }

    /// The address of the first of `N` rows of as many 16 bytes as `mask` is long, `stride` bytes apart:
    /// checked on a host, all of them.
    #[inline(always)]
    fn rows<const N: usize>(&self, offset: usize, stride: usize, mask: u64) -> *mut [u64; 2] {
        let count = (u64::BITS - mask.leading_zeros()) as usize;
        let last = offset.saturating_add(N.saturating_sub(1).saturating_mul(stride));
        // The last row ends last, and rows are whole numbers of 16 bytes apart if it is aligned too.
        if target::CHECKS && !stride.is_multiple_of(size_of::<[u64; 2]>()) {
            target::out_of_bounds(offset, stride, self.size);
        }
        self.at::<[u64; 2]>(last, count);
        self.at::<[u64; 2]>(offset, count)
    }
}

/// Forwards to the target's instruction.
macro_rules! forward {
    ($($name:ident($($arg:ident: $ty:ty),*) -> $ret:ty, $cell:ty;)*) => {$(
        #[inline(always)]
        fn $name(&self, offset: usize, $($arg: $ty),*) -> $ret {
            let address = self.at::<$cell>(offset, 1);
            // SAFETY: the cell lies in the region and is aligned (see `at`); by `new`'s contract the
            // region is allocated and everybody accesses it atomically.
            unsafe { target::$name::<S>(address, $($arg),*) }
        }
    )*};
}

impl<S: Scope> Memory for Raw<S> {
    type Scope = S;
    const WORDS: bool = target::WORDS;

    forward! {
        load32() -> u32, u32;
        load64() -> u64, u64;
        store32(value: u32) -> (), u32;
        store64(value: u64) -> (), u64;
        fetch_add64_release(value: u64) -> u64, u64;
        load128() -> [u64; 2], [u64; 2];
        store128(value: [u64; 2]) -> (), [u64; 2];
        fetch_or64(value: u64) -> u64, u64;
        fetch_add32(value: u32) -> u32, u32;
        fetch_add64(value: u64) -> u64, u64;
        fetch_or32_acquire(value: u32) -> u32, u32;
        fetch_or32(value: u32) -> u32, u32;
        fetch_and32_release(value: u32) -> u32, u32;
        fetch_and32(value: u32) -> u32, u32;
        fetch_or64_acq_rel(value: u64) -> u64, u64;
        compare_exchange64(current: u64, new: u64) -> u64, u64;
    }

    #[inline(always)]
    fn acquire_fence(&self) {
        target::acquire_fence::<S>();
    }

    #[inline(always)]
    fn acquire_dependent(&self) {
        target::acquire_dependent::<S>();
    }

    #[inline(always)]
    fn release_fence(&self) {
        target::release_fence::<S>();
    }

    #[inline(always)]
    fn read16(&self, offset: usize) -> [u64; 2] {
        let from = self.at::<[u64; 2]>(offset, 1);
        // SAFETY: the range lies in the region and is aligned (see `at`). A value that another agent
        // writes meanwhile is arbitrary, as in `read`.
        unsafe { target::read16(from) }
    }

    #[inline(always)]
    fn write16(&self, offset: usize, from: [u64; 2]) {
        let to = self.at::<[u64; 2]>(offset, 1);
        // SAFETY: as in `read16`.
        unsafe { target::write16(to, from) };
    }

    #[inline(always)]
    fn read(&self, offset: usize, into: &mut [u64]) {
        let from = self.at::<u64>(offset, into.len());
        for (i, word) in into.iter_mut().enumerate() {
            // SAFETY: the whole range lies in the region (see `at`). A value that another agent writes
            // meanwhile is arbitrary, and any bits are a `u64`.
            *word = unsafe { target::read8(from.add(i)) };
        }
    }

    #[inline(always)]
    fn write(&self, offset: usize, from: &[u64]) {
        let to = self.at::<u64>(offset, from.len());
        for (i, word) in from.iter().enumerate() {
            // SAFETY: as in `read`.
            unsafe { target::write8(to.add(i), *word) };
        }
    }

    #[inline(always)]
    fn load32_each<const N: usize>(&self, offset: usize, stride: u16) -> [u32; N] {
        const { assert!(N < 1 << 15, "strides that do not overflow") };
        let stride = stride as usize;
        let bytes = stride * N;
        let inside = bytes <= self.size && offset <= self.size - bytes;
        if !inside || !(offset | stride).is_multiple_of(4) {
            target::out_of_bounds(offset, bytes, self.size);
        }
        core::array::from_fn(|i| {
            // SAFETY: `N` strides from `offset` on lie in the region, as was just checked, and all
            // are whole numbers of words from its start; the rest as in `forward`.
            unsafe { target::load32::<S>(self.base.add(offset + i * stride).cast()) }
        })
    }

    #[inline(always)]
    fn load128_each<const N: usize>(
        &self,
        offset: usize,
        stride: usize,
        mut mask: u64,
        mut f: impl FnMut(u32, [[u64; 2]; N]),
    ) {
        let first = self.rows::<N>(offset, stride, mask);
        while mask != 0 {
            let bit = mask.trailing_zeros() as usize;
            let rows = core::array::from_fn(|row| {
                // SAFETY: `rows` checked the ranges up to the highest bit of each row; the rest as in
                // `forward`.
                unsafe { target::load128::<S>(first.byte_add(row * stride).add(bit)) }
            });
            f(bit as u32, rows);
            mask &= mask - 1;
        }
    }

    #[inline(always)]
    fn store128_each<const N: usize>(
        &self,
        offset: usize,
        stride: usize,
        mut mask: u64,
        mut f: impl FnMut(u32) -> [[u64; 2]; N],
    ) {
        let first = self.rows::<N>(offset, stride, mask);
        while mask != 0 {
            let bit = mask.trailing_zeros() as usize;
            for (row, value) in f(bit as u32).into_iter().enumerate() {
                // SAFETY: as in `load128_each`.
                unsafe { target::store128::<S>(first.byte_add(row * stride).add(bit), value) };
            }
            mask &= mask - 1;
        }
    }

    #[inline(always)]
    fn prefetch(&self, offset: usize, write: bool) {
        // An address only: it may lie anywhere.
        target::prefetch(self.base.wrapping_add(offset), write);
    }
}
