//! What instructions do: a table for each encoding, a line for each operation.
//!
//! A line has the number, the assembler's name, the kinds of the operands and a closure. [`lanes`] has
//! the loops over lanes that the closures are put into.

#[cfg(test)]
mod against_host;
mod atomic;
mod compare;
mod control;
mod cross;
mod lanes;
mod lds;
mod load;
mod packed;
mod scalar;
mod scalar_move;
mod vector1;
mod vector2;
mod vector3;
mod vector3_half;

use std::sync::LazyLock;

use crate::isa::{Encoding, Entry, Exec, Inst};
use crate::memory::Space;
use crate::wave::{Flow, Wave};

pub(crate) use cross::dpp_exec;

/// Entries by operation number.
struct Index(Vec<Option<&'static Entry>>);

impl Index {
    fn new(tables: &[&'static [Entry]]) -> Self {
        let mut index = Vec::new();
        for entry in tables.iter().copied().flatten() {
            let at = usize::from(entry.op);
            if index.len() <= at {
                index.resize(at + 1, None);
            }
            debug_assert!(index[at].is_none(), "{} is there twice", entry.name);
            index[at] = Some(entry);
        }
        Self(index)
    }
}

static SOP1: LazyLock<Index> =
    LazyLock::new(|| Index::new(&[scalar_move::SOP1, scalar_move::SAVEEXEC]));
static SOP2: LazyLock<Index> = LazyLock::new(|| Index::new(&[scalar::SOP2]));
static SOPC: LazyLock<Index> = LazyLock::new(|| Index::new(&[scalar::SOPC]));
static SOPK: LazyLock<Index> = LazyLock::new(|| Index::new(&[control::SOPK]));
static SOPP: LazyLock<Index> = LazyLock::new(|| Index::new(&[control::SOPP]));
static SMEM: LazyLock<Index> = LazyLock::new(|| Index::new(&[load::SMEM]));
static VOP1: LazyLock<Index> = LazyLock::new(|| Index::new(&[vector1::VOP1, vector1::FLOAT]));
static VOP2: LazyLock<Index> = LazyLock::new(|| Index::new(&[vector2::VOP2]));
static VOPC: LazyLock<Index> = LazyLock::new(|| Index::new(&compare::tables()));
static VOP3: LazyLock<Index> = LazyLock::new(|| Index::new(&[vector3::VOP3, vector3_half::VOP3]));
static VOP3P: LazyLock<Index> = LazyLock::new(|| Index::new(&[packed::VOP3P]));
static VOPD: LazyLock<Index> = LazyLock::new(|| Index::new(&[vector2::VOPD]));
static DS: LazyLock<Index> = LazyLock::new(|| Index::new(&lds::tables()));
static FLAT: LazyLock<Index> = LazyLock::new(|| Index::new(&[load::MEMORY, atomic::ATOMIC]));
static SCRATCH: LazyLock<Index> = LazyLock::new(|| Index::new(&[load::MEMORY]));
static MUBUF: LazyLock<Index> = LazyLock::new(|| Index::new(&[control::MUBUF]));

/// The operation of a number in an encoding.
pub(crate) fn lookup(encoding: Encoding, op: u16) -> Option<&'static Entry> {
    let index: &Index = match encoding {
        Encoding::Sop1 => &SOP1,
        Encoding::Sop2 => &SOP2,
        Encoding::Sopc => &SOPC,
        Encoding::Sopk => &SOPK,
        Encoding::Sopp => &SOPP,
        Encoding::Smem => &SMEM,
        Encoding::Vop1 => &VOP1,
        Encoding::Vop2 => &VOP2,
        Encoding::Vopc => &VOPC,
        Encoding::Vop3 => &VOP3,
        Encoding::Vop3p => &VOP3P,
        Encoding::Vopd => &VOPD,
        Encoding::Ds => &DS,
        Encoding::Flat | Encoding::Global => &FLAT,
        Encoding::Scratch => &SCRATCH,
        Encoding::Mubuf => &MUBUF,
    };
    *index.0.get(usize::from(op))?
}

pub(crate) use compare::destination as compare_destination;

/// Runs both operations of a VOPD instruction: sources are read before results are written, so the
/// first one's result is taken back while the second reads.
pub(crate) fn dual_exec(wave: &mut Wave, inst: &Inst, space: &Space) -> Flow {
    let Some(second) = &inst.other else {
        return Flow::Next;
    };
    let clash = second
        .src
        .iter()
        .any(|src| src.lanes != 0 && src.base == inst.dst.base);
    let (exec_x, exec_y): (Exec, Exec) = (inst.entry.exec, second.entry.exec);
    if !clash {
        exec_x(wave, inst, space);
        return exec_y(wave, second, space);
    }
    // The other order will do, unless each one's result is the other's source.
    let crossed = inst
        .src
        .iter()
        .any(|src| src.lanes != 0 && src.base == second.dst.base);
    if !crossed {
        exec_y(wave, second, space);
        return exec_x(wave, inst, space);
    }
    let range = usize::from(inst.dst.base)..usize::from(inst.dst.base + wave.lanes);
    let mut before = [0; 64];
    let before = &mut before[..range.len()];
    before.copy_from_slice(&wave.regs[range.clone()]);
    exec_x(wave, inst, space);
    // Exchange: the second sees what was, then the first result comes back.
    wave.regs[range.clone()].swap_with_slice(before);
    exec_y(wave, second, space);
    wave.regs[range].copy_from_slice(before);
    Flow::Next
}
