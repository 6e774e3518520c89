//! Loads and stores, of vectors of lanes and scalar ones.
//!
//! Names lack the prefix that says which memory; [`crate::isa::text`] adds it.

use crate::fault::Cause;
use crate::isa::Kind::{self, D, N as Words, None as N, W};
use crate::isa::{Dst, Entry, Form, Inst, Src, e, form};
use crate::memory::{Space, load8, load16, load32, load64, store8, store16, store32, store64};
use crate::wave::{Flow, Wave};

const fn load(dst: Kind) -> Form {
    form(dst, [D, N, N])
}

const fn store(data: Kind) -> Form {
    form(N, [D, data, N])
}

impl Wave {
    /// Calls `f` with the place that each lane's address names.
    #[inline(always)]
    pub(super) fn access(
        &mut self,
        i: &Inst,
        space: &Space,
        size: u64,
        write: bool,
        mut f: impl FnMut(&mut Self, usize, *mut u8),
    ) -> Flow {
        let mut left = self.exec();
        while left != 0 {
            let lane = left.trailing_zeros() as usize;
            left &= left - 1;
            match self.locate(i, space, lane, size, write) {
                Ok(at) => f(self, lane, at),
                Err(cause) => return self.fail(cause),
            }
        }
        Flow::Next
    }

    /// Loads `COUNT` registers.
    #[inline(always)]
    fn load_words<const COUNT: usize>(&mut self, i: &Inst, space: &Space) -> Flow {
        self.access(i, space, COUNT as u64 * 4, false, |w, l, at| {
            // SAFETY: `access` gives a place with as many bytes, which stays while `space` is held.
            let words = unsafe { read_words::<COUNT>(at) };
            for (n, word) in words.into_iter().enumerate() {
                w.set_word(&i.dst, n, l, word);
            }
        })
    }

    /// Stores `COUNT` registers.
    #[inline(always)]
    fn store_words<const COUNT: usize>(&mut self, i: &Inst, space: &Space) -> Flow {
        self.access(i, space, COUNT as u64 * 4, true, |w, l, at| {
            let words = w.words::<COUNT>(&i.src[1], l);
            // SAFETY: as above.
            unsafe { write_words(at, words) };
        })
    }

    /// The registers of an operand.
    #[inline(always)]
    pub(super) fn words<const COUNT: usize>(&self, src: &Src, lane: usize) -> [u32; COUNT] {
        std::array::from_fn(|n| self.word(src, n, lane))
    }

    /// Loads a byte and extends it.
    #[inline(always)]
    fn load_byte(&mut self, i: &Inst, space: &Space, f: impl Fn(u8) -> u32) -> Flow {
        self.access(i, space, 1, false, |w, l, at| {
            // SAFETY: as above.
            let byte = unsafe { load8(at) };
            w.w32(&i.dst, l, f(byte));
        })
    }

    /// Loads 16 bits and extends them.
    #[inline(always)]
    fn load_short(&mut self, i: &Inst, space: &Space, f: impl Fn(u16) -> u32) -> Flow {
        self.access(i, space, 2, false, |w, l, at| {
            // SAFETY: as above.
            let short = unsafe { load16(at) };
            w.w32(&i.dst, l, f(short));
        })
    }

    /// Loads a byte or 16 bits into one half of a register.
    #[inline(always)]
    fn load_half(&mut self, i: &Inst, space: &Space, size: u64, shift: u8, signed: bool) -> Flow {
        let dst = Dst { shift, ..i.dst };
        self.access(i, space, size, false, |w, l, at| {
            // SAFETY: as above.
            let value = unsafe {
                match (size, signed) {
                    (1, false) => load8(at).into(),
                    (1, true) => load8(at) as i8 as u16,
                    _ => load16(at),
                }
            };
            w.w16(&dst, l, value);
        })
    }

    /// Stores a byte or 16 bits of a register.
    #[inline(always)]
    fn store_part(&mut self, i: &Inst, space: &Space, size: u64, shift: u8) -> Flow {
        self.access(i, space, size, true, |w, l, at| {
            let value = w.word(&i.src[1], 0, l) >> shift;
            // SAFETY: as above.
            unsafe {
                match size {
                    1 => store8(at, value as u8),
                    _ => store16(at, value as u16),
                }
            }
        })
    }

    /// Loads `COUNT` scalar registers.
    #[inline(always)]
    fn load_scalars<const COUNT: usize>(&mut self, i: &Inst, space: &Space) -> Flow {
        let mut address = self.s64(&i.src[0]).wrapping_add(i64::from(i.imm) as u64);
        if let Some(offset) = i.base {
            address = address.wrapping_add(self.regs[usize::from(offset)].into());
        }
        // The hardware ignores the lowest bits.
        match self.global(space, address & !3, COUNT as u64 * 4, false) {
            Ok(at) => {
                // SAFETY: as above.
                let words = unsafe { read_words::<COUNT>(at) };
                let first = usize::from(i.dst.base);
                self.regs[first..first + COUNT].copy_from_slice(&words);
                Flow::Next
            }
            Err(cause) => self.fail(cause),
        }
    }
}

/// Reads registers from memory; pairs at once where they are aligned, so that no 64-bit value tears.
///
/// # Safety
/// `at` is valid for reads of `COUNT` words.
#[inline(always)]
pub(super) unsafe fn read_words<const COUNT: usize>(at: *mut u8) -> [u32; COUNT] {
    let mut words = [0; COUNT];
    let mut n = 0;
    while n < COUNT {
        // SAFETY: within the words promised.
        unsafe {
            if n + 1 < COUNT && at.addr().is_multiple_of(8) {
                let pair = load64(at.add(n * 4));
                (words[n], words[n + 1]) = (pair as u32, (pair >> 32) as u32);
                n += 2;
            } else {
                words[n] = load32(at.add(n * 4));
                n += 1;
            }
        }
    }
    words
}

/// Writes registers to memory.
///
/// # Safety
/// `at` is valid for writes of `COUNT` words.
#[inline(always)]
pub(super) unsafe fn write_words<const COUNT: usize>(at: *mut u8, words: [u32; COUNT]) {
    let mut n = 0;
    while n < COUNT {
        // SAFETY: within the words promised.
        unsafe {
            if n + 1 < COUNT && at.addr().is_multiple_of(8) {
                store64(
                    at.add(n * 4),
                    u64::from(words[n]) | u64::from(words[n + 1]) << 32,
                );
                n += 2;
            } else {
                store32(at.add(n * 4), words[n]);
                n += 1;
            }
        }
    }
}

pub(super) static MEMORY: &[Entry] = &[
    e(16, "load_u8", load(W), |w, i, s| {
        w.load_byte(i, s, u32::from)
    }),
    e(17, "load_i8", load(W), |w, i, s| {
        w.load_byte(i, s, |a| a as i8 as u32)
    }),
    e(18, "load_u16", load(W), |w, i, s| {
        w.load_short(i, s, u32::from)
    }),
    e(19, "load_i16", load(W), |w, i, s| {
        w.load_short(i, s, |a| a as i16 as u32)
    }),
    e(20, "load_b32", load(W), |w, i, s| w.load_words::<1>(i, s)),
    e(21, "load_b64", load(Words(2)), |w, i, s| {
        w.load_words::<2>(i, s)
    }),
    e(22, "load_b96", load(Words(3)), |w, i, s| {
        w.load_words::<3>(i, s)
    }),
    e(23, "load_b128", load(Words(4)), |w, i, s| {
        w.load_words::<4>(i, s)
    }),
    e(24, "store_b8", store(W), |w, i, s| w.store_part(i, s, 1, 0)),
    e(25, "store_b16", store(W), |w, i, s| {
        w.store_part(i, s, 2, 0)
    }),
    e(26, "store_b32", store(W), |w, i, s| {
        w.store_words::<1>(i, s)
    }),
    e(27, "store_b64", store(Words(2)), |w, i, s| {
        w.store_words::<2>(i, s)
    }),
    e(28, "store_b96", store(Words(3)), |w, i, s| {
        w.store_words::<3>(i, s)
    }),
    e(29, "store_b128", store(Words(4)), |w, i, s| {
        w.store_words::<4>(i, s)
    }),
    e(30, "load_d16_u8", load(W), |w, i, s| {
        w.load_half(i, s, 1, 0, false)
    }),
    e(31, "load_d16_i8", load(W), |w, i, s| {
        w.load_half(i, s, 1, 0, true)
    }),
    e(32, "load_d16_b16", load(W), |w, i, s| {
        w.load_half(i, s, 2, 0, false)
    }),
    e(33, "load_d16_hi_u8", load(W), |w, i, s| {
        w.load_half(i, s, 1, 16, false)
    }),
    e(34, "load_d16_hi_i8", load(W), |w, i, s| {
        w.load_half(i, s, 1, 16, true)
    }),
    e(35, "load_d16_hi_b16", load(W), |w, i, s| {
        w.load_half(i, s, 2, 16, false)
    }),
    e(36, "store_d16_hi_b8", store(W), |w, i, s| {
        w.store_part(i, s, 1, 16)
    }),
    e(37, "store_d16_hi_b16", store(W), |w, i, s| {
        w.store_part(i, s, 2, 16)
    }),
];

pub(super) static SMEM: &[Entry] = &[
    e(0, "s_load_b32", load(W), |w, i, s| {
        w.load_scalars::<1>(i, s)
    }),
    e(1, "s_load_b64", load(Words(2)), |w, i, s| {
        w.load_scalars::<2>(i, s)
    }),
    e(2, "s_load_b128", load(Words(4)), |w, i, s| {
        w.load_scalars::<4>(i, s)
    }),
    e(3, "s_load_b256", load(Words(8)), |w, i, s| {
        w.load_scalars::<8>(i, s)
    }),
    e(4, "s_load_b512", load(Words(16)), |w, i, s| {
        w.load_scalars::<16>(i, s)
    }),
    e(32, "s_gl1_inv", form(N, [N, N, N]), |_, _, _| Flow::Next),
    e(33, "s_dcache_inv", form(N, [N, N, N]), |_, _, _| Flow::Next),
];

/// Fails at an address that is no multiple of an atomic operation's size.
#[inline(always)]
pub(super) fn aligned(at: *mut u8, size: usize) -> Result<(), Cause> {
    if at.addr().is_multiple_of(size) {
        Ok(())
    } else {
        Err(Cause::Unaligned(at.addr() as u64))
    }
}
