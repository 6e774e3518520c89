//! Scalar operations with one source.

use crate::isa::Kind::{D, None as N, W};
use crate::isa::operand::EXEC;
use crate::isa::{Entry, Form, Inst, e, form};
use crate::wave::{Flow, Wave};

const WW: Form = form(W, [W, N, N]);
const DD: Form = form(D, [D, N, N]);
const WD: Form = form(W, [D, N, N]);
const DW: Form = form(D, [W, N, N]);

impl Wave {
    /// A result that leaves the condition alone.
    #[inline(always)]
    fn sop1(&mut self, i: &Inst, f: impl Fn(u32) -> u32) -> Flow {
        let value = f(self.s32(&i.src[0]));
        self.ws32(&i.dst, value)
    }

    /// A result that is the condition, if not zero.
    #[inline(always)]
    fn sop1_scc(&mut self, i: &Inst, f: impl Fn(u32) -> u32) -> Flow {
        let value = f(self.s32(&i.src[0]));
        self.set_scc(value != 0);
        self.ws32(&i.dst, value)
    }

    /// The same of 64 bits.
    #[inline(always)]
    fn sop1_scc64(&mut self, i: &Inst, f: impl Fn(u64) -> u64) -> Flow {
        let value = f(self.s64(&i.src[0]));
        self.set_scc(value != 0);
        self.ws64(&i.dst, value)
    }

    /// 64 bits to 32.
    #[inline(always)]
    fn narrow(&mut self, i: &Inst, f: impl Fn(u64) -> u32) -> Flow {
        let value = f(self.s64(&i.src[0]));
        self.ws32(&i.dst, value)
    }

    /// Sets EXEC and the condition; the result is EXEC before or after.
    #[inline(always)]
    fn exec32(&mut self, i: &Inst, after: bool, f: impl Fn(u32, u32) -> u32) -> Flow {
        let old = self.regs[usize::from(EXEC)];
        let new = f(self.s32(&i.src[0]), old);
        self.regs[usize::from(EXEC)] = new;
        self.set_scc(new != 0);
        self.ws32(&i.dst, if after { new } else { old })
    }

    #[inline(always)]
    fn exec64(&mut self, i: &Inst, after: bool, f: impl Fn(u64, u64) -> u64) -> Flow {
        let old = self.pair(EXEC);
        let new = f(self.s64(&i.src[0]), old);
        self.regs[usize::from(EXEC)] = new as u32;
        self.regs[usize::from(EXEC) + 1] = (new >> 32) as u32;
        self.set_scc(new != 0);
        self.ws64(&i.dst, if after { new } else { old })
    }
}

/// How often the sign bit is repeated, itself counted; -1 if all bits are the same.
pub(super) fn sign_bits(value: i32) -> u32 {
    match (value ^ (value >> 31)).leading_zeros() {
        32 => u32::MAX,
        n => n,
    }
}

fn find(count: u32, bits: u32) -> u32 {
    if count == bits { u32::MAX } else { count }
}

fn quads(value: u64) -> u64 {
    (0..16).fold(0, |mask, n| {
        mask | u64::from(value >> (4 * n) & 15 != 0) << n
    })
}

fn whole_quads(value: u64) -> u64 {
    (0..16).fold(0, |mask, n| match value >> (4 * n) & 15 {
        0 => mask,
        _ => mask | 15 << (4 * n),
    })
}

pub(super) static SOP1: &[Entry] = &[
    e(0, "s_mov_b32", WW, |w, i, _| w.sop1(i, |a| a)),
    e(1, "s_mov_b64", DD, |w, i, _| {
        let value = w.s64(&i.src[0]);
        w.ws64(&i.dst, value)
    }),
    e(2, "s_cmov_b32", WW, |w, i, _| {
        if w.scc() {
            w.sop1(i, |a| a)
        } else {
            Flow::Next
        }
    }),
    e(3, "s_cmov_b64", DD, |w, i, _| {
        let value = w.s64(&i.src[0]);
        if w.scc() {
            w.ws64(&i.dst, value)
        } else {
            Flow::Next
        }
    }),
    e(4, "s_brev_b32", WW, |w, i, _| w.sop1(i, u32::reverse_bits)),
    e(5, "s_brev_b64", DD, |w, i, _| {
        let value = w.s64(&i.src[0]).reverse_bits();
        w.ws64(&i.dst, value)
    }),
    e(8, "s_ctz_i32_b32", WW, |w, i, _| {
        w.sop1(i, |a| find(a.trailing_zeros(), 32))
    }),
    e(9, "s_ctz_i32_b64", WD, |w, i, _| {
        w.narrow(i, |a| find(a.trailing_zeros(), 64))
    }),
    e(10, "s_clz_i32_u32", WW, |w, i, _| {
        w.sop1(i, |a| find(a.leading_zeros(), 32))
    }),
    e(11, "s_clz_i32_u64", WD, |w, i, _| {
        w.narrow(i, |a| find(a.leading_zeros(), 64))
    }),
    e(12, "s_cls_i32", WW, |w, i, _| {
        w.sop1(i, |a| sign_bits(a as i32))
    }),
    e(13, "s_cls_i32_i64", WD, |w, i, _| {
        w.narrow(i, |a| {
            find((a as i64 ^ (a as i64 >> 63)).leading_zeros(), 64)
        })
    }),
    e(14, "s_sext_i32_i8", WW, |w, i, _| {
        w.sop1(i, |a| a as i8 as u32)
    }),
    e(15, "s_sext_i32_i16", WW, |w, i, _| {
        w.sop1(i, |a| a as i16 as u32)
    }),
    e(16, "s_bitset0_b32", WW, |w, i, _| {
        let value = w.regs[usize::from(i.dst.base)] & !1u32.wrapping_shl(w.s32(&i.src[0]));
        w.ws32(&i.dst, value)
    }),
    e(17, "s_bitset0_b64", DW, |w, i, _| {
        let value = w.pair(i.dst.base) & !1u64.wrapping_shl(w.s32(&i.src[0]));
        w.ws64(&i.dst, value)
    }),
    e(18, "s_bitset1_b32", WW, |w, i, _| {
        let value = w.regs[usize::from(i.dst.base)] | 1u32.wrapping_shl(w.s32(&i.src[0]));
        w.ws32(&i.dst, value)
    }),
    e(19, "s_bitset1_b64", DW, |w, i, _| {
        let value = w.pair(i.dst.base) | 1u64.wrapping_shl(w.s32(&i.src[0]));
        w.ws64(&i.dst, value)
    }),
    e(20, "s_bitreplicate_b64_b32", DW, |w, i, _| {
        let bits = w.s32(&i.src[0]);
        let value = (0..32).fold(0, |all, n| all | (u64::from(bits >> n & 1) * 3) << (2 * n));
        w.ws64(&i.dst, value)
    }),
    e(21, "s_abs_i32", WW, |w, i, _| {
        w.sop1_scc(i, |a| (a as i32).wrapping_abs() as u32)
    }),
    e(22, "s_bcnt0_i32_b32", WW, |w, i, _| {
        w.sop1_scc(i, u32::count_zeros)
    }),
    e(23, "s_bcnt0_i32_b64", WD, |w, i, _| {
        let count = w.s64(&i.src[0]).count_zeros();
        w.set_scc(count != 0);
        w.ws32(&i.dst, count)
    }),
    e(24, "s_bcnt1_i32_b32", WW, |w, i, _| {
        w.sop1_scc(i, u32::count_ones)
    }),
    e(25, "s_bcnt1_i32_b64", WD, |w, i, _| {
        let count = w.s64(&i.src[0]).count_ones();
        w.set_scc(count != 0);
        w.ws32(&i.dst, count)
    }),
    e(26, "s_quadmask_b32", WW, |w, i, _| {
        w.sop1_scc(i, |a| quads(a.into()) as u32)
    }),
    e(27, "s_quadmask_b64", DD, |w, i, _| w.sop1_scc64(i, quads)),
    e(28, "s_wqm_b32", WW, |w, i, _| {
        w.sop1_scc(i, |a| whole_quads(a.into()) as u32)
    }),
    e(29, "s_wqm_b64", DD, |w, i, _| w.sop1_scc64(i, whole_quads)),
    e(30, "s_not_b32", WW, |w, i, _| w.sop1_scc(i, |a| !a)),
    e(31, "s_not_b64", DD, |w, i, _| w.sop1_scc64(i, |a| !a)),
    e(71, "s_getpc_b64", form(D, [N, N, N]), |w, i, _| {
        let pc = w.pc;
        w.ws64(&i.dst, pc)
    }),
    e(72, "s_setpc_b64", form(N, [D, N, N]), |w, i, _| {
        w.pc = w.s64(&i.src[0]);
        Flow::Next
    }),
    e(73, "s_swappc_b64", DD, |w, i, _| {
        let (pc, target) = (w.pc, w.s64(&i.src[0]));
        w.ws64(&i.dst, pc);
        w.pc = target;
        Flow::Next
    }),
    e(76, "s_sendmsg_rtn_b32", form(W, [N, N, N]), |w, i, _| {
        let value = super::control::message(i.imm as u32) as u32;
        w.ws32(&i.dst, value)
    }),
    e(77, "s_sendmsg_rtn_b64", form(D, [N, N, N]), |w, i, _| {
        let value = super::control::message(i.imm as u32);
        w.ws64(&i.dst, value)
    }),
];

/// An operation on EXEC in both widths.
macro_rules! saveexec {
    ($($op:literal $name:literal $after:literal $f:expr;)*) => {
        &[$(
            e($op, concat!("s_", $name, "_b32"), WW, |w, i, _| w.exec32(i, $after, |a: u32, b: u32| $f(a.into(), b.into()) as u32)),
            e($op + 1, concat!("s_", $name, "_b64"), DD, |w, i, _| w.exec64(i, $after, $f)),
        )*]
    };
}

pub(super) static SAVEEXEC: &[Entry] = saveexec! {
    32 "and_saveexec" false |a: u64, x: u64| a & x;
    34 "or_saveexec" false |a: u64, x: u64| a | x;
    36 "xor_saveexec" false |a: u64, x: u64| a ^ x;
    38 "nand_saveexec" false |a: u64, x: u64| !(a & x);
    40 "nor_saveexec" false |a: u64, x: u64| !(a | x);
    42 "xnor_saveexec" false |a: u64, x: u64| !(a ^ x);
    44 "and_not0_saveexec" false |a: u64, x: u64| !a & x;
    46 "or_not0_saveexec" false |a: u64, x: u64| !a | x;
    48 "and_not1_saveexec" false |a: u64, x: u64| a & !x;
    50 "or_not1_saveexec" false |a: u64, x: u64| a | !x;
    52 "and_not0_wrexec" true |a: u64, x: u64| !a & x;
    54 "and_not1_wrexec" true |a: u64, x: u64| a & !x;
};
