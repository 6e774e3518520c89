//! Local data share: loads, stores and atomics on a workgroup's memory, and exchanges between lanes
//! that go through its hardware.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::atomic::{decrement, increment, on_floats, update32, update64};
use super::load::{aligned, read_words, write_words};
use crate::float;
use crate::isa::Kind::{self, N as Words, None as N, W};
use crate::isa::{Dst, Entry, Form, Inst, Src, e, form};
use crate::memory::{Space, load8, load16, store8, store16};
use crate::wave::{Flow, Wave};

const fn load(dst: Kind) -> Form {
    form(dst, [W, N, N])
}

const fn store(data: Kind) -> Form {
    form(N, [W, data, N])
}

const fn store2(data: Kind) -> Form {
    form(N, [W, data, data])
}

const fn rtn(value: Kind) -> Form {
    form(value, [W, value, N])
}

impl Wave {
    /// Loads `COUNT` registers.
    #[inline(always)]
    fn ds_load<const COUNT: usize>(&mut self, i: &Inst, space: &Space) -> Flow {
        self.access(i, space, COUNT as u64 * 4, false, |w, l, at| {
            // SAFETY: `access` gives a place with as many bytes in the group's memory.
            let words = unsafe { read_words::<COUNT>(at) };
            for (n, word) in words.into_iter().enumerate() {
                w.set_word(&i.dst, n, l, word);
            }
        })
    }

    #[inline(always)]
    fn ds_store<const COUNT: usize>(&mut self, i: &Inst, space: &Space) -> Flow {
        self.access(i, space, COUNT as u64 * 4, true, |w, l, at| {
            let words = w.words::<COUNT>(&i.src[1], l);
            // SAFETY: as above.
            unsafe { write_words(at, words) };
        })
    }

    /// Two accesses of `COUNT` registers at offsets in units of `unit` bytes.
    #[inline(always)]
    fn ds_two<const COUNT: usize>(&mut self, i: &Inst, unit: u64, store: bool) -> Flow {
        let offsets = [
            (i.imm & 255) as u64 * unit,
            (i.imm >> 8 & 255) as u64 * unit,
        ];
        let mut left = self.exec();
        while left != 0 {
            let lane = left.trailing_zeros() as usize;
            left &= left - 1;
            // Read before anything is written: the result may be where the address was.
            let address = u64::from(self.word(&i.src[0], 0, lane));
            for (n, offset) in offsets.into_iter().enumerate() {
                let at = match self.group.local.locate(address + offset, COUNT as u64 * 4) {
                    Ok(at) => at,
                    Err(cause) => return self.fail(cause),
                };
                // SAFETY: as above.
                unsafe {
                    if store {
                        write_words(at, self.words::<COUNT>(&i.src[1 + n], lane));
                    } else {
                        for (k, word) in read_words::<COUNT>(at).into_iter().enumerate() {
                            self.set_word(&i.dst, n * COUNT + k, lane, word);
                        }
                    }
                }
            }
        }
        Flow::Next
    }

    /// Loads a byte or 16 bits, into a register or one half of it.
    #[inline(always)]
    fn ds_part(
        &mut self,
        i: &Inst,
        space: &Space,
        size: u64,
        signed: bool,
        half: Option<u8>,
    ) -> Flow {
        self.access(i, space, size, false, |w, l, at| {
            // SAFETY: as above.
            let value = unsafe {
                match (size, signed) {
                    (1, false) => load8(at).into(),
                    (1, true) => load8(at) as i8 as u32,
                    (_, false) => load16(at).into(),
                    (_, true) => load16(at) as i16 as u32,
                }
            };
            match half {
                None => w.w32(&i.dst, l, value),
                Some(shift) => w.w16(&Dst { shift, ..i.dst }, l, value as u16),
            }
        })
    }

    #[inline(always)]
    fn ds_store_part(&mut self, i: &Inst, space: &Space, size: u64, shift: u8) -> Flow {
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

    #[inline(always)]
    fn ds_atomic32(
        &mut self,
        i: &Inst,
        space: &Space,
        f: impl Fn(&AtomicU32, u32, u32) -> u32,
    ) -> Flow {
        let returns = i.entry.form.dst != Kind::None;
        let mut failed = None;
        let flow = self.access(i, space, 4, true, |w, l, at| {
            if let Err(cause) = aligned(at, 4) {
                failed.get_or_insert(cause);
                return;
            }
            let (a, b) = (w.word(&i.src[1], 0, l), w.word(&i.src[2], 0, l));
            // SAFETY: as above, aligned, and accessed atomically by all.
            let before = f(unsafe { AtomicU32::from_ptr(at.cast()) }, a, b);
            if returns {
                w.w32(&i.dst, l, before);
            }
        });
        failed.map_or(flow, |cause| self.fail(cause))
    }

    #[inline(always)]
    fn ds_atomic64(
        &mut self,
        i: &Inst,
        space: &Space,
        f: impl Fn(&AtomicU64, u64, u64) -> u64,
    ) -> Flow {
        let returns = i.entry.form.dst != Kind::None;
        let wide = |w: &Self, src: &Src, l| {
            let [low, high] = w.words::<2>(src, l);
            u64::from(low) | u64::from(high) << 32
        };
        let mut failed = None;
        let flow = self.access(i, space, 8, true, |w, l, at| {
            if let Err(cause) = aligned(at, 8) {
                failed.get_or_insert(cause);
                return;
            }
            let a = wide(w, &i.src[1], l);
            let b = if i.entry.form.src[2] == Kind::None {
                0
            } else {
                wide(w, &i.src[2], l)
            };
            // SAFETY: as above.
            let before = f(unsafe { AtomicU64::from_ptr(at.cast()) }, a, b);
            if returns {
                w.w64(&i.dst, l, before);
            }
        });
        failed.map_or(flow, |cause| self.fail(cause))
    }
}

pub(super) static DS: &[Entry] = &[
    e(13, "ds_store_b32", store(W), |w, i, s| {
        w.ds_store::<1>(i, s)
    }),
    e(14, "ds_store_2addr_b32", store2(W), |w, i, _| {
        w.ds_two::<1>(i, 4, true)
    }),
    e(15, "ds_store_2addr_stride64_b32", store2(W), |w, i, _| {
        w.ds_two::<1>(i, 256, true)
    }),
    e(30, "ds_store_b8", store(W), |w, i, s| {
        w.ds_store_part(i, s, 1, 0)
    }),
    e(31, "ds_store_b16", store(W), |w, i, s| {
        w.ds_store_part(i, s, 2, 0)
    }),
    e(53, "ds_swizzle_b32", load(W), |w, i, _| w.swizzle(i)),
    e(54, "ds_load_b32", load(W), |w, i, s| w.ds_load::<1>(i, s)),
    e(55, "ds_load_2addr_b32", load(Words(2)), |w, i, _| {
        w.ds_two::<1>(i, 4, false)
    }),
    e(
        56,
        "ds_load_2addr_stride64_b32",
        load(Words(2)),
        |w, i, _| w.ds_two::<1>(i, 256, false),
    ),
    e(57, "ds_load_i8", load(W), |w, i, s| {
        w.ds_part(i, s, 1, true, None)
    }),
    e(58, "ds_load_u8", load(W), |w, i, s| {
        w.ds_part(i, s, 1, false, None)
    }),
    e(59, "ds_load_i16", load(W), |w, i, s| {
        w.ds_part(i, s, 2, true, None)
    }),
    e(60, "ds_load_u16", load(W), |w, i, s| {
        w.ds_part(i, s, 2, false, None)
    }),
    e(77, "ds_store_b64", store(Words(2)), |w, i, s| {
        w.ds_store::<2>(i, s)
    }),
    e(78, "ds_store_2addr_b64", store2(Words(2)), |w, i, _| {
        w.ds_two::<2>(i, 8, true)
    }),
    e(
        79,
        "ds_store_2addr_stride64_b64",
        store2(Words(2)),
        |w, i, _| w.ds_two::<2>(i, 512, true),
    ),
    e(118, "ds_load_b64", load(Words(2)), |w, i, s| {
        w.ds_load::<2>(i, s)
    }),
    e(119, "ds_load_2addr_b64", load(Words(4)), |w, i, _| {
        w.ds_two::<2>(i, 8, false)
    }),
    e(
        120,
        "ds_load_2addr_stride64_b64",
        load(Words(4)),
        |w, i, _| w.ds_two::<2>(i, 512, false),
    ),
    e(160, "ds_store_b8_d16_hi", store(W), |w, i, s| {
        w.ds_store_part(i, s, 1, 16)
    }),
    e(161, "ds_store_b16_d16_hi", store(W), |w, i, s| {
        w.ds_store_part(i, s, 2, 16)
    }),
    e(162, "ds_load_u8_d16", load(W), |w, i, s| {
        w.ds_part(i, s, 1, false, Some(0))
    }),
    e(163, "ds_load_u8_d16_hi", load(W), |w, i, s| {
        w.ds_part(i, s, 1, false, Some(16))
    }),
    e(164, "ds_load_i8_d16", load(W), |w, i, s| {
        w.ds_part(i, s, 1, true, Some(0))
    }),
    e(165, "ds_load_i8_d16_hi", load(W), |w, i, s| {
        w.ds_part(i, s, 1, true, Some(16))
    }),
    e(166, "ds_load_u16_d16", load(W), |w, i, s| {
        w.ds_part(i, s, 2, false, Some(0))
    }),
    e(167, "ds_load_u16_d16_hi", load(W), |w, i, s| {
        w.ds_part(i, s, 2, false, Some(16))
    }),
    e(178, "ds_permute_b32", form(W, [W, W, N]), |w, i, _| {
        w.permute(i)
    }),
    e(179, "ds_bpermute_b32", form(W, [W, W, N]), |w, i, _| {
        w.bpermute(i)
    }),
    e(222, "ds_store_b96", store(Words(3)), |w, i, s| {
        w.ds_store::<3>(i, s)
    }),
    e(223, "ds_store_b128", store(Words(4)), |w, i, s| {
        w.ds_store::<4>(i, s)
    }),
    e(254, "ds_load_b96", load(Words(3)), |w, i, s| {
        w.ds_load::<3>(i, s)
    }),
    e(255, "ds_load_b128", load(Words(4)), |w, i, s| {
        w.ds_load::<4>(i, s)
    }),
];

const ORDER: Ordering = Ordering::AcqRel;

/// An atomic operation of 32 bits, without and with its result.
macro_rules! atomic {
    ($op:literal $rtn:literal $run:ident $kind:expr; $name:literal $with:literal $f:expr) => {
        [
            e($op, $name, form(N, [W, $kind, N]), |w, i, s| {
                w.$run(i, s, $f)
            }),
            e($rtn, $with, rtn($kind), |w, i, s| w.$run(i, s, $f)),
        ]
    };
}

static ATOMICS: &[[Entry; 2]] = &[
    atomic!(0 32 ds_atomic32 W; "ds_add_u32" "ds_add_rtn_u32" |m, a, _| m.fetch_add(a, ORDER)),
    atomic!(1 33 ds_atomic32 W; "ds_sub_u32" "ds_sub_rtn_u32" |m, a, _| m.fetch_sub(a, ORDER)),
    atomic!(2 34 ds_atomic32 W; "ds_rsub_u32" "ds_rsub_rtn_u32" |m, a, _| update32(m, |old| a.wrapping_sub(old))),
    atomic!(3 35 ds_atomic32 W; "ds_inc_u32" "ds_inc_rtn_u32" |m, a, _| update32(m, |old| increment(old, a))),
    atomic!(4 36 ds_atomic32 W; "ds_dec_u32" "ds_dec_rtn_u32" |m, a, _| update32(m, |old| decrement(old, a))),
    atomic!(5 37 ds_atomic32 W; "ds_min_i32" "ds_min_rtn_i32" |m, a, _| update32(m, |old| (old as i32).min(a as i32) as u32)),
    atomic!(6 38 ds_atomic32 W; "ds_max_i32" "ds_max_rtn_i32" |m, a, _| update32(m, |old| (old as i32).max(a as i32) as u32)),
    atomic!(7 39 ds_atomic32 W; "ds_min_u32" "ds_min_rtn_u32" |m, a, _| m.fetch_min(a, ORDER)),
    atomic!(8 40 ds_atomic32 W; "ds_max_u32" "ds_max_rtn_u32" |m, a, _| m.fetch_max(a, ORDER)),
    atomic!(9 41 ds_atomic32 W; "ds_and_b32" "ds_and_rtn_b32" |m, a, _| m.fetch_and(a, ORDER)),
    atomic!(10 42 ds_atomic32 W; "ds_or_b32" "ds_or_rtn_b32" |m, a, _| m.fetch_or(a, ORDER)),
    atomic!(11 43 ds_atomic32 W; "ds_xor_b32" "ds_xor_rtn_b32" |m, a, _| m.fetch_xor(a, ORDER)),
    atomic!(18 50 ds_atomic32 W; "ds_min_f32" "ds_min_rtn_f32" |m, a, _| update32(m, |old| on_floats(float::min32)(old, a))),
    atomic!(19 51 ds_atomic32 W; "ds_max_f32" "ds_max_rtn_f32" |m, a, _| update32(m, |old| on_floats(float::max32)(old, a))),
    atomic!(21 121 ds_atomic32 W; "ds_add_f32" "ds_add_rtn_f32" |m, a, _| update32(m, |old| on_floats(|x, y| x + y)(old, a))),
    atomic!(64 96 ds_atomic64 Words(2); "ds_add_u64" "ds_add_rtn_u64" |m, a, _| m.fetch_add(a, ORDER)),
    atomic!(65 97 ds_atomic64 Words(2); "ds_sub_u64" "ds_sub_rtn_u64" |m, a, _| m.fetch_sub(a, ORDER)),
    atomic!(69 101 ds_atomic64 Words(2); "ds_min_i64" "ds_min_rtn_i64" |m, a, _| update64(m, |old| (old as i64).min(a as i64) as u64)),
    atomic!(70 102 ds_atomic64 Words(2); "ds_max_i64" "ds_max_rtn_i64" |m, a, _| update64(m, |old| (old as i64).max(a as i64) as u64)),
    atomic!(71 103 ds_atomic64 Words(2); "ds_min_u64" "ds_min_rtn_u64" |m, a, _| m.fetch_min(a, ORDER)),
    atomic!(72 104 ds_atomic64 Words(2); "ds_max_u64" "ds_max_rtn_u64" |m, a, _| m.fetch_max(a, ORDER)),
    atomic!(73 105 ds_atomic64 Words(2); "ds_and_b64" "ds_and_rtn_b64" |m, a, _| m.fetch_and(a, ORDER)),
    atomic!(74 106 ds_atomic64 Words(2); "ds_or_b64" "ds_or_rtn_b64" |m, a, _| m.fetch_or(a, ORDER)),
    atomic!(75 107 ds_atomic64 Words(2); "ds_xor_b64" "ds_xor_rtn_b64" |m, a, _| m.fetch_xor(a, ORDER)),
];

/// Swaps if the word is the second operand; the first one is the new value.
fn exchange32(m: &AtomicU32, new: u32, expected: u32) -> u32 {
    m.compare_exchange(expected, new, ORDER, Ordering::Acquire)
        .unwrap_or_else(|old| old)
}

fn exchange64(m: &AtomicU64, new: u64, expected: u64) -> u64 {
    m.compare_exchange(expected, new, ORDER, Ordering::Acquire)
        .unwrap_or_else(|old| old)
}

static EXCHANGES: &[Entry] = &[
    e(16, "ds_cmpstore_b32", form(N, [W, W, W]), |w, i, s| {
        w.ds_atomic32(i, s, exchange32)
    }),
    e(45, "ds_storexchg_rtn_b32", rtn(W), |w, i, s| {
        w.ds_atomic32(i, s, |m, a, _| m.swap(a, ORDER))
    }),
    e(48, "ds_cmpstore_rtn_b32", form(W, [W, W, W]), |w, i, s| {
        w.ds_atomic32(i, s, exchange32)
    }),
    e(
        80,
        "ds_cmpstore_b64",
        form(N, [W, Words(2), Words(2)]),
        |w, i, s| w.ds_atomic64(i, s, exchange64),
    ),
    e(109, "ds_storexchg_rtn_b64", rtn(Words(2)), |w, i, s| {
        w.ds_atomic64(i, s, |m, a, _| m.swap(a, ORDER))
    }),
    e(
        112,
        "ds_cmpstore_rtn_b64",
        form(Words(2), [W, Words(2), Words(2)]),
        |w, i, s| w.ds_atomic64(i, s, exchange64),
    ),
];

/// All of them.
pub(super) fn tables() -> [&'static [Entry]; 3] {
    [DS, ATOMICS.as_flattened(), EXCHANGES]
}
