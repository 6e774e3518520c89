//! Scalar arithmetic and comparisons.

use crate::isa::Kind::{self, D, I, None as N, W};
use crate::isa::{Entry, Form, Inst, e, form};
use crate::wave::{Flow, Wave};

const WWW: Form = form(W, [W, W, N]);
const DDD: Form = form(D, [D, D, N]);
const DDW: Form = form(D, [D, W, N]);

const fn cmp(kind: Kind) -> Form {
    form(N, [kind, kind, N])
}

impl Wave {
    /// A result with the condition it gives.
    #[inline(always)]
    fn sop2(&mut self, i: &Inst, f: impl Fn(u32, u32) -> (u32, bool)) -> Flow {
        let (value, scc) = f(self.s32(&i.src[0]), self.s32(&i.src[1]));
        self.set_scc(scc);
        self.ws32(&i.dst, value)
    }

    /// A result that is the condition, if not zero.
    #[inline(always)]
    fn logic(&mut self, i: &Inst, f: impl Fn(u32, u32) -> u32) -> Flow {
        self.sop2(i, |a, b| {
            let value = f(a, b);
            (value, value != 0)
        })
    }

    #[inline(always)]
    fn logic64(&mut self, i: &Inst, f: impl Fn(u64, u64) -> u64) -> Flow {
        let value = f(self.s64(&i.src[0]), self.s64(&i.src[1]));
        self.set_scc(value != 0);
        self.ws64(&i.dst, value)
    }

    /// 64 bits by an amount of 32.
    #[inline(always)]
    fn shift(&mut self, i: &Inst, f: impl Fn(u64, u32) -> u64) -> Flow {
        let value = f(self.s64(&i.src[0]), self.s32(&i.src[1]));
        self.set_scc(value != 0);
        self.ws64(&i.dst, value)
    }

    /// A result that leaves the condition alone.
    #[inline(always)]
    fn quiet(&mut self, i: &Inst, f: impl Fn(u32, u32) -> u32) -> Flow {
        let value = f(self.s32(&i.src[0]), self.s32(&i.src[1]));
        self.ws32(&i.dst, value)
    }

    #[inline(always)]
    fn scmp(&mut self, i: &Inst, f: impl Fn(u32, u32) -> bool) -> Flow {
        let scc = f(self.s32(&i.src[0]), self.s32(&i.src[1]));
        self.set_scc(scc);
        Flow::Next
    }

    #[inline(always)]
    fn scmp64(&mut self, i: &Inst, f: impl Fn(u64, u64) -> bool) -> Flow {
        let scc = f(self.s64(&i.src[0]), self.s64(&i.src[1]));
        self.set_scc(scc);
        Flow::Next
    }
}

fn signed(f: fn(i32, i32) -> (i32, bool), a: u32, b: u32) -> (u32, bool) {
    let (value, overflow) = f(a as i32, b as i32);
    (value as u32, overflow)
}

fn shift_add(a: u32, b: u32, by: u32) -> (u32, bool) {
    let wide = (u64::from(a) << by) + u64::from(b);
    (wide as u32, wide >> 32 != 0)
}

/// The field that the second operand of a bit-field operation describes: offset and width.
fn field(b: u32, offset_bits: u32) -> (u32, u32) {
    (b & ((1 << offset_bits) - 1), b >> 16 & 127)
}

/// Cuts out a bit field.
pub(super) fn extract(value: u64, offset: u32, width: u32) -> u64 {
    let value = value.checked_shr(offset).unwrap_or(0);
    if width >= 64 {
        value
    } else {
        value & ((1 << width) - 1)
    }
}

/// Cuts out a bit field with its sign, of a number of `bits` bits.
pub(super) fn extract_signed(value: i64, offset: u32, width: u32, bits: u32) -> i64 {
    if width == 0 {
        return 0;
    }
    let value = value >> offset.min(63);
    let width = width.min(bits);
    value << (64 - width) >> (64 - width)
}

pub(super) static SOP2: &[Entry] = &[
    e(0, "s_add_u32", WWW, |w, i, _| {
        w.sop2(i, u32::overflowing_add)
    }),
    e(1, "s_sub_u32", WWW, |w, i, _| {
        w.sop2(i, u32::overflowing_sub)
    }),
    e(2, "s_add_i32", WWW, |w, i, _| {
        w.sop2(i, |a, b| signed(i32::overflowing_add, a, b))
    }),
    e(3, "s_sub_i32", WWW, |w, i, _| {
        w.sop2(i, |a, b| signed(i32::overflowing_sub, a, b))
    }),
    e(4, "s_addc_u32", WWW, |w, i, _| {
        let carry = u64::from(w.scc());
        w.sop2(i, |a, b| {
            let wide = u64::from(a) + u64::from(b) + carry;
            (wide as u32, wide >> 32 != 0)
        })
    }),
    e(5, "s_subb_u32", WWW, |w, i, _| {
        let borrow = u64::from(w.scc());
        w.sop2(i, |a, b| {
            let wide = u64::from(a).wrapping_sub(u64::from(b) + borrow);
            (wide as u32, wide >> 32 != 0)
        })
    }),
    e(6, "s_absdiff_i32", WWW, |w, i, _| {
        w.logic(i, |a, b| {
            (a as i32).wrapping_sub(b as i32).wrapping_abs() as u32
        })
    }),
    e(8, "s_lshl_b32", WWW, |w, i, _| {
        w.logic(i, u32::wrapping_shl)
    }),
    e(9, "s_lshl_b64", DDW, |w, i, _| {
        w.shift(i, u64::wrapping_shl)
    }),
    e(10, "s_lshr_b32", WWW, |w, i, _| {
        w.logic(i, u32::wrapping_shr)
    }),
    e(11, "s_lshr_b64", DDW, |w, i, _| {
        w.shift(i, u64::wrapping_shr)
    }),
    e(12, "s_ashr_i32", WWW, |w, i, _| {
        w.logic(i, |a, b| (a as i32).wrapping_shr(b) as u32)
    }),
    e(13, "s_ashr_i64", form(D, [I, W, N]), |w, i, _| {
        w.shift(i, |a, b| (a as i64).wrapping_shr(b) as u64)
    }),
    e(14, "s_lshl1_add_u32", WWW, |w, i, _| {
        w.sop2(i, |a, b| shift_add(a, b, 1))
    }),
    e(15, "s_lshl2_add_u32", WWW, |w, i, _| {
        w.sop2(i, |a, b| shift_add(a, b, 2))
    }),
    e(16, "s_lshl3_add_u32", WWW, |w, i, _| {
        w.sop2(i, |a, b| shift_add(a, b, 3))
    }),
    e(17, "s_lshl4_add_u32", WWW, |w, i, _| {
        w.sop2(i, |a, b| shift_add(a, b, 4))
    }),
    e(18, "s_min_i32", WWW, |w, i, _| {
        w.sop2(i, |a, b| {
            ((a as i32).min(b as i32) as u32, (a as i32) < b as i32)
        })
    }),
    e(19, "s_min_u32", WWW, |w, i, _| {
        w.sop2(i, |a, b| (a.min(b), a < b))
    }),
    e(20, "s_max_i32", WWW, |w, i, _| {
        w.sop2(i, |a, b| {
            ((a as i32).max(b as i32) as u32, a as i32 >= b as i32)
        })
    }),
    e(21, "s_max_u32", WWW, |w, i, _| {
        w.sop2(i, |a, b| (a.max(b), a >= b))
    }),
    e(22, "s_and_b32", WWW, |w, i, _| w.logic(i, |a, b| a & b)),
    e(23, "s_and_b64", DDD, |w, i, _| w.logic64(i, |a, b| a & b)),
    e(24, "s_or_b32", WWW, |w, i, _| w.logic(i, |a, b| a | b)),
    e(25, "s_or_b64", DDD, |w, i, _| w.logic64(i, |a, b| a | b)),
    e(26, "s_xor_b32", WWW, |w, i, _| w.logic(i, |a, b| a ^ b)),
    e(27, "s_xor_b64", DDD, |w, i, _| w.logic64(i, |a, b| a ^ b)),
    e(28, "s_nand_b32", WWW, |w, i, _| w.logic(i, |a, b| !(a & b))),
    e(29, "s_nand_b64", DDD, |w, i, _| {
        w.logic64(i, |a, b| !(a & b))
    }),
    e(30, "s_nor_b32", WWW, |w, i, _| w.logic(i, |a, b| !(a | b))),
    e(31, "s_nor_b64", DDD, |w, i, _| {
        w.logic64(i, |a, b| !(a | b))
    }),
    e(32, "s_xnor_b32", WWW, |w, i, _| w.logic(i, |a, b| !(a ^ b))),
    e(33, "s_xnor_b64", DDD, |w, i, _| {
        w.logic64(i, |a, b| !(a ^ b))
    }),
    e(34, "s_and_not1_b32", WWW, |w, i, _| {
        w.logic(i, |a, b| a & !b)
    }),
    e(35, "s_and_not1_b64", DDD, |w, i, _| {
        w.logic64(i, |a, b| a & !b)
    }),
    e(36, "s_or_not1_b32", WWW, |w, i, _| {
        w.logic(i, |a, b| a | !b)
    }),
    e(37, "s_or_not1_b64", DDD, |w, i, _| {
        w.logic64(i, |a, b| a | !b)
    }),
    e(38, "s_bfe_u32", WWW, |w, i, _| {
        w.logic(i, |a, b| {
            let (offset, width) = field(b, 5);
            extract(a.into(), offset, width) as u32
        })
    }),
    e(39, "s_bfe_i32", WWW, |w, i, _| {
        w.logic(i, |a, b| {
            let (offset, width) = field(b, 5);
            extract_signed((a as i32).into(), offset, width, 32) as u32
        })
    }),
    e(40, "s_bfe_u64", DDW, |w, i, _| {
        w.shift(i, |a, b| {
            let (offset, width) = field(b, 6);
            extract(a, offset, width)
        })
    }),
    e(41, "s_bfe_i64", form(D, [I, W, N]), |w, i, _| {
        w.shift(i, |a, b| {
            let (offset, width) = field(b, 6);
            extract_signed(a as i64, offset, width, 64) as u64
        })
    }),
    e(42, "s_bfm_b32", WWW, |w, i, _| {
        w.quiet(i, |a, b| ((1u32 << (a & 31)) - 1).wrapping_shl(b))
    }),
    e(43, "s_bfm_b64", form(D, [W, W, N]), |w, i, _| {
        let ones = (1u64 << (w.s32(&i.src[0]) & 63)) - 1;
        let value = ones.wrapping_shl(w.s32(&i.src[1]));
        w.ws64(&i.dst, value)
    }),
    e(44, "s_mul_i32", WWW, |w, i, _| {
        w.quiet(i, u32::wrapping_mul)
    }),
    e(45, "s_mul_hi_u32", WWW, |w, i, _| {
        w.quiet(i, |a, b| ((u64::from(a) * u64::from(b)) >> 32) as u32)
    }),
    e(46, "s_mul_hi_i32", WWW, |w, i, _| {
        w.quiet(i, |a, b| {
            ((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32
        })
    }),
    e(48, "s_cselect_b32", WWW, |w, i, _| {
        let chosen = usize::from(!w.scc());
        let value = w.s32(&i.src[chosen]);
        w.ws32(&i.dst, value)
    }),
    e(49, "s_cselect_b64", DDD, |w, i, _| {
        let chosen = usize::from(!w.scc());
        let value = w.s64(&i.src[chosen]);
        w.ws64(&i.dst, value)
    }),
    e(50, "s_pack_ll_b32_b16", WWW, |w, i, _| {
        w.quiet(i, |a, b| a & 0xffff | b << 16)
    }),
    e(51, "s_pack_lh_b32_b16", WWW, |w, i, _| {
        w.quiet(i, |a, b| a & 0xffff | b & !0xffff)
    }),
    e(52, "s_pack_hh_b32_b16", WWW, |w, i, _| {
        w.quiet(i, |a, b| a >> 16 | b & !0xffff)
    }),
    e(53, "s_pack_hl_b32_b16", WWW, |w, i, _| {
        w.quiet(i, |a, b| a >> 16 | b << 16)
    }),
];

pub(super) static SOPC: &[Entry] = &[
    e(0, "s_cmp_eq_i32", cmp(W), |w, i, _| {
        w.scmp(i, |a, b| a == b)
    }),
    e(1, "s_cmp_lg_i32", cmp(W), |w, i, _| {
        w.scmp(i, |a, b| a != b)
    }),
    e(2, "s_cmp_gt_i32", cmp(W), |w, i, _| {
        w.scmp(i, |a, b| a as i32 > b as i32)
    }),
    e(3, "s_cmp_ge_i32", cmp(W), |w, i, _| {
        w.scmp(i, |a, b| a as i32 >= b as i32)
    }),
    e(4, "s_cmp_lt_i32", cmp(W), |w, i, _| {
        w.scmp(i, |a, b| (a as i32) < b as i32)
    }),
    e(5, "s_cmp_le_i32", cmp(W), |w, i, _| {
        w.scmp(i, |a, b| a as i32 <= b as i32)
    }),
    e(6, "s_cmp_eq_u32", cmp(W), |w, i, _| {
        w.scmp(i, |a, b| a == b)
    }),
    e(7, "s_cmp_lg_u32", cmp(W), |w, i, _| {
        w.scmp(i, |a, b| a != b)
    }),
    e(8, "s_cmp_gt_u32", cmp(W), |w, i, _| w.scmp(i, |a, b| a > b)),
    e(9, "s_cmp_ge_u32", cmp(W), |w, i, _| {
        w.scmp(i, |a, b| a >= b)
    }),
    e(10, "s_cmp_lt_u32", cmp(W), |w, i, _| {
        w.scmp(i, |a, b| a < b)
    }),
    e(11, "s_cmp_le_u32", cmp(W), |w, i, _| {
        w.scmp(i, |a, b| a <= b)
    }),
    e(12, "s_bitcmp0_b32", cmp(W), |w, i, _| {
        w.scmp(i, |a, b| a >> (b & 31) & 1 == 0)
    }),
    e(13, "s_bitcmp1_b32", cmp(W), |w, i, _| {
        w.scmp(i, |a, b| a >> (b & 31) & 1 == 1)
    }),
    e(14, "s_bitcmp0_b64", form(N, [D, W, N]), |w, i, _| {
        let bit = w.s32(&i.src[1]) & 63;
        w.scmp64(i, |a, _| a >> bit & 1 == 0)
    }),
    e(15, "s_bitcmp1_b64", form(N, [D, W, N]), |w, i, _| {
        let bit = w.s32(&i.src[1]) & 63;
        w.scmp64(i, |a, _| a >> bit & 1 == 1)
    }),
    e(16, "s_cmp_eq_u64", cmp(D), |w, i, _| {
        w.scmp64(i, |a, b| a == b)
    }),
    e(17, "s_cmp_lg_u64", cmp(D), |w, i, _| {
        w.scmp64(i, |a, b| a != b)
    }),
];
