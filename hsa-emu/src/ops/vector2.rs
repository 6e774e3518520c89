//! Vector operations with two sources, and those of which two run at once.

use crate::float;
use crate::isa::Kind::{F, Lit, M, None as N, P, Tied, W};
use crate::isa::{Entry, Form, Inst, e, form};
use crate::wave::{Flow, Wave};

const WWW: Form = form(W, [W, W, N]);
const FFF: Form = form(F, [F, F, N]);
/// With a bit for each lane going in and out.
const CARRY: Form = Form {
    carry: true,
    ..form(W, [W, W, M])
};
/// The destination is added to.
const ACC: Form = form(W, [W, W, Tied]);
const MK: Form = form(W, [W, Lit, W]);
const AK: Form = form(W, [W, W, Lit]);

/// Sum and carry.
pub(super) fn add(a: u32, b: u32, carry: bool) -> (u32, bool) {
    let (sum, first) = a.overflowing_add(b);
    let (sum, second) = sum.overflowing_add(carry.into());
    (sum, first | second)
}

/// Difference and borrow.
pub(super) fn sub(a: u32, b: u32, borrow: bool) -> (u32, bool) {
    let (difference, first) = a.overflowing_sub(b);
    let (difference, second) = difference.overflowing_sub(borrow.into());
    (difference, first | second)
}

/// A number of 24 bits.
pub(super) fn u24(a: u32) -> u64 {
    (a & 0xff_ffff).into()
}

/// A signed number of 24 bits.
pub(super) fn i24(a: u32) -> i64 {
    i64::from((a << 8) as i32 >> 8)
}

impl Wave {
    /// One of two sources by each lane's bit in the third.
    #[inline(always)]
    pub(super) fn choose(&mut self, i: &Inst) -> Flow {
        let mask = self.mask(i.src[2].base);
        self.each(|w, l| {
            let value = w.r32(&i.src[usize::from(mask >> l & 1 == 1)], l);
            w.w32(&i.dst, l, value);
        })
    }

    /// A sum of unsigned numbers, clamped if asked for.
    #[inline(always)]
    fn clamped(
        &mut self,
        i: &Inst,
        wrap: impl Fn(u32, u32) -> u32,
        clamp: impl Fn(u32, u32) -> u32,
    ) -> Flow {
        if i.clamp {
            self.bin32(i, clamp)
        } else {
            self.bin32(i, wrap)
        }
    }
}

fn mul_dx9(a: f32, b: f32) -> f32 {
    if a == 0.0 || b == 0.0 { 0.0 } else { a * b }
}

pub(super) static VOP2: &[Entry] = &[
    e(1, "v_cndmask_b32", form(W, [W, W, M]), |w, i, _| {
        w.choose(i)
    }),
    e(3, "v_add_f32", WWW, |w, i, _| w.binf32(i, |a, b| a + b)),
    e(4, "v_sub_f32", WWW, |w, i, _| w.binf32(i, |a, b| a - b)),
    e(5, "v_subrev_f32", WWW, |w, i, _| w.binf32(i, |a, b| b - a)),
    e(7, "v_mul_dx9_zero_f32", WWW, |w, i, _| w.binf32(i, mul_dx9)),
    e(8, "v_mul_f32", WWW, |w, i, _| w.binf32(i, |a, b| a * b)),
    e(9, "v_mul_i32_i24", WWW, |w, i, _| {
        w.bin32(i, |a, b| (i24(a) * i24(b)) as u32)
    }),
    e(10, "v_mul_hi_i32_i24", WWW, |w, i, _| {
        w.bin32(i, |a, b| ((i24(a) * i24(b)) >> 32) as u32)
    }),
    e(11, "v_mul_u32_u24", WWW, |w, i, _| {
        w.bin32(i, |a, b| (u24(a) * u24(b)) as u32)
    }),
    e(12, "v_mul_hi_u32_u24", WWW, |w, i, _| {
        w.bin32(i, |a, b| ((u24(a) * u24(b)) >> 32) as u32)
    }),
    e(15, "v_min_f32", WWW, |w, i, _| w.binf32(i, float::min32)),
    e(16, "v_max_f32", WWW, |w, i, _| w.binf32(i, float::max32)),
    e(17, "v_min_i32", WWW, |w, i, _| {
        w.bin32(i, |a, b| (a as i32).min(b as i32) as u32)
    }),
    e(18, "v_max_i32", WWW, |w, i, _| {
        w.bin32(i, |a, b| (a as i32).max(b as i32) as u32)
    }),
    e(19, "v_min_u32", WWW, |w, i, _| w.bin32(i, u32::min)),
    e(20, "v_max_u32", WWW, |w, i, _| w.bin32(i, u32::max)),
    e(24, "v_lshlrev_b32", WWW, |w, i, _| {
        w.bin32(i, |a, b| b.wrapping_shl(a))
    }),
    e(25, "v_lshrrev_b32", WWW, |w, i, _| {
        w.bin32(i, |a, b| b.wrapping_shr(a))
    }),
    e(26, "v_ashrrev_i32", WWW, |w, i, _| {
        w.bin32(i, |a, b| (b as i32).wrapping_shr(a) as u32)
    }),
    e(27, "v_and_b32", WWW, |w, i, _| w.bin32(i, |a, b| a & b)),
    e(28, "v_or_b32", WWW, |w, i, _| w.bin32(i, |a, b| a | b)),
    e(29, "v_xor_b32", WWW, |w, i, _| w.bin32(i, |a, b| a ^ b)),
    e(30, "v_xnor_b32", WWW, |w, i, _| w.bin32(i, |a, b| !(a ^ b))),
    e(32, "v_add_co_ci_u32", CARRY, |w, i, _| {
        let mask = w.mask(i.src[2].base);
        w.carry(i, mask, add)
    }),
    e(33, "v_sub_co_ci_u32", CARRY, |w, i, _| {
        let mask = w.mask(i.src[2].base);
        w.carry(i, mask, sub)
    }),
    e(34, "v_subrev_co_ci_u32", CARRY, |w, i, _| {
        let mask = w.mask(i.src[2].base);
        w.carry(i, mask, |a, b, c| sub(b, a, c))
    }),
    e(37, "v_add_nc_u32", WWW, |w, i, _| {
        w.clamped(i, u32::wrapping_add, u32::saturating_add)
    }),
    e(38, "v_sub_nc_u32", WWW, |w, i, _| {
        w.clamped(i, u32::wrapping_sub, u32::saturating_sub)
    }),
    e(39, "v_subrev_nc_u32", WWW, |w, i, _| {
        w.clamped(i, |a, b| b.wrapping_sub(a), |a, b| b.saturating_sub(a))
    }),
    e(43, "v_fmac_f32", ACC, |w, i, _| w.trif32(i, f32::mul_add)),
    e(44, "v_fmamk_f32", MK, |w, i, _| w.trif32(i, f32::mul_add)),
    e(45, "v_fmaak_f32", AK, |w, i, _| w.trif32(i, f32::mul_add)),
    e(47, "v_cvt_pk_rtz_f16_f32", form(P, [W, W, N]), |w, i, _| {
        w.each(|w, l| {
            let (a, b) = (w.f32(&i.src[0], l), w.f32(&i.src[1], l));
            let value = u32::from(toward_zero(a)) | u32::from(toward_zero(b)) << 16;
            w.w32(&i.dst, l, value);
        })
    }),
    e(50, "v_add_f16", FFF, |w, i, _| w.binf16(i, |a, b| a + b)),
    e(51, "v_sub_f16", FFF, |w, i, _| w.binf16(i, |a, b| a - b)),
    e(52, "v_subrev_f16", FFF, |w, i, _| w.binf16(i, |a, b| b - a)),
    e(53, "v_mul_f16", FFF, |w, i, _| w.binf16(i, |a, b| a * b)),
    e(54, "v_fmac_f16", form(F, [F, F, Tied]), |w, i, _| {
        w.trif16(i, f64::mul_add)
    }),
    e(57, "v_max_f16", FFF, |w, i, _| w.binf16(i, float::max64)),
    e(58, "v_min_f16", FFF, |w, i, _| w.binf16(i, float::min64)),
];

/// Rounds to an `f16` toward zero.
fn toward_zero(value: f32) -> u16 {
    let half = float::to_half(value);
    let too_far = float::from_half(half).abs() > value.abs();
    if too_far && value.is_finite() {
        half - 1
    } else {
        half
    }
}

pub(super) static VOPD: &[Entry] = &[
    e(0, "v_dual_fmac_f32", ACC, |w, i, _| {
        w.trif32(i, f32::mul_add)
    }),
    e(1, "v_dual_fmaak_f32", AK, |w, i, _| {
        w.trif32(i, f32::mul_add)
    }),
    e(2, "v_dual_fmamk_f32", MK, |w, i, _| {
        w.trif32(i, f32::mul_add)
    }),
    e(3, "v_dual_mul_f32", WWW, |w, i, _| {
        w.binf32(i, |a, b| a * b)
    }),
    e(4, "v_dual_add_f32", WWW, |w, i, _| {
        w.binf32(i, |a, b| a + b)
    }),
    e(5, "v_dual_sub_f32", WWW, |w, i, _| {
        w.binf32(i, |a, b| a - b)
    }),
    e(6, "v_dual_subrev_f32", WWW, |w, i, _| {
        w.binf32(i, |a, b| b - a)
    }),
    e(7, "v_dual_mul_dx9_zero_f32", WWW, |w, i, _| {
        w.binf32(i, mul_dx9)
    }),
    e(8, "v_dual_mov_b32", form(W, [W, N, N]), |w, i, _| {
        w.un32(i, |a| a)
    }),
    e(9, "v_dual_cndmask_b32", form(W, [W, W, M]), |w, i, _| {
        w.choose(i)
    }),
    e(10, "v_dual_max_f32", WWW, |w, i, _| {
        w.binf32(i, float::max32)
    }),
    e(11, "v_dual_min_f32", WWW, |w, i, _| {
        w.binf32(i, float::min32)
    }),
    e(16, "v_dual_add_nc_u32", WWW, |w, i, _| {
        w.bin32(i, u32::wrapping_add)
    }),
    e(17, "v_dual_lshlrev_b32", WWW, |w, i, _| {
        w.bin32(i, |a, b| b.wrapping_shl(a))
    }),
    e(18, "v_dual_and_b32", WWW, |w, i, _| {
        w.bin32(i, |a, b| a & b)
    }),
];
