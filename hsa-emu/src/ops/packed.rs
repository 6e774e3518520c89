//! Operations on pairs of 16-bit values.

use crate::float;
use crate::isa::Kind::{None as N, P};
use crate::isa::{Entry, Form, Inst, e, form};
use crate::wave::{Flow, Wave};

const PPP: Form = form(P, [P, P, N]);
const PPPP: Form = form(P, [P, P, P]);

impl Wave {
    /// One half of packed source `n`, for the lower or upper result.
    #[inline(always)]
    fn half(&self, i: &Inst, n: usize, lane: usize, upper: bool) -> u16 {
        let (select, negate) = if upper {
            (i.op_sel_hi, i.neg_hi)
        } else {
            (i.op_sel, i.neg_lo)
        };
        let word = self.r32(&i.src[n], lane);
        let value = word >> (u32::from(select >> n & 1) * 16);
        value as u16 ^ u16::from(negate >> n & 1) << 15
    }

    #[inline(always)]
    fn pk(&mut self, i: &Inst, f: impl Fn(u16, u16, u16) -> u16) -> Flow {
        let third = i.entry.form.src[2] == P;
        self.each(|w, l| {
            let result = |upper| {
                let c = if third { w.half(i, 2, l, upper) } else { 0 };
                u32::from(f(w.half(i, 0, l, upper), w.half(i, 1, l, upper), c))
            };
            let value = result(false) | result(true) << 16;
            w.w32(&i.dst, l, value);
        })
    }

    #[inline(always)]
    fn pkf(&mut self, i: &Inst, f: impl Fn(f64, f64, f64) -> f64) -> Flow {
        self.pk(i, |a, b, c| {
            let wide = |half| f64::from(float::from_half(half));
            float::half_from_wide(super::lanes::modified(i, f(wide(a), wide(b), wide(c))))
        })
    }
}

pub(super) static VOP3P: &[Entry] = &[
    e(0, "v_pk_mad_i16", PPPP, |w, i, _| {
        w.pk(i, |a, b, c| a.wrapping_mul(b).wrapping_add(c))
    }),
    e(1, "v_pk_mul_lo_u16", PPP, |w, i, _| {
        w.pk(i, |a, b, _| a.wrapping_mul(b))
    }),
    e(2, "v_pk_add_i16", PPP, |w, i, _| {
        w.pk(i, |a, b, _| a.wrapping_add(b))
    }),
    e(3, "v_pk_sub_i16", PPP, |w, i, _| {
        w.pk(i, |a, b, _| a.wrapping_sub(b))
    }),
    e(4, "v_pk_lshlrev_b16", PPP, |w, i, _| {
        w.pk(i, |a, b, _| b.wrapping_shl(a.into()))
    }),
    e(5, "v_pk_lshrrev_b16", PPP, |w, i, _| {
        w.pk(i, |a, b, _| b.wrapping_shr(a.into()))
    }),
    e(6, "v_pk_ashrrev_i16", PPP, |w, i, _| {
        w.pk(i, |a, b, _| (b as i16).wrapping_shr(a.into()) as u16)
    }),
    e(7, "v_pk_max_i16", PPP, |w, i, _| {
        w.pk(i, |a, b, _| (a as i16).max(b as i16) as u16)
    }),
    e(8, "v_pk_min_i16", PPP, |w, i, _| {
        w.pk(i, |a, b, _| (a as i16).min(b as i16) as u16)
    }),
    e(9, "v_pk_mad_u16", PPPP, |w, i, _| {
        w.pk(i, |a, b, c| a.wrapping_mul(b).wrapping_add(c))
    }),
    e(10, "v_pk_add_u16", PPP, |w, i, _| {
        w.pk(i, |a, b, _| a.wrapping_add(b))
    }),
    e(11, "v_pk_sub_u16", PPP, |w, i, _| {
        w.pk(i, |a, b, _| a.wrapping_sub(b))
    }),
    e(12, "v_pk_max_u16", PPP, |w, i, _| {
        w.pk(i, |a, b, _| a.max(b))
    }),
    e(13, "v_pk_min_u16", PPP, |w, i, _| {
        w.pk(i, |a, b, _| a.min(b))
    }),
    e(14, "v_pk_fma_f16", PPPP, |w, i, _| w.pkf(i, f64::mul_add)),
    e(15, "v_pk_add_f16", PPP, |w, i, _| w.pkf(i, |a, b, _| a + b)),
    e(16, "v_pk_mul_f16", PPP, |w, i, _| w.pkf(i, |a, b, _| a * b)),
    e(17, "v_pk_min_f16", PPP, |w, i, _| {
        w.pkf(i, |a, b, _| float::min64(a, b))
    }),
    e(18, "v_pk_max_f16", PPP, |w, i, _| {
        w.pkf(i, |a, b, _| float::max64(a, b))
    }),
];
