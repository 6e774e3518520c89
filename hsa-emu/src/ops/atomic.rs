//! Atomic operations on global memory (and, through flat addresses, on any).

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::load::aligned;
use crate::float;
use crate::isa::Kind::{self, D, N as Words, None as N, W};
use crate::isa::{Entry, Form, Inst, e, form};
use crate::memory::Space;
use crate::wave::{Flow, Wave};

const fn atomic(value: Kind, data: Kind) -> Form {
    form(value, [D, data, N])
}

const A32: Form = atomic(W, W);
const A64: Form = atomic(Words(2), Words(2));

impl Wave {
    /// An atomic operation of 32 bits in each lane, one after the other.
    #[inline(always)]
    fn atomic32(&mut self, i: &Inst, space: &Space, f: impl Fn(&AtomicU32, u32) -> u32) -> Flow {
        let mut failed = None;
        let flow = self.access(i, space, 4, true, |w, l, at| {
            if let Err(cause) = aligned(at, 4) {
                failed.get_or_insert(cause);
                return;
            }
            let data = w.word(&i.src[1], 0, l);
            // SAFETY: valid for 4 bytes while `space` is held, aligned as just checked, and accessed
            // atomically by all.
            let before = f(unsafe { AtomicU32::from_ptr(at.cast()) }, data);
            if i.glc {
                w.w32(&i.dst, l, before);
            }
        });
        failed.map_or(flow, |cause| self.fail(cause))
    }

    /// The same of 64 bits.
    #[inline(always)]
    fn atomic64(&mut self, i: &Inst, space: &Space, f: impl Fn(&AtomicU64, u64) -> u64) -> Flow {
        let mut failed = None;
        let flow = self.access(i, space, 8, true, |w, l, at| {
            if let Err(cause) = aligned(at, 8) {
                failed.get_or_insert(cause);
                return;
            }
            let [low, high] = w.words::<2>(&i.src[1], l);
            let data = u64::from(low) | u64::from(high) << 32;
            // SAFETY: as above, for 8 bytes.
            let before = f(unsafe { AtomicU64::from_ptr(at.cast()) }, data);
            if i.glc {
                w.w64(&i.dst, l, before);
            }
        });
        failed.map_or(flow, |cause| self.fail(cause))
    }

    /// Compare and swap: the new value comes first. A wave in which no lane succeeds lets others run.
    #[inline(always)]
    fn cmpswap32(&mut self, i: &Inst, space: &Space) -> Flow {
        let (mut failed, mut swapped) = (None, false);
        let flow = self.access(i, space, 4, true, |w, l, at| {
            if let Err(cause) = aligned(at, 4) {
                failed.get_or_insert(cause);
                return;
            }
            let [new, expected] = w.words::<2>(&i.src[1], l);
            // SAFETY: as above.
            let word = unsafe { AtomicU32::from_ptr(at.cast()) };
            let result = word.compare_exchange(expected, new, Ordering::AcqRel, Ordering::Acquire);
            swapped |= result.is_ok();
            if i.glc {
                w.w32(&i.dst, l, result.unwrap_or_else(|before| before));
            }
        });
        self.after_swap(flow, failed, swapped)
    }

    #[inline(always)]
    fn cmpswap64(&mut self, i: &Inst, space: &Space) -> Flow {
        let (mut failed, mut swapped) = (None, false);
        let flow = self.access(i, space, 8, true, |w, l, at| {
            if let Err(cause) = aligned(at, 8) {
                failed.get_or_insert(cause);
                return;
            }
            let [new, new_high, expected, expected_high] = w.words::<4>(&i.src[1], l);
            let new = u64::from(new) | u64::from(new_high) << 32;
            let expected = u64::from(expected) | u64::from(expected_high) << 32;
            // SAFETY: as above.
            let word = unsafe { AtomicU64::from_ptr(at.cast()) };
            let result = word.compare_exchange(expected, new, Ordering::AcqRel, Ordering::Acquire);
            swapped |= result.is_ok();
            if i.glc {
                w.w64(&i.dst, l, result.unwrap_or_else(|before| before));
            }
        });
        self.after_swap(flow, failed, swapped)
    }

    fn after_swap(&mut self, flow: Flow, failed: Option<crate::fault::Cause>, ok: bool) -> Flow {
        match (flow, failed) {
            (Flow::Fault, _) => flow,
            (_, Some(cause)) => self.fail(cause),
            _ if ok || self.exec() == 0 => Flow::Next,
            _ => Flow::Yield,
        }
    }
}

/// The counters that wrap at a limit.
pub(super) fn increment(old: u32, limit: u32) -> u32 {
    if old >= limit { 0 } else { old + 1 }
}

pub(super) fn decrement(old: u32, limit: u32) -> u32 {
    if old == 0 || old > limit {
        limit
    } else {
        old - 1
    }
}

/// Updates a word by a function until nobody comes between.
pub(super) fn update32(word: &AtomicU32, f: impl Fn(u32) -> u32) -> u32 {
    word.fetch_update(Ordering::AcqRel, Ordering::Acquire, |old| Some(f(old)))
        .unwrap_or_else(|old| old)
}

/// [`update32`] of 64 bits.
pub(super) fn update64(word: &AtomicU64, f: impl Fn(u64) -> u64) -> u64 {
    word.fetch_update(Ordering::AcqRel, Ordering::Acquire, |old| Some(f(old)))
        .unwrap_or_else(|old| old)
}

/// An operation of floats on their bits.
pub(super) fn on_floats(f: fn(f32, f32) -> f32) -> impl Fn(u32, u32) -> u32 {
    move |a, b| f(f32::from_bits(a), f32::from_bits(b)).to_bits()
}

const ORDER: Ordering = Ordering::AcqRel;

pub(super) static ATOMIC: &[Entry] = &[
    e(51, "atomic_swap_b32", A32, |w, i, s| {
        w.atomic32(i, s, |m, a| m.swap(a, ORDER))
    }),
    e(52, "atomic_cmpswap_b32", atomic(W, Words(2)), |w, i, s| {
        w.cmpswap32(i, s)
    }),
    e(53, "atomic_add_u32", A32, |w, i, s| {
        w.atomic32(i, s, |m, a| m.fetch_add(a, ORDER))
    }),
    e(54, "atomic_sub_u32", A32, |w, i, s| {
        w.atomic32(i, s, |m, a| m.fetch_sub(a, ORDER))
    }),
    e(55, "atomic_csub_u32", A32, |w, i, s| {
        w.atomic32(i, s, |m, a| update32(m, |old| old.saturating_sub(a)))
    }),
    e(56, "atomic_min_i32", A32, |w, i, s| {
        w.atomic32(i, s, |m, a| {
            update32(m, |old| (old as i32).min(a as i32) as u32)
        })
    }),
    e(57, "atomic_min_u32", A32, |w, i, s| {
        w.atomic32(i, s, |m, a| m.fetch_min(a, ORDER))
    }),
    e(58, "atomic_max_i32", A32, |w, i, s| {
        w.atomic32(i, s, |m, a| {
            update32(m, |old| (old as i32).max(a as i32) as u32)
        })
    }),
    e(59, "atomic_max_u32", A32, |w, i, s| {
        w.atomic32(i, s, |m, a| m.fetch_max(a, ORDER))
    }),
    e(60, "atomic_and_b32", A32, |w, i, s| {
        w.atomic32(i, s, |m, a| m.fetch_and(a, ORDER))
    }),
    e(61, "atomic_or_b32", A32, |w, i, s| {
        w.atomic32(i, s, |m, a| m.fetch_or(a, ORDER))
    }),
    e(62, "atomic_xor_b32", A32, |w, i, s| {
        w.atomic32(i, s, |m, a| m.fetch_xor(a, ORDER))
    }),
    e(63, "atomic_inc_u32", A32, |w, i, s| {
        w.atomic32(i, s, |m, a| update32(m, |old| increment(old, a)))
    }),
    e(64, "atomic_dec_u32", A32, |w, i, s| {
        w.atomic32(i, s, |m, a| update32(m, |old| decrement(old, a)))
    }),
    e(65, "atomic_swap_b64", A64, |w, i, s| {
        w.atomic64(i, s, |m, a| m.swap(a, ORDER))
    }),
    e(
        66,
        "atomic_cmpswap_b64",
        atomic(Words(2), Words(4)),
        |w, i, s| w.cmpswap64(i, s),
    ),
    e(67, "atomic_add_u64", A64, |w, i, s| {
        w.atomic64(i, s, |m, a| m.fetch_add(a, ORDER))
    }),
    e(68, "atomic_sub_u64", A64, |w, i, s| {
        w.atomic64(i, s, |m, a| m.fetch_sub(a, ORDER))
    }),
    e(69, "atomic_min_i64", A64, |w, i, s| {
        w.atomic64(i, s, |m, a| {
            update64(m, |old| (old as i64).min(a as i64) as u64)
        })
    }),
    e(70, "atomic_min_u64", A64, |w, i, s| {
        w.atomic64(i, s, |m, a| m.fetch_min(a, ORDER))
    }),
    e(71, "atomic_max_i64", A64, |w, i, s| {
        w.atomic64(i, s, |m, a| {
            update64(m, |old| (old as i64).max(a as i64) as u64)
        })
    }),
    e(72, "atomic_max_u64", A64, |w, i, s| {
        w.atomic64(i, s, |m, a| m.fetch_max(a, ORDER))
    }),
    e(73, "atomic_and_b64", A64, |w, i, s| {
        w.atomic64(i, s, |m, a| m.fetch_and(a, ORDER))
    }),
    e(74, "atomic_or_b64", A64, |w, i, s| {
        w.atomic64(i, s, |m, a| m.fetch_or(a, ORDER))
    }),
    e(75, "atomic_xor_b64", A64, |w, i, s| {
        w.atomic64(i, s, |m, a| m.fetch_xor(a, ORDER))
    }),
    e(76, "atomic_inc_u64", A64, |w, i, s| {
        w.atomic64(i, s, |m, a| {
            update64(m, |old| if old >= a { 0 } else { old + 1 })
        })
    }),
    e(77, "atomic_dec_u64", A64, |w, i, s| {
        w.atomic64(i, s, |m, a| {
            update64(m, |old| if old == 0 || old > a { a } else { old - 1 })
        })
    }),
    e(81, "atomic_min_f32", A32, |w, i, s| {
        w.atomic32(i, s, |m, a| {
            update32(m, |old| on_floats(float::min32)(old, a))
        })
    }),
    e(82, "atomic_max_f32", A32, |w, i, s| {
        w.atomic32(i, s, |m, a| {
            update32(m, |old| on_floats(float::max32)(old, a))
        })
    }),
    e(86, "atomic_add_f32", A32, |w, i, s| {
        w.atomic32(i, s, |m, a| {
            update32(m, |old| on_floats(|x, y| x + y)(old, a))
        })
    }),
];
