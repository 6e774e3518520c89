//! The encodings of vector operations.

use super::decode::{Words, bits, plain, scalar_destination, take_literal, vectors};
use super::operand::{self, LITERAL_CODE, NULL, Src, VCC, VGPRS};
use super::{Dpp, DppControl, Encoding, Inst, Kind};
use crate::ops;

/// Source codes that announce a DPP word.
const DPP16: u16 = 250;
const DPP8: [u16; 2] = [233, 234];
/// The bit of an 8-bit register number that chooses the upper half, in encodings without selection.
const HIGH_HALF: u16 = 0x80;

/// What an encoding without selection bits says about a 16-bit operand.
fn split_half(code: u16, kind: Kind) -> (u16, u8) {
    if kind.half() && code & HIGH_HALF != 0 {
        (code & !HIGH_HALF, 16)
    } else {
        (code, 0)
    }
}

/// A source by its 9-bit code.
fn source(code: u16, kind: Kind, words: &Words<'_>) -> Option<Src> {
    let count = kind.words(words.wave64());
    if code >= 256 {
        return vectors(code - 256, count, words.lanes);
    }
    let fits = code >= 128 || code + u16::from(count) <= 128;
    (operand::is_source(code) && fits).then(|| operand::scalar(code, kind))
}

/// A destination by its register number.
fn destination(inst: &mut Inst, number: u16, words: &Words<'_>) -> Option<()> {
    let form = &inst.entry.form;
    if form.scalar {
        inst.dst = scalar_destination(number, form.dst, words.wave64())?;
    } else if form.dst == Kind::M {
        inst.sdst = scalar_destination(number, Kind::M, words.wave64())?.base;
    } else {
        vectors(number, form.dst.words(words.wave64()), words.lanes)?;
        inst.dst = operand::vector_dst(number, words.lanes);
    }
    Some(())
}

/// Fills in sources; codes of operands that the operation does not have are passed over.
fn sources(inst: &mut Inst, codes: [u16; 3], words: &Words<'_>) -> Option<()> {
    for i in 0..3 {
        inst.src[i] = match inst.entry.form.src[i] {
            Kind::None => continue,
            Kind::Lit => operand::scalar(LITERAL_CODE, Kind::W),
            Kind::Tied => Src {
                base: inst.dst.base,
                step: inst.dst.step,
                lanes: u16::MAX,
                shift: inst.dst.shift,
                and: u32::MAX,
                xor: 0,
            },
            kind => source(codes[i], kind, words)?,
        };
    }
    Some(())
}

/// Reads the word behind an instruction whose first source is exchanged between lanes, and gives
/// that source's code.
fn dpp(inst: &mut Inst, code: u16, words: &mut Words<'_>) -> Option<(u16, u8)> {
    let word = words.take()?;
    let register = bits(word, 0, 8);
    if code == DPP16 {
        inst.dpp = Some(Dpp {
            control: DppControl::Row(bits(word, 8, 9)),
            row_mask: bits(word, 28, 4) as u8,
            bank_mask: bits(word, 24, 4) as u8,
            bound: bits(word, 19, 1) == 1,
            inactive: bits(word, 18, 1) == 1,
        });
        Some((256 + register, bits(word, 20, 4) as u8))
    } else {
        inst.dpp = Some(Dpp {
            control: DppControl::Eight(word >> 8),
            row_mask: 15,
            bank_mask: 15,
            bound: true,
            inactive: code == DPP8[1],
        });
        Some((256 + register, 0))
    }
}

fn is_dpp(code: u16) -> bool {
    code == DPP16 || DPP8.contains(&code)
}

/// Lets the first source be gathered from other lanes before the operation runs.
fn gather(inst: &mut Inst, words: &Words<'_>) {
    if inst.dpp.is_some() {
        inst.imm = i32::from(inst.src[0].base);
        inst.src[0].base = operand::vector(VGPRS, words.lanes).base;
        inst.exec = ops::dpp_exec;
    }
}

/// Applies `|x|` and `-x` to source `i`.
fn modify(inst: &mut Inst, i: usize, absolute: bool, negate: bool) {
    let sign = if inst.entry.form.src[i].half() {
        0x8000
    } else {
        0x8000_0000
    };
    let src = &mut inst.src[i];
    if absolute {
        src.and &= !sign;
    }
    if negate {
        src.xor ^= sign;
    }
}

/// VOP1, VOP2 and VOPC in 32 bits.
pub(super) fn short(word: u32, words: &mut Words<'_>) -> Option<Inst> {
    let (encoding, op) = match word >> 25 {
        0x3f => (Encoding::Vop1, bits(word, 9, 8)),
        0x3e => (Encoding::Vopc, bits(word, 17, 8)),
        _ => (Encoding::Vop2, bits(word, 25, 6)),
    };
    let entry = ops::lookup(encoding, op)?;
    let form = &entry.form;
    let mut inst = plain(entry, encoding);
    let mut codes = [bits(word, 0, 9), 256 + bits(word, 9, 8), VCC];
    if encoding == Encoding::Vop1 {
        codes[1] = NULL;
    }
    let mut number = bits(word, 17, 8);
    match encoding {
        Encoding::Vopc => number = ops::compare_destination(op),
        _ if !form.scalar => (number, inst.dst.shift) = split_half(number, form.dst),
        _ => {}
    }
    let shift = inst.dst.shift;
    destination(&mut inst, number, words)?;
    inst.dst.shift = shift;
    if form.carry {
        inst.sdst = VCC;
    }
    let mut dpp_modifiers = 0;
    if is_dpp(codes[0]) {
        (codes[0], dpp_modifiers) = dpp(&mut inst, codes[0], words)?;
    }
    // fmamk has its literal in the middle, and the other operand behind.
    if form.src[1] == Kind::Lit {
        codes[2] = codes[1];
        codes[1] = NULL;
    }
    let mut shifts = [0; 3];
    for i in 0..3 {
        if codes[i] >= 256 {
            let (code, shift) = split_half(codes[i] - 256, form.src[i]);
            codes[i] = code + 256;
            shifts[i] = shift;
        }
    }
    sources(&mut inst, codes, words)?;
    for i in 0..3 {
        if form.src[i] != Kind::Tied {
            inst.src[i].shift = shifts[i];
        }
        let two = dpp_modifiers >> (2 * i);
        modify(&mut inst, i, two & 2 != 0, two & 1 != 0);
    }
    take_literal(&mut inst, codes, form, words)?;
    gather(&mut inst, words);
    inst.size = words.size();
    Some(inst)
}

/// VOP3.
pub(super) fn long(word: u32, words: &mut Words<'_>) -> Option<Inst> {
    let op = bits(word, 16, 10);
    let (encoding, number) = match op {
        0..=0xff => (Encoding::Vopc, op),
        0x100..=0x13f => (Encoding::Vop2, op - 0x100),
        0x180..=0x1ff => (Encoding::Vop1, op - 0x180),
        _ => (Encoding::Vop3, op),
    };
    let entry = ops::lookup(encoding, number)?;
    let form = &entry.form;
    let high = words.take()?;
    let mut inst = plain(entry, Encoding::Vop3);
    destination(&mut inst, bits(word, 0, 8), words)?;
    inst.clamp = bits(word, 15, 1) == 1;
    inst.omod = bits(high, 27, 2) as u8;
    let mut codes = [bits(high, 0, 9), bits(high, 9, 9), bits(high, 18, 9)];
    let mut absolute = bits(word, 8, 3);
    if form.carry {
        // The result's bits have the place of the other modifiers.
        inst.sdst = scalar_destination(bits(word, 8, 7), Kind::M, words.wave64())?.base;
        absolute = 0;
    } else {
        inst.op_sel = bits(word, 11, 4) as u8;
    }
    let negate = bits(high, 29, 3);
    if form.dst.half() && inst.op_sel & 8 != 0 {
        inst.dst.shift = 16;
    }
    let mut dpp_modifiers = 0;
    if is_dpp(codes[0]) {
        (codes[0], dpp_modifiers) = dpp(&mut inst, codes[0], words)?;
    }
    sources(&mut inst, codes, words)?;
    for i in 0..3 {
        let kind = form.src[i];
        let constant = codes[i] >= 128 && codes[i] < 256;
        if kind.half() && !constant && inst.op_sel >> i & 1 == 1 {
            inst.src[i].shift = 16;
        }
        let two = dpp_modifiers >> (2 * i);
        let (abs, neg) = (absolute >> i & 1 != 0, negate >> i & 1 != 0);
        modify(&mut inst, i, abs || two & 2 != 0, neg ^ (two & 1 != 0));
        if kind == Kind::None {
            codes[i] = NULL;
        }
    }
    take_literal(&mut inst, codes, form, words)?;
    gather(&mut inst, words);
    inst.size = words.size();
    Some(inst)
}

/// VOP3P.
pub(super) fn packed(word: u32, words: &mut Words<'_>) -> Option<Inst> {
    let entry = ops::lookup(Encoding::Vop3p, bits(word, 16, 7))?;
    let high = words.take()?;
    let mut inst = plain(entry, Encoding::Vop3p);
    destination(&mut inst, bits(word, 0, 8), words)?;
    inst.clamp = bits(word, 15, 1) == 1;
    inst.op_sel = bits(word, 11, 3) as u8;
    inst.op_sel_hi = (bits(high, 27, 2) | bits(word, 14, 1) << 2) as u8;
    inst.neg_lo = bits(high, 29, 3) as u8;
    inst.neg_hi = bits(word, 8, 3) as u8;
    let mut codes = [bits(high, 0, 9), bits(high, 9, 9), bits(high, 18, 9)];
    if codes.iter().any(|&code| is_dpp(code)) {
        return None;
    }
    sources(&mut inst, codes, words)?;
    for (code, kind) in codes.iter_mut().zip(entry.form.src) {
        if kind == Kind::None {
            *code = NULL;
        }
    }
    take_literal(&mut inst, codes, &entry.form, words)?;
    inst.size = words.size();
    Some(inst)
}

/// VOPD: two operations whose results lie in registers of different parity.
pub(super) fn dual(word: u32, words: &mut Words<'_>) -> Option<Inst> {
    if words.wave64() {
        return None;
    }
    let high = words.take()?;
    let dst_x = bits(high, 24, 8);
    let dst_y = bits(high, 17, 7) << 1 | (!dst_x & 1);
    let halves = [
        (bits(word, 22, 4), dst_x, bits(word, 0, 9), bits(word, 9, 8)),
        (bits(word, 17, 5), dst_y, bits(high, 0, 9), bits(high, 9, 8)),
    ];
    let mut made = Vec::with_capacity(2);
    let mut literal = None;
    for (op, dst, first, second) in halves {
        let entry = ops::lookup(Encoding::Vopd, op)?;
        let mut inst = plain(entry, Encoding::Vopd);
        destination(&mut inst, dst, words)?;
        let mut codes = [first, 256 + second, VCC];
        if entry.form.src[1] == Kind::Lit {
            codes[2] = codes[1];
            codes[1] = NULL;
        }
        if is_dpp(codes[0]) {
            return None;
        }
        sources(&mut inst, codes, words)?;
        if entry.form.src.contains(&Kind::Lit) || codes[0] == LITERAL_CODE {
            // One literal serves both.
            if literal.is_none() {
                literal = Some(words.take()?);
            }
        }
        made.push(inst);
    }
    let second = made.pop()?;
    let mut first = made.pop()?;
    first.exec = ops::dual_exec;
    first.other = Some(Box::new(second));
    first.literal = literal.unwrap_or(0).into();
    first.size = words.size();
    Some(first)
}
