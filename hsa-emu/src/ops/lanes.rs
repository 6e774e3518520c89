//! Loops over the lanes that run, and the ways to read and write a lane's operands.

use crate::isa::operand::SCC;
use crate::isa::{Dst, Inst, Src};
use crate::wave::{Flow, Wave};

impl Wave {
    /// Calls `f` for each lane that runs.
    #[inline(always)]
    pub(super) fn each(&mut self, mut f: impl FnMut(&mut Self, usize)) -> Flow {
        let mut left = self.exec();
        while left != 0 {
            let lane = left.trailing_zeros() as usize;
            left &= left - 1;
            f(self, lane);
        }
        Flow::Next
    }

    /// 32 bits of a lane.
    #[inline(always)]
    pub(super) fn r32(&self, src: &Src, lane: usize) -> u32 {
        let word = self.regs[usize::from(src.base) + (lane & usize::from(src.lanes))];
        word & src.and ^ src.xor
    }

    /// 64 bits of a lane.
    #[inline(always)]
    pub(super) fn r64(&self, src: &Src, lane: usize) -> u64 {
        let at = usize::from(src.base) + (lane & usize::from(src.lanes));
        let high = self.regs[at + usize::from(src.step)];
        u64::from(self.regs[at]) | u64::from(high & src.and ^ src.xor) << 32
    }

    /// 16 bits of a lane.
    #[inline(always)]
    pub(super) fn r16(&self, src: &Src, lane: usize) -> u16 {
        let word = self.regs[usize::from(src.base) + (lane & usize::from(src.lanes))];
        ((word >> src.shift) & src.and ^ src.xor) as u16
    }

    /// Word `n` of an operand of several registers.
    #[inline(always)]
    pub(super) fn word(&self, src: &Src, n: usize, lane: usize) -> u32 {
        self.regs[usize::from(src.base) + n * usize::from(src.step) + lane]
    }

    /// Writes 32 bits of a lane.
    #[inline(always)]
    pub(super) fn w32(&mut self, dst: &Dst, lane: usize, value: u32) {
        self.regs[usize::from(dst.base) + lane] = value;
    }

    /// Writes word `n` of a result of several registers.
    #[inline(always)]
    pub(super) fn set_word(&mut self, dst: &Dst, n: usize, lane: usize, value: u32) {
        self.regs[usize::from(dst.base) + n * usize::from(dst.step) + lane] = value;
    }

    /// Writes 64 bits of a lane.
    #[inline(always)]
    pub(super) fn w64(&mut self, dst: &Dst, lane: usize, value: u64) {
        self.set_word(dst, 0, lane, value as u32);
        self.set_word(dst, 1, lane, (value >> 32) as u32);
    }

    /// Writes one half of a register of a lane; the other stays.
    #[inline(always)]
    pub(super) fn w16(&mut self, dst: &Dst, lane: usize, value: u16) {
        let word = &mut self.regs[usize::from(dst.base) + lane];
        *word = *word & !(0xffff << dst.shift) | u32::from(value) << dst.shift;
    }

    /// A scalar source.
    #[inline(always)]
    pub(super) fn s32(&self, src: &Src) -> u32 {
        self.regs[usize::from(src.base)]
    }

    /// A scalar source of 64 bits.
    #[inline(always)]
    pub(super) fn s64(&self, src: &Src) -> u64 {
        self.pair(src.base)
    }

    /// Writes a scalar result.
    #[inline(always)]
    pub(super) fn ws32(&mut self, dst: &Dst, value: u32) -> Flow {
        self.regs[usize::from(dst.base)] = value;
        Flow::Next
    }

    /// Writes a scalar result of 64 bits.
    #[inline(always)]
    pub(super) fn ws64(&mut self, dst: &Dst, value: u64) -> Flow {
        self.regs[usize::from(dst.base)] = value as u32;
        self.regs[usize::from(dst.base) + 1] = (value >> 32) as u32;
        Flow::Next
    }

    /// The scalar condition.
    #[inline(always)]
    pub(super) fn scc(&self) -> bool {
        self.regs[usize::from(SCC)] != 0
    }

    /// Sets the scalar condition.
    #[inline(always)]
    pub(super) fn set_scc(&mut self, value: bool) {
        self.regs[usize::from(SCC)] = value.into();
    }

    #[inline(always)]
    pub(super) fn un32(&mut self, i: &Inst, f: impl Fn(u32) -> u32) -> Flow {
        self.each(|w, l| {
            let value = f(w.r32(&i.src[0], l));
            w.w32(&i.dst, l, value);
        })
    }

    #[inline(always)]
    pub(super) fn bin32(&mut self, i: &Inst, f: impl Fn(u32, u32) -> u32) -> Flow {
        self.each(|w, l| {
            let value = f(w.r32(&i.src[0], l), w.r32(&i.src[1], l));
            w.w32(&i.dst, l, value);
        })
    }

    #[inline(always)]
    pub(super) fn tri32(&mut self, i: &Inst, f: impl Fn(u32, u32, u32) -> u32) -> Flow {
        self.each(|w, l| {
            let (a, b) = (w.r32(&i.src[0], l), w.r32(&i.src[1], l));
            let value = f(a, b, w.r32(&i.src[2], l));
            w.w32(&i.dst, l, value);
        })
    }

    #[inline(always)]
    pub(super) fn un16(&mut self, i: &Inst, f: impl Fn(u16) -> u16) -> Flow {
        self.each(|w, l| {
            let value = f(w.r16(&i.src[0], l));
            w.w16(&i.dst, l, value);
        })
    }

    #[inline(always)]
    pub(super) fn bin16(&mut self, i: &Inst, f: impl Fn(u16, u16) -> u16) -> Flow {
        self.each(|w, l| {
            let value = f(w.r16(&i.src[0], l), w.r16(&i.src[1], l));
            w.w16(&i.dst, l, value);
        })
    }

    #[inline(always)]
    pub(super) fn tri16(&mut self, i: &Inst, f: impl Fn(u16, u16, u16) -> u16) -> Flow {
        self.each(|w, l| {
            let (a, b) = (w.r16(&i.src[0], l), w.r16(&i.src[1], l));
            let value = f(a, b, w.r16(&i.src[2], l));
            w.w16(&i.dst, l, value);
        })
    }

    /// A shift of 64 bits: the amount comes first.
    #[inline(always)]
    pub(super) fn shift64(&mut self, i: &Inst, f: impl Fn(u32, u64) -> u64) -> Flow {
        self.each(|w, l| {
            let value = f(w.r32(&i.src[0], l), w.r64(&i.src[1], l));
            w.w64(&i.dst, l, value);
        })
    }

    /// Writes an `f32` with the output modifiers applied.
    #[inline(always)]
    pub(super) fn wf32(&mut self, i: &Inst, lane: usize, value: f32) {
        let value = if i.omod != 0 || i.clamp {
            modified(i, value.into()) as f32
        } else {
            value
        };
        self.w32(&i.dst, lane, value.to_bits());
    }

    /// Writes an `f64` with the output modifiers applied.
    #[inline(always)]
    pub(super) fn wf64(&mut self, i: &Inst, lane: usize, value: f64) {
        let value = if i.omod != 0 || i.clamp {
            modified(i, value)
        } else {
            value
        };
        self.w64(&i.dst, lane, value.to_bits());
    }

    /// Reads an `f32`.
    #[inline(always)]
    pub(super) fn f32(&self, src: &Src, lane: usize) -> f32 {
        f32::from_bits(self.r32(src, lane))
    }

    /// Reads an `f64`.
    #[inline(always)]
    pub(super) fn f64(&self, src: &Src, lane: usize) -> f64 {
        f64::from_bits(self.r64(src, lane))
    }

    /// Reads an `f16`.
    #[inline(always)]
    pub(super) fn f16(&self, src: &Src, lane: usize) -> f32 {
        crate::float::from_half(self.r16(src, lane))
    }

    /// Rounds to an `f16`, with the output modifiers applied.
    #[inline(always)]
    pub(super) fn wf16(&mut self, i: &Inst, lane: usize, value: f64) {
        let half = crate::float::half_from_wide(modified(i, value));
        self.w16(&i.dst, lane, half);
    }

    #[inline(always)]
    pub(super) fn unf32(&mut self, i: &Inst, f: impl Fn(f32) -> f32) -> Flow {
        self.each(|w, l| {
            let value = f(w.f32(&i.src[0], l));
            w.wf32(i, l, value);
        })
    }

    #[inline(always)]
    pub(super) fn binf32(&mut self, i: &Inst, f: impl Fn(f32, f32) -> f32) -> Flow {
        self.each(|w, l| {
            let value = f(w.f32(&i.src[0], l), w.f32(&i.src[1], l));
            w.wf32(i, l, value);
        })
    }

    #[inline(always)]
    pub(super) fn trif32(&mut self, i: &Inst, f: impl Fn(f32, f32, f32) -> f32) -> Flow {
        self.each(|w, l| {
            let (a, b) = (w.f32(&i.src[0], l), w.f32(&i.src[1], l));
            let value = f(a, b, w.f32(&i.src[2], l));
            w.wf32(i, l, value);
        })
    }

    #[inline(always)]
    pub(super) fn unf64(&mut self, i: &Inst, f: impl Fn(f64) -> f64) -> Flow {
        self.each(|w, l| {
            let value = f(w.f64(&i.src[0], l));
            w.wf64(i, l, value);
        })
    }

    #[inline(always)]
    pub(super) fn binf64(&mut self, i: &Inst, f: impl Fn(f64, f64) -> f64) -> Flow {
        self.each(|w, l| {
            let value = f(w.f64(&i.src[0], l), w.f64(&i.src[1], l));
            w.wf64(i, l, value);
        })
    }

    #[inline(always)]
    pub(super) fn trif64(&mut self, i: &Inst, f: impl Fn(f64, f64, f64) -> f64) -> Flow {
        self.each(|w, l| {
            let (a, b) = (w.f64(&i.src[0], l), w.f64(&i.src[1], l));
            let value = f(a, b, w.f64(&i.src[2], l));
            w.wf64(i, l, value);
        })
    }

    #[inline(always)]
    pub(super) fn unf16(&mut self, i: &Inst, f: impl Fn(f64) -> f64) -> Flow {
        self.each(|w, l| {
            let value = f(w.f16(&i.src[0], l).into());
            w.wf16(i, l, value);
        })
    }

    #[inline(always)]
    pub(super) fn binf16(&mut self, i: &Inst, f: impl Fn(f64, f64) -> f64) -> Flow {
        self.each(|w, l| {
            let value = f(w.f16(&i.src[0], l).into(), w.f16(&i.src[1], l).into());
            w.wf16(i, l, value);
        })
    }

    #[inline(always)]
    pub(super) fn trif16(&mut self, i: &Inst, f: impl Fn(f64, f64, f64) -> f64) -> Flow {
        self.each(|w, l| {
            let (a, b) = (w.f16(&i.src[0], l), w.f16(&i.src[1], l));
            let value = f(a.into(), b.into(), w.f16(&i.src[2], l).into());
            w.wf16(i, l, value);
        })
    }

    /// Writes a bit for each lane that runs, zero for the others.
    #[inline(always)]
    pub(super) fn lane_bits(&mut self, i: &Inst, f: impl Fn(&Self, usize) -> bool) -> Flow {
        let mut mask = 0;
        let mut left = self.exec();
        while left != 0 {
            let lane = left.trailing_zeros() as usize;
            left &= left - 1;
            mask |= u64::from(f(self, lane)) << lane;
        }
        self.set_mask(i.sdst, mask);
        Flow::Next
    }

    /// An addition or subtraction with a bit for each lane going in and out.
    #[inline(always)]
    pub(super) fn carry(
        &mut self,
        i: &Inst,
        incoming: u64,
        f: impl Fn(u32, u32, bool) -> (u32, bool),
    ) -> Flow {
        let mut mask = 0;
        self.each(|w, l| {
            let bit = incoming >> l & 1 == 1;
            let (value, out) = f(w.r32(&i.src[0], l), w.r32(&i.src[1], l), bit);
            w.w32(&i.dst, l, value);
            mask |= u64::from(out) << l;
        });
        self.set_mask(i.sdst, mask);
        Flow::Next
    }
}

/// The output modifiers: a factor, then a clamp to 0..=1, which turns NaN into 0.
#[inline(always)]
pub(super) fn modified(i: &Inst, value: f64) -> f64 {
    let value = match i.omod {
        1 => value * 2.0,
        2 => value * 4.0,
        3 => value * 0.5,
        _ => value,
    };
    if !i.clamp {
        value
    } else if value > 0.0 {
        value.min(1.0)
    } else {
        0.0
    }
}
