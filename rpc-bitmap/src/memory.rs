//! Atomics, fences and copies at offsets of a region.

use crate::scope::Scope;

/// A region of memory that several agents access without references.
///
/// A value of this type is a handle: cloning it gives another one to the same region. Offsets are
/// in bytes from the region's start and aligned to the size of the access; an access outside the
/// region, or a misaligned one, panics on a host. On a GPU [`Raw`](crate::Raw) does not check: its
/// maker answers for it.
///
/// Atomic accesses are *relaxed* and at [`Memory::Scope`]; order comes from the two fences, so
/// that each place that needs order says so. The locking read-modify-writes at the end carry their
/// own, because on NVPTX an ordered atomic costs less than an atomic and a fence.
pub trait Memory: Clone {
    /// Whom the accesses reach.
    type Scope: Scope;

    /// Whether 16 aligned bytes can be read and written in one access on this target. On x86-64
    /// that is so on processors with AVX only: [`words_here`](crate::words_here) asks.
    const WORDS: bool;

    /// Reads a word.
    fn load32(&self, offset: usize) -> u32;
    /// Reads a double word in one access.
    fn load64(&self, offset: usize) -> u64;
    /// Writes a word.
    fn store32(&self, offset: usize, value: u32);
    /// Writes a double word in one access.
    fn store64(&self, offset: usize, value: u64);
    /// Reads 16 bytes, low double word first. In one access where [`WORDS`](Self::WORDS) says so.
    fn load128(&self, offset: usize) -> [u64; 2];
    /// Writes 16 bytes, low double word first. In one access where [`WORDS`](Self::WORDS) says so.
    fn store128(&self, offset: usize, value: [u64; 2]);
    /// Adds to a word, wrapping; returns what was there.
    fn fetch_add32(&self, offset: usize, value: u32) -> u32;
    /// Adds to a double word, wrapping; returns what was there.
    fn fetch_add64(&self, offset: usize, value: u64) -> u64;
    /// Adds to a double word, wrapping, with *release* order; returns what was there.
    fn fetch_add64_release(&self, offset: usize, value: u64) -> u64;

    /// Ors into a double word, relaxed; returns what was there.
    fn fetch_or64(&self, offset: usize, value: u64) -> u64;
    /// Ors into a word with *acquire* order; returns what was there.
    fn fetch_or32_acquire(&self, offset: usize, value: u32) -> u32;
    /// Ors into a word, relaxed; returns what was there.
    fn fetch_or32(&self, offset: usize, value: u32) -> u32;
    /// Ands into a word with *release* order; returns what was there.
    fn fetch_and32_release(&self, offset: usize, value: u32) -> u32;
    /// Ands into a word, relaxed; returns what was there.
    fn fetch_and32(&self, offset: usize, value: u32) -> u32;
    /// Ors into a double word with *acquire and release* order; returns what was there.
    fn fetch_or64_acq_rel(&self, offset: usize, value: u64) -> u64;
    /// Replaces the double word `current` by `new`, relaxed; returns what was there.
    fn compare_exchange64(&self, offset: usize, current: u64, new: u64) -> u64;

    /// No later access moves before this fence past a relaxed load that precedes it.
    fn acquire_fence(&self);
    /// As [`acquire_fence`](Self::acquire_fence), for later accesses of this region that are made only
    /// because of what the load has read. On NVPTX that takes no instruction (A11).
    #[inline(always)]
    fn acquire_dependent(&self) {
        self.acquire_fence();
    }
    /// No earlier access moves behind this fence past a relaxed store that follows it.
    fn release_fence(&self);

    /// Copies 16 aligned bytes of plain data out, low double word first; as [`read`](Self::read).
    fn read16(&self, offset: usize) -> [u64; 2] {
        let mut words = [0; 2];
        self.read(offset, &mut words);
        words
    }
    /// Copies 16 aligned bytes of plain data in, low double word first; as [`write`](Self::write).
    fn write16(&self, offset: usize, from: [u64; 2]) {
        self.write(offset, &from);
    }
    /// Copies plain data out; the protocol says that nobody writes it meanwhile, and if somebody
    /// does, the copy holds arbitrary bytes and nothing else happens.
    fn read(&self, offset: usize, into: &mut [u64]);
    /// Copies plain data in; the same holds for whoever reads it meanwhile.
    fn write(&self, offset: usize, from: &[u64]);

    /// Reads `N` words that lie `stride` bytes apart. One check for all of them, so the bytes of
    /// `N` strides are to lie in the region.
    #[inline(always)]
    fn load32_each<const N: usize>(&self, offset: usize, stride: u16) -> [u32; N] {
        core::array::from_fn(|i| self.load32(offset + i * stride as usize))
    }

    /// As [`load128`](Self::load128), for each bit of `mask` and `N` rows: `f` gets the bit's number and,
    /// of each row, the 16 bytes at so many times 16 from its start. The first row starts at `offset`,
    /// the others `stride` bytes after the one before. Lowest bits first.
    #[inline(always)]
    fn load128_each<const N: usize>(
        &self,
        offset: usize,
        stride: usize,
        mut mask: u64,
        mut f: impl FnMut(u32, [[u64; 2]; N]),
    ) {
        while mask != 0 {
            let bit = mask.trailing_zeros();
            let first = offset + bit as usize * 16;
            f(
                bit,
                core::array::from_fn(|row| self.load128(first + row * stride)),
            );
            mask &= mask - 1;
        }
    }

    /// As [`store128`](Self::store128), what `f` says for each bit of `mask`, placed as by
    /// [`load128_each`](Self::load128_each).
    #[inline(always)]
    fn store128_each<const N: usize>(
        &self,
        offset: usize,
        stride: usize,
        mut mask: u64,
        mut f: impl FnMut(u32) -> [[u64; 2]; N],
    ) {
        while mask != 0 {
            let bit = mask.trailing_zeros();
            let first = offset + bit as usize * 16;
            for (row, value) in f(bit).into_iter().enumerate() {
                self.store128(first + row * stride, value);
            }
            mask &= mask - 1;
        }
    }

    /// The line at `offset` will be read soon, or written if `write`: a hint, for places outside the
    /// region too.
    #[inline(always)]
    fn prefetch(&self, offset: usize, write: bool) {
        let _ = (offset, write);
    }
}
