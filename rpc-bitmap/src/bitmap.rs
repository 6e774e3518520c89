//! One bit per port.

use crate::memory::Memory;
use crate::scope::Device;

const WORD_BITS: u32 = u32::BITS;

/// An array of bits in `u32` words at an offset of some [`Memory`].
///
/// `INVERTED` turns what is read around: a server reads its inbox that way, so that memory of all
/// zeros means "the client owns every port" to both sides.
#[derive(Clone, Copy, Debug)]
pub struct Bitmap<M, const INVERTED: bool = false> {
    memory: M,
    offset: usize,
    bits: u32,
}

impl<M: Memory, const INVERTED: bool> Bitmap<M, INVERTED> {
    /// `bits` bits at `offset`. The memory holds zeros when the bitmap is first used.
    pub const fn new(memory: M, offset: usize, bits: u32) -> Self {
        Self {
            memory,
            offset,
            bits,
        }
    }

    /// How many bits there are.
    pub const fn bits(&self) -> u32 {
        self.bits
    }

    /// The word that holds `bit`, as its offset, and the bit within it.
    #[inline(always)]
    const fn place(&self, bit: u32) -> (usize, u32) {
        (
            self.offset + (bit / WORD_BITS) as usize * 4,
            1 << (bit % WORD_BITS),
        )
    }

    /// Reads `bit`, relaxed: what follows from it needs an acquire fence.
    #[inline(always)]
    pub fn read(&self, bit: u32) -> bool {
        let (word, mask) = self.place(bit);
        (self.memory.load32(word) & mask != 0) != INVERTED
    }

    /// Sets `bit`, which the caller knows to be clear, relaxed: what precedes it needs a release
    /// fence.
    ///
    /// Only this agent writes the bit, so an addition cannot carry into its neighbours. Additions
    /// cross PCIe as atomic operations where bit-wise ones do not.
    #[inline(always)]
    pub fn claim(&self, bit: u32) {
        let (word, mask) = self.place(bit);
        self.memory.fetch_add32(word, mask);
    }

    /// Clears `bit`, which the caller knows to be set, relaxed: what precedes it needs a release
    /// fence. The counterpart of [`claim`](Self::claim), by subtraction.
    #[inline(always)]
    pub fn release(&self, bit: u32) {
        let (word, mask) = self.place(bit);
        self.memory.fetch_add32(word, mask.wrapping_neg());
    }
}

/// What only works among the threads of one device, by atomics that PCIe does not have.
impl<M: Memory<Scope = Device>> Bitmap<M> {
    /// Sets `bit` if it is clear and says whether it was; *acquire*, pairing with
    /// [`unlock`](Self::unlock).
    #[inline(always)]
    pub fn try_claim(&self, bit: u32) -> bool {
        let (word, mask) = self.place(bit);
        self.memory.fetch_or32_acquire(word, mask) & mask == 0
    }

    /// Clears `bit`, which this thread has claimed; *release*, pairing with the acquire of
    /// whoever claims it next: that thread sees what this one did while it held the bit.
    #[inline(always)]
    pub fn unlock(&self, bit: u32) {
        let (word, mask) = self.place(bit);
        self.memory.fetch_and32_release(word, !mask);
    }

    /// Sets `bit`, relaxed, whatever it was.
    #[inline(always)]
    pub fn set(&self, bit: u32) {
        let (word, mask) = self.place(bit);
        self.memory.fetch_or32(word, mask);
    }

    /// Clears `bit`, relaxed, whatever it was.
    #[inline(always)]
    pub fn clear(&self, bit: u32) {
        let (word, mask) = self.place(bit);
        self.memory.fetch_and32(word, !mask);
    }

    /// Claims any clear bit below `limit`, searching from `start` and around; *acquire*, as
    /// [`try_claim`](Self::try_claim). `None` when the search found none.
    pub fn claim_any(&self, start: u32, limit: u32) -> Option<u32> {
        self.search(start, limit, false, |bit| {
            self.try_claim(bit).then_some(bit)
        })
    }

    /// Gives each bit below `limit` that is `value` to `take`, from `start` on and around, until
    /// that finds something. What is read is a hint (relaxed): `take` has to make sure.
    ///
    /// Each word costs one load.
    #[inline(always)]
    pub fn search<R>(
        &self,
        start: u32,
        limit: u32,
        value: bool,
        mut take: impl FnMut(u32) -> Option<R>,
    ) -> Option<R> {
        let limit = limit.min(self.bits);
        if limit == 0 {
            return None;
        }
        let start = start % limit;
        let words = limit.div_ceil(WORD_BITS);
        let first = start / WORD_BITS;
        // The first word is searched from `start` on, and at the end its beginning.
        for step in 0..=words {
            let index = if first + step < words {
                first + step
            } else {
                first + step - words
            };
            let mut candidates = self.word(index);
            if !value {
                candidates = !candidates;
            }
            if step == 0 {
                candidates &= !0 << (start % WORD_BITS);
            } else if step == words {
                candidates &= !(!0 << (start % WORD_BITS));
            }
            if index == words - 1 && !limit.is_multiple_of(WORD_BITS) {
                candidates &= !(!0 << (limit % WORD_BITS));
            }
            while candidates != 0 {
                if let Some(found) = take(index * WORD_BITS + candidates.trailing_zeros()) {
                    return Some(found);
                }
                candidates &= candidates - 1;
            }
        }
        None
    }

    /// The word of bits `32 * index ..`, relaxed.
    #[inline(always)]
    pub fn word(&self, index: u32) -> u32 {
        self.memory.load32(self.offset + index as usize * 4)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::collections::BTreeSet;
    use std::vec::Vec;

    use super::*;
    use crate::{Heap, System};

    #[test]
    fn claim_and_release_touch_one_bit() {
        let memory = Heap::<System>::new(64);
        let plain: Bitmap<_> = Bitmap::new(memory.clone(), 8, 70);
        let inverted: Bitmap<_, true> = Bitmap::new(memory.clone(), 8, 70);
        for bit in [0, 31, 32, 63, 64, 69] {
            plain.claim(bit);
            for other in 0..70 {
                assert_eq!(plain.read(other), other == bit);
                assert_eq!(inverted.read(other), other != bit);
            }
            plain.release(bit);
            assert!(!plain.read(bit));
        }
        assert_eq!(memory.load32(4), 0);
        assert_eq!(memory.load32(20), 0);
    }

    #[test]
    fn claim_any_gives_each_bit_once_from_any_start() {
        for limit in [1, 2, 31, 32, 33, 64, 70] {
            for start in [0, 1, 30, 31, 32, 33, 63, 69, 1000] {
                let locks: Bitmap<_> = Bitmap::new(Heap::<Device>::new(64), 0, 71);
                let mut given = BTreeSet::new();
                let first = locks.claim_any(start, limit);
                assert_eq!(first, Some(start % limit), "the search starts at its hint");
                given.extend(first);
                while let Some(bit) = locks.claim_any(start, limit) {
                    assert!(bit < limit);
                    assert!(given.insert(bit), "bit {bit} was given twice");
                }
                assert_eq!(given.len(), limit as usize, "limit {limit} start {start}");
            }
        }
    }

    #[test]
    fn a_search_looks_at_each_candidate_once() {
        let bits: Bitmap<_> = Bitmap::new(Heap::<Device>::new(64), 0, 70);
        for bit in [3, 33, 35, 69] {
            bits.set(bit);
        }
        let seen = |start, limit, value| {
            let mut seen = Vec::new();
            let none: Option<()> = bits.search(start, limit, value, |bit| {
                seen.push(bit);
                None
            });
            assert_eq!(none, None);
            seen
        };
        assert_eq!(seen(35, 70, true), [35, 69, 3, 33]);
        assert_eq!(seen(36, 69, true), [3, 33, 35]);
        assert_eq!(seen(2, 4, false), [2, 0, 1]);
        assert_eq!(
            bits.search(34, 70, true, |bit| (bit < 34).then_some(bit)),
            Some(3)
        );
        assert_eq!(bits.search(0, 0, false, Some), None);
    }

    #[test]
    fn sixteen_bytes_come_as_they_went() {
        let memory = Heap::<System>::new(64);
        memory.store128(16, [1, u64::MAX]);
        assert_eq!(memory.load128(16), [1, u64::MAX]);
        assert_eq!((memory.load64(16), memory.load64(24)), (1, u64::MAX));
        assert_eq!(memory.load128(32), [0; 2]);
    }

    #[test]
    fn threads_never_hold_the_same_bit() {
        let locks: Bitmap<_> = Bitmap::new(Heap::<Device>::new(64), 0, 3);
        let counts = Heap::<Device>::new(64);
        let threads: Vec<_> = (0..4)
            .map(|hint| {
                let (locks, counts) = (locks.clone(), counts.clone());
                std::thread::spawn(move || {
                    for _ in 0..2000 {
                        let bit = loop {
                            match locks.claim_any(hint, 3) {
                                Some(bit) => break bit,
                                None => std::thread::yield_now(),
                            }
                        };
                        let cell = bit as usize * 8;
                        // Not atomic on purpose: two holders would lose a count.
                        let mut word = [0];
                        counts.read(cell, &mut word);
                        counts.write(cell, &[word[0] + 1]);
                        locks.unlock(bit);
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!((0..3).map(|bit| counts.load64(bit * 8)).sum::<u64>(), 8000);
    }

    #[test]
    #[should_panic(expected = "do not lie in a region")]
    fn an_access_outside_the_region_panics() {
        Heap::<System>::new(64).load32(64);
    }
}
