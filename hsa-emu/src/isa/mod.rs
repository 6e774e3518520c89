//! Instructions: the form that the interpreter runs, and how it is made of the bytes of a program.
//!
//! [`decode`](decode::decode) looks up an [`Entry`] of the tables in [`crate::ops`] by encoding and
//! operation number and resolves every operand to a place in the register file ([`operand`]), so that
//! running an instruction needs no knowledge of its encoding. [`text`] writes one as an assembler would.

#[cfg(test)]
mod against_objdump;
pub(crate) mod decode;
pub(crate) mod operand;
pub(crate) mod text;
mod vector;

use crate::memory::Space;
use crate::wave::{Flow, Wave};

pub(crate) use operand::{Dst, Src};

/// Runs one instruction.
pub(crate) type Exec = fn(&mut Wave, &Inst, &Space) -> Flow;

/// What an operand holds, which decides its width and what its constants mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// No operand.
    None,
    /// 32 bits.
    W,
    /// 64 bits; a literal is extended with zeros.
    D,
    /// A signed number of 64 bits; a literal is extended with its sign.
    I,
    /// An `f64`; a literal is its upper half.
    Q,
    /// A 16-bit integer: one half of a register.
    H,
    /// An `f16`: one half of a register.
    F,
    /// Two 16-bit values: a whole register, constants being those of [`H`](Self::H).
    P,
    /// A bit for each lane: one or two scalar registers.
    M,
    /// The literal behind the instruction.
    Lit,
    /// The destination, which is read too.
    Tied,
    /// `n` registers of 32 bits.
    N(u8),
}

impl Kind {
    /// Registers of 32 bits.
    pub(crate) fn words(self, wave64: bool) -> u8 {
        match self {
            Self::None => 0,
            Self::D | Self::I | Self::Q => 2,
            Self::M => 1 + u8::from(wave64),
            Self::N(n) => n,
            _ => 1,
        }
    }

    /// Whether it is one half of a register.
    pub(crate) fn half(self) -> bool {
        matches!(self, Self::H | Self::F)
    }
}

/// The operands of an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    /// What it writes.
    pub(crate) dst: Kind,
    /// What it reads.
    pub(crate) src: [Kind; 3],
    /// It writes a bit for each lane as well (carry), to VCC or a scalar register.
    pub(crate) carry: bool,
    /// Its result is scalar although it is a vector operation.
    pub(crate) scalar: bool,
}

/// One operation: a line of a table.
pub(crate) struct Entry {
    /// The number in its encoding.
    pub(crate) op: u16,
    /// The assembler's name, without suffix.
    pub(crate) name: &'static str,
    /// Its operands.
    pub(crate) form: Form,
    /// What it does.
    pub(crate) exec: Exec,
}

/// Makes a line of a table.
pub(crate) const fn e(op: u16, name: &'static str, form: Form, exec: Exec) -> Entry {
    Entry {
        op,
        name,
        form,
        exec,
    }
}

/// The operands of an operation with up to three sources.
pub(crate) const fn form(dst: Kind, src: [Kind; 3]) -> Form {
    Form {
        dst,
        src,
        carry: false,
        scalar: false,
    }
}

/// How an instruction is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// Scalar, one source.
    Sop1,
    /// Scalar, two sources.
    Sop2,
    /// Scalar comparison.
    Sopc,
    /// Scalar with a constant of 16 bits.
    Sopk,
    /// Control.
    Sopp,
    /// Scalar loads.
    Smem,
    /// Vector, one source.
    Vop1,
    /// Vector, two sources.
    Vop2,
    /// Vector comparison.
    Vopc,
    /// Vector with modifiers and up to three sources.
    Vop3,
    /// Vector over pairs of 16-bit values.
    Vop3p,
    /// Two vector operations at once.
    Vopd,
    /// Local data share.
    Ds,
    /// Memory whose address says which.
    Flat,
    /// Global memory.
    Global,
    /// Private memory.
    Scratch,
    /// Cache control; buffers are not interpreted.
    Mubuf,
}

/// How lanes get the first source from each other (DPP).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dpp {
    /// Sixteen lanes at a time, by this control; or eight, by three bits a lane.
    pub(crate) control: DppControl,
    /// Rows of 16 that take part.
    pub(crate) row_mask: u8,
    /// Quarters of a row that take part.
    pub(crate) bank_mask: u8,
    /// Lanes without a source read 0 rather than not taking part.
    pub(crate) bound: bool,
    /// Inactive lanes can be read.
    pub(crate) inactive: bool,
}

/// The permutation of a [`Dpp`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum DppControl {
    /// The 9 bits of DPP16.
    Row(u16),
    /// The 24 bits of DPP8.
    Eight(u32),
}

/// One instruction, decoded.
pub(crate) struct Inst {
    /// What it does.
    pub(crate) exec: Exec,
    /// Its table line; of two operations at once the first.
    pub(crate) entry: &'static Entry,
    /// The second of two operations at once, with its own operands.
    pub(crate) other: Option<Box<Inst>>,
    /// Where the result goes.
    pub(crate) dst: Dst,
    /// Where the lane bits go: index of a scalar register.
    pub(crate) sdst: u16,
    /// Sources, modifiers included.
    pub(crate) src: [Src; 3],
    /// The scalar part of an address; its lane mask is nonzero if there is none.
    pub(crate) base: Option<u16>,
    /// Whether an address has a vector part.
    pub(crate) vaddr: bool,
    /// The literal as its operand's kind extends it.
    pub(crate) literal: u64,
    /// A constant of 16 bits or an offset.
    pub(crate) imm: i32,
    /// Clamp the result.
    pub(crate) clamp: bool,
    /// Output modifier: times 2, times 4, half.
    pub(crate) omod: u8,
    /// Return the value before (atomics); other meanings elsewhere.
    pub(crate) glc: bool,
    /// Which halves and lanes: VOP3's selection bits.
    pub(crate) op_sel: u8,
    /// The same for the upper result of packed operations.
    pub(crate) op_sel_hi: u8,
    /// Negation of the upper operands of packed operations.
    pub(crate) neg_hi: u8,
    /// Negation of the lower operands of packed operations.
    pub(crate) neg_lo: u8,
    /// Exchange between lanes.
    pub(crate) dpp: Option<Dpp>,
    /// How it is encoded.
    pub(crate) encoding: Encoding,
    /// Its length in bytes.
    pub(crate) size: u8,
}
