//! Exchanges between the lanes of a wave: DPP, permutations through the local data share's hardware,
//! and rows of sixteen.

use crate::isa::operand::{EXEC, V0, VGPRS};
use crate::isa::{Dpp, DppControl, Inst};
use crate::memory::Space;
use crate::wave::{Flow, Wave};

/// The lane that `lane` reads under a DPP control; `None` if there is none.
fn dpp_source(control: &DppControl, lane: usize, lanes: usize) -> Option<usize> {
    let control = match *control {
        DppControl::Eight(select) => {
            return Some((lane & !7) + (select >> ((lane & 7) * 3) & 7) as usize);
        }
        DppControl::Row(control) => usize::from(control),
    };
    let (row, at, amount) = (lane & !15, lane & 15, control & 15);
    let within = |source: usize| (source < 16).then(|| row + source);
    match control {
        0..=0xff => Some((lane & !3) + (control >> ((lane & 3) * 2) & 3)),
        0x101..=0x10f => within(at + amount),
        0x111..=0x11f => within(at.wrapping_sub(amount)),
        0x121..=0x12f => within((at + 16 - amount) & 15),
        0x140 => within(15 - at),
        0x141 => within((at & 8) + 7 - (at & 7)),
        0x150..=0x15f => within(amount),
        0x160..=0x16f => within(at ^ amount),
        _ => None,
    }
    .filter(|&source| source < lanes)
}

/// Runs an instruction whose first source comes from other lanes: gathers it, then runs the operation
/// with those lanes that take part.
pub(crate) fn dpp_exec(wave: &mut Wave, inst: &Inst, space: &Space) -> Flow {
    let Some(Dpp {
        control,
        row_mask,
        bank_mask,
        bound,
        inactive,
    }) = &inst.dpp
    else {
        return Flow::Next;
    };
    let lanes = usize::from(wave.lanes);
    let exec = wave.exec();
    let from = inst.imm as usize;
    let to = usize::from(V0) + usize::from(VGPRS) * lanes;
    let mut taking_part = 0;
    for lane in 0..lanes {
        let row = row_mask >> (lane >> 4) & 1 == 1;
        let bank = bank_mask >> (lane >> 2 & 3) & 1 == 1;
        let source =
            dpp_source(control, lane, lanes).filter(|source| *inactive || exec >> source & 1 == 1);
        let value = source.map_or(0, |source| wave.regs[from + source]);
        wave.regs[to + lane] = value;
        if row && bank && (source.is_some() || *bound) {
            taking_part |= 1 << lane;
        }
    }
    wave.set_mask(EXEC, exec & taking_part);
    let flow = (inst.entry.exec)(wave, inst, space);
    if inst.sdst != EXEC {
        wave.set_mask(EXEC, exec);
    }
    flow
}

impl Wave {
    /// Each lane reads the lane that its address names, four bytes a lane; lanes that do not run give 0.
    pub(super) fn bpermute(&mut self, i: &Inst) -> Flow {
        let exec = self.exec();
        let mut result = [0; 64];
        self.each(|w, l| {
            let address = w.word(&i.src[0], 0, l).wrapping_add(i.imm as u32);
            // Waves of 64 lanes exchange within each half.
            let source = (address as usize / 4) % 32 + (l & 32);
            if exec >> source & 1 == 1 {
                result[l] = w.word(&i.src[1], 0, source);
            }
        });
        self.each(|w, l| w.w32(&i.dst, l, result[l]))
    }

    /// Each lane writes to the lane that its address names; the highest one wins.
    pub(super) fn permute(&mut self, i: &Inst) -> Flow {
        let mut result = [0; 64];
        self.each(|w, l| {
            let address = w.word(&i.src[0], 0, l).wrapping_add(i.imm as u32);
            let target = (address as usize / 4) % 32 + (l & 32);
            result[target] = w.word(&i.src[1], 0, l);
        });
        self.each(|w, l| w.w32(&i.dst, l, result[l]))
    }

    /// A fixed permutation within quads or by masks.
    pub(super) fn swizzle(&mut self, i: &Inst) -> Flow {
        let exec = self.exec();
        let control = i.imm as usize;
        let mut result = [0; 64];
        self.each(|w, l| {
            let source = if control & 0x8000 != 0 {
                (l & !3) + (control >> ((l & 3) * 2) & 3)
            } else {
                let (and, or, xor) = (control & 31, control >> 5 & 31, control >> 10 & 31);
                (l & 32) + ((l & and | or) ^ xor) % 32
            };
            if exec >> source & 1 == 1 {
                result[l] = w.word(&i.src[0], 0, source);
            }
        });
        self.each(|w, l| w.w32(&i.dst, l, result[l]))
    }

    /// Each lane reads from a lane of its own or the neighbouring row, four bits of the selectors for
    /// each lane of a row.
    pub(super) fn permute_rows(&mut self, i: &Inst, other_row: usize) -> Flow {
        let exec = self.exec();
        let selectors = u64::from(self.s32(&i.src[1])) | u64::from(self.s32(&i.src[2])) << 32;
        let (inactive, bound) = (i.op_sel & 1 != 0, i.op_sel & 2 != 0);
        let mut result = [None; 64];
        self.each(|w, l| {
            let source = (l & !15) + (selectors >> ((l & 15) * 4) & 15) as usize;
            let source = source ^ other_row;
            if inactive || exec >> source & 1 == 1 {
                result[l] = Some(w.r32(&i.src[0], source));
            } else if bound {
                result[l] = Some(0);
            }
        });
        self.each(|w, l| {
            if let Some(value) = result[l] {
                w.w32(&i.dst, l, value);
            }
        })
    }
}
