//! Control flow, waits, messages, mode: what has a constant of 16 bits instead of a second source.

use std::sync::atomic::{Ordering, fence};

use crate::fault::Cause;
use crate::isa::Kind::{D, Lit, None as N, Tied, W};
use crate::isa::operand::LITERAL;
use crate::isa::{Entry, Form, Inst, e, form};
use crate::time;
use crate::wave::{Flow, Wave};

const NONE: Form = form(N, [N, N, N]);
const COMPARE: Form = form(N, [W, N, N]);
const RESULT: Form = form(W, [N, N, N]);

/// The registers of the hardware that programs read.
mod hwreg {
    pub(super) const MODE: u32 = 1;
    pub(super) const SHADER_CYCLES: u32 = 29;
}

/// Answers a message that asks for a value.
pub(super) fn message(number: u32) -> u64 {
    const REALTIME: u32 = 0x83;
    if number == REALTIME { time::ticks() } else { 0 }
}

impl Wave {
    /// Jumps if `taken`: the constant counts words from the next instruction.
    #[inline(always)]
    fn branch(&mut self, i: &Inst, taken: bool) -> Flow {
        if taken {
            self.pc = self.pc.wrapping_add((i64::from(i.imm) * 4) as u64);
        }
        Flow::Next
    }

    #[inline(always)]
    fn cmpk(&mut self, i: &Inst, f: impl Fn(u32, i32) -> bool) -> Flow {
        let scc = f(self.s32(&i.src[0]), i.imm);
        self.set_scc(scc);
        Flow::Next
    }

    #[inline(always)]
    fn cmpku(&mut self, i: &Inst, f: impl Fn(u32, u32) -> bool) -> Flow {
        self.cmpk(i, |a, b| f(a, b as u16 as u32))
    }

    fn setreg(&mut self, i: &Inst, value: u32) -> Flow {
        let (id, offset, width) = hardware_field(i.imm as u32);
        if id == hwreg::MODE {
            let mask = (((1u64 << width) - 1) << offset) as u32;
            self.mode = self.mode & !mask | value << offset & mask;
        }
        Flow::Next
    }
}

/// Which register, and which bits of it.
fn hardware_field(imm: u32) -> (u32, u32, u32) {
    (imm & 63, imm >> 6 & 31, (imm >> 11 & 31) + 1)
}

/// Nothing to do: what it waits for or hints at is done at once here.
const NOP: crate::isa::Exec = |_, _, _| Flow::Next;

pub(super) static SOPK: &[Entry] = &[
    e(0, "s_movk_i32", RESULT, |w, i, _| {
        w.ws32(&i.dst, i.imm as u32)
    }),
    e(1, "s_version", NONE, NOP),
    e(2, "s_cmovk_i32", RESULT, |w, i, _| {
        if w.scc() {
            w.ws32(&i.dst, i.imm as u32)
        } else {
            Flow::Next
        }
    }),
    e(3, "s_cmpk_eq_i32", COMPARE, |w, i, _| {
        w.cmpk(i, |a, b| a as i32 == b)
    }),
    e(4, "s_cmpk_lg_i32", COMPARE, |w, i, _| {
        w.cmpk(i, |a, b| a as i32 != b)
    }),
    e(5, "s_cmpk_gt_i32", COMPARE, |w, i, _| {
        w.cmpk(i, |a, b| a as i32 > b)
    }),
    e(6, "s_cmpk_ge_i32", COMPARE, |w, i, _| {
        w.cmpk(i, |a, b| a as i32 >= b)
    }),
    e(7, "s_cmpk_lt_i32", COMPARE, |w, i, _| {
        w.cmpk(i, |a, b| (a as i32) < b)
    }),
    e(8, "s_cmpk_le_i32", COMPARE, |w, i, _| {
        w.cmpk(i, |a, b| a as i32 <= b)
    }),
    e(9, "s_cmpk_eq_u32", COMPARE, |w, i, _| {
        w.cmpku(i, |a, b| a == b)
    }),
    e(10, "s_cmpk_lg_u32", COMPARE, |w, i, _| {
        w.cmpku(i, |a, b| a != b)
    }),
    e(11, "s_cmpk_gt_u32", COMPARE, |w, i, _| {
        w.cmpku(i, |a, b| a > b)
    }),
    e(12, "s_cmpk_ge_u32", COMPARE, |w, i, _| {
        w.cmpku(i, |a, b| a >= b)
    }),
    e(13, "s_cmpk_lt_u32", COMPARE, |w, i, _| {
        w.cmpku(i, |a, b| a < b)
    }),
    e(14, "s_cmpk_le_u32", COMPARE, |w, i, _| {
        w.cmpku(i, |a, b| a <= b)
    }),
    e(15, "s_addk_i32", form(W, [Tied, N, N]), |w, i, _| {
        let at = usize::from(i.dst.base);
        let (value, overflow) = (w.regs[at] as i32).overflowing_add(i.imm);
        w.set_scc(overflow);
        w.ws32(&i.dst, value as u32)
    }),
    e(16, "s_mulk_i32", form(W, [Tied, N, N]), |w, i, _| {
        let value = w.regs[usize::from(i.dst.base)].wrapping_mul(i.imm as u32);
        w.ws32(&i.dst, value)
    }),
    e(17, "s_getreg_b32", RESULT, |w, i, _| {
        let (id, offset, width) = hardware_field(i.imm as u32);
        let value = match id {
            hwreg::MODE => w.mode,
            hwreg::SHADER_CYCLES => time::cycles() as u32 & 0xf_ffff,
            _ => 0,
        };
        w.ws32(
            &i.dst,
            (u64::from(value >> offset) & ((1u64 << width) - 1)) as u32,
        )
    }),
    e(18, "s_setreg_b32", COMPARE, |w, i, _| {
        let value = w.s32(&i.src[0]);
        w.setreg(i, value)
    }),
    e(19, "s_setreg_imm32_b32", form(N, [Lit, N, N]), |w, i, _| {
        let value = w.regs[usize::from(LITERAL)];
        w.setreg(i, value)
    }),
    e(20, "s_call_b64", form(D, [N, N, N]), |w, i, _| {
        let pc = w.pc;
        w.ws64(&i.dst, pc);
        w.branch(i, true)
    }),
    e(24, "s_waitcnt_vscnt", COMPARE, |_, _, _| {
        // A wait for stores makes them seen before any later load; a release store does not.
        fence(Ordering::SeqCst);
        Flow::Next
    }),
    e(25, "s_waitcnt_vmcnt", COMPARE, NOP),
    e(26, "s_waitcnt_expcnt", COMPARE, NOP),
    e(27, "s_waitcnt_lgkmcnt", COMPARE, NOP),
];

pub(super) static SOPP: &[Entry] = &[
    e(0, "s_nop", NONE, NOP),
    e(2, "s_sethalt", NONE, |w, i, _| {
        // A halted wave runs again when a debugger says so, and there is none.
        if i.imm & 1 == 0 {
            Flow::Next
        } else {
            w.fail(Cause::Trap(0))
        }
    }),
    e(3, "s_sleep", NONE, |_, i, _| {
        Flow::Sleep(i.imm as u32 & 127)
    }),
    e(4, "s_set_inst_prefetch_distance", NONE, NOP),
    e(5, "s_clause", NONE, NOP),
    e(7, "s_delay_alu", NONE, NOP),
    e(8, "s_waitcnt_depctr", NONE, NOP),
    e(9, "s_waitcnt", NONE, NOP),
    e(10, "s_wait_idle", NONE, NOP),
    e(11, "s_wait_event", NONE, NOP),
    e(16, "s_trap", NONE, |w, i, _| {
        // 3 is for debuggers: without one the program goes on.
        const DEBUG: i32 = 3;
        match i.imm & 0xff {
            DEBUG => Flow::Next,
            number => w.fail(Cause::Trap(number as u32)),
        }
    }),
    e(17, "s_round_mode", NONE, |w, i, _| {
        w.mode = w.mode & !15 | i.imm as u32 & 15;
        Flow::Next
    }),
    e(18, "s_denorm_mode", NONE, |w, i, _| {
        w.mode = w.mode & !0xf0 | (i.imm as u32 & 15) << 4;
        Flow::Next
    }),
    e(31, "s_code_end", NONE, |w, _, _| {
        w.fail(Cause::Illegal(0xbf9f_0000))
    }),
    e(32, "s_branch", NONE, |w, i, _| w.branch(i, true)),
    e(33, "s_cbranch_scc0", NONE, |w, i, _| {
        let taken = !w.scc();
        w.branch(i, taken)
    }),
    e(34, "s_cbranch_scc1", NONE, |w, i, _| {
        let taken = w.scc();
        w.branch(i, taken)
    }),
    e(35, "s_cbranch_vccz", NONE, |w, i, _| {
        let taken = w.vcc() == 0;
        w.branch(i, taken)
    }),
    e(36, "s_cbranch_vccnz", NONE, |w, i, _| {
        let taken = w.vcc() != 0;
        w.branch(i, taken)
    }),
    e(37, "s_cbranch_execz", NONE, |w, i, _| {
        let taken = w.exec() == 0;
        w.branch(i, taken)
    }),
    e(38, "s_cbranch_execnz", NONE, |w, i, _| {
        let taken = w.exec() != 0;
        w.branch(i, taken)
    }),
    e(48, "s_endpgm", NONE, |_, _, _| Flow::End),
    e(53, "s_setprio", NONE, NOP),
    e(54, "s_sendmsg", NONE, NOP),
    e(60, "s_icache_inv", NONE, NOP),
    e(61, "s_barrier", NONE, |_, _, _| Flow::Barrier),
];

pub(super) static MUBUF: &[Entry] = &[
    e(43, "buffer_gl0_inv", NONE, NOP),
    e(44, "buffer_gl1_inv", NONE, NOP),
];
