//! From the bytes of a program to an [`Inst`].
//!
//! The fields of each encoding are taken apart here, those of vector operations in
//! [`vector`](super::vector); which operation a number means is the tables' business
//! ([`crate::ops::lookup`]).

use super::operand::{self, Dst, LITERAL_CODE, NULL, Src, VGPRS};
use super::vector;
use super::{Encoding, Entry, Form, Inst, Kind};
use crate::ops;

/// The bytes that an instruction may take, as words; those past the end of the program are `None`.
pub(super) struct Words<'a> {
    code: &'a [u32],
    next: usize,
    /// Lanes of a wave.
    pub(super) lanes: u16,
}

impl Words<'_> {
    /// The next word.
    pub(super) fn take(&mut self) -> Option<u32> {
        let word = self.code.get(self.next).copied();
        self.next += 1;
        word
    }

    /// Bytes taken.
    pub(super) fn size(&self) -> u8 {
        (self.next * 4) as u8
    }

    /// Whether waves have 64 lanes.
    pub(super) fn wave64(&self) -> bool {
        self.lanes == 64
    }
}

/// Bits `low..low + count` of a word.
pub(super) fn bits(word: u32, low: u32, count: u32) -> u16 {
    ((word >> low) & ((1 << count) - 1)) as u16
}

/// Decodes the instruction at the start of `code` for waves of `lanes`; `None` if it is none that the
/// tables know.
pub(crate) fn decode(code: &[u32], lanes: u16) -> Option<Inst> {
    let mut words = Words {
        code,
        next: 0,
        lanes,
    };
    let word = words.take()?;
    match word >> 26 {
        0x00..=0x1f => vector::short(word, &mut words),
        0x20..=0x2f => salu(word, &mut words),
        0x32 => vector::dual(word, &mut words),
        0x33 if word >> 24 == 0xcc => vector::packed(word, &mut words),
        0x35 => vector::long(word, &mut words),
        0x36 => ds(word, &mut words),
        0x37 => flat(word, &mut words),
        0x38 => mubuf(word, &mut words),
        0x3d => smem(word, &mut words),
        _ => None,
    }
}

/// An instruction without operands.
pub(super) fn plain(entry: &'static Entry, encoding: Encoding) -> Inst {
    Inst {
        exec: entry.exec,
        entry,
        other: None,
        dst: Dst::default(),
        sdst: operand::scalar_dst(NULL).base,
        src: [Src::default(); 3],
        base: None,
        vaddr: true,
        literal: 0,
        imm: 0,
        clamp: false,
        omod: 0,
        glc: false,
        op_sel: 0,
        op_sel_hi: 0,
        neg_hi: 0,
        neg_lo: 0,
        dpp: None,
        encoding,
        size: 0,
    }
}

/// A scalar source of `kind`.
fn scalar_source(code: u16, kind: Kind, wave64: bool) -> Option<Src> {
    let fits = code >= 128 || code + u16::from(kind.words(wave64)) <= 128;
    (operand::is_source(code) && code < 256 && fits).then(|| operand::scalar(code, kind))
}

/// A scalar destination of `kind`.
pub(super) fn scalar_destination(code: u16, kind: Kind, wave64: bool) -> Option<Dst> {
    let fits = code == NULL || code + u16::from(kind.words(wave64)) <= 128;
    (code < 128 && fits).then(|| operand::scalar_dst(code))
}

/// A range of vector registers.
pub(super) fn vectors(number: u16, words: u8, lanes: u16) -> Option<Src> {
    (number + u16::from(words) <= VGPRS).then(|| operand::vector(number, lanes))
}

/// Takes the literal, if one of the sources is one.
pub(super) fn take_literal(
    inst: &mut Inst,
    codes: [u16; 3],
    form: &Form,
    words: &mut Words<'_>,
) -> Option<()> {
    let user = (0..3).find(|&i| form.src[i] == Kind::Lit || codes[i] == LITERAL_CODE);
    if let Some(user) = user {
        inst.literal = operand::literal(form.src[user], words.take()?);
    }
    Some(())
}

fn salu(word: u32, words: &mut Words<'_>) -> Option<Inst> {
    let (encoding, op) = match word >> 23 {
        0x17d => (Encoding::Sop1, bits(word, 8, 8)),
        0x17e => (Encoding::Sopc, bits(word, 16, 7)),
        0x17f => (Encoding::Sopp, bits(word, 16, 7)),
        _ if word >> 28 == 0xb => (Encoding::Sopk, bits(word, 23, 5)),
        _ => (Encoding::Sop2, bits(word, 23, 7)),
    };
    let entry = ops::lookup(encoding, op)?;
    let mut inst = plain(entry, encoding);
    inst.imm = i32::from(word as u16 as i16);
    if entry.form.dst != Kind::None {
        inst.dst = scalar_destination(bits(word, 16, 7), entry.form.dst, words.wave64())?;
    }
    let mut codes = [NULL; 3];
    match encoding {
        // A register in the place of the result is compared, or names the counter.
        Encoding::Sopk if entry.form.dst == Kind::None => codes[0] = bits(word, 16, 7),
        Encoding::Sopk => codes[0] = bits(word, 16, 7),
        Encoding::Sopp => {}
        _ => codes[..2].copy_from_slice(&[bits(word, 0, 8), bits(word, 8, 8)]),
    }
    for i in 0..3 {
        let kind = entry.form.src[i];
        if !matches!(kind, Kind::None | Kind::Lit) {
            inst.src[i] = scalar_source(codes[i], kind, words.wave64())?;
        } else if kind == Kind::None {
            codes[i] = NULL;
        }
    }
    // A message number lies where the first source would.
    if entry.name.starts_with("s_sendmsg_rtn") {
        inst.imm = i32::from(bits(word, 0, 8));
    }
    take_literal(&mut inst, codes, &entry.form, words)?;
    inst.size = words.size();
    Some(inst)
}

fn smem(word: u32, words: &mut Words<'_>) -> Option<Inst> {
    let entry = ops::lookup(Encoding::Smem, bits(word, 18, 8))?;
    let high = words.take()?;
    let mut inst = plain(entry, Encoding::Smem);
    if entry.form.dst != Kind::None {
        inst.dst = scalar_destination(bits(word, 6, 7), entry.form.dst, words.wave64())?;
    }
    let base = bits(word, 0, 6) * 2;
    inst.src[0] = scalar_source(base, Kind::D, false)?;
    inst.imm = ((high & 0x1f_ffff) << 11) as i32 >> 11;
    let offset = bits(high, 25, 7);
    inst.base = (offset != NULL).then_some(offset);
    inst.glc = bits(word, 14, 1) == 1;
    inst.size = words.size();
    Some(inst)
}

fn ds(word: u32, words: &mut Words<'_>) -> Option<Inst> {
    let entry = ops::lookup(Encoding::Ds, bits(word, 18, 8))?;
    let high = words.take()?;
    let global = bits(word, 17, 1) == 1;
    if global {
        return None;
    }
    let mut inst = plain(entry, Encoding::Ds);
    inst.imm = i32::from(bits(word, 0, 16));
    let lanes = words.lanes;
    let fields = [bits(high, 0, 8), bits(high, 8, 8), bits(high, 16, 8)];
    for (i, field) in fields.into_iter().enumerate() {
        inst.src[i] = vectors(field, entry.form.src[i].words(false), lanes)?;
    }
    let dst = bits(high, 24, 8);
    vectors(dst, entry.form.dst.words(false), lanes)?;
    inst.dst = operand::vector_dst(dst, lanes);
    inst.size = words.size();
    Some(inst)
}

fn flat(word: u32, words: &mut Words<'_>) -> Option<Inst> {
    let encoding = match bits(word, 16, 2) {
        0 => Encoding::Flat,
        1 => Encoding::Scratch,
        2 => Encoding::Global,
        _ => return None,
    };
    let entry = ops::lookup(encoding, bits(word, 18, 7))?;
    let high = words.take()?;
    let mut inst = plain(entry, encoding);
    inst.imm = ((word & 0x1fff) << 19) as i32 >> 19;
    inst.glc = bits(word, 14, 1) == 1;
    let saddr = bits(high, 16, 7);
    let lanes = words.lanes;
    let address_words = match encoding {
        Encoding::Flat => 2,
        Encoding::Global if saddr == NULL => 2,
        _ => 1,
    };
    if encoding != Encoding::Flat && saddr != NULL {
        let kind = if encoding == Encoding::Global {
            Kind::D
        } else {
            Kind::W
        };
        inst.base = Some(scalar_source(saddr, kind, false)?.base);
    }
    inst.vaddr = encoding != Encoding::Scratch || bits(high, 23, 1) == 1;
    inst.src[0] = vectors(bits(high, 0, 8), address_words, lanes)?;
    inst.src[1] = vectors(bits(high, 8, 8), entry.form.src[1].words(false), lanes)?;
    let dst = bits(high, 24, 8);
    vectors(dst, entry.form.dst.words(false), lanes)?;
    inst.dst = operand::vector_dst(dst, lanes);
    inst.size = words.size();
    Some(inst)
}

fn mubuf(word: u32, words: &mut Words<'_>) -> Option<Inst> {
    let entry = ops::lookup(Encoding::Mubuf, bits(word, 18, 8))?;
    words.take()?;
    let mut inst = plain(entry, Encoding::Mubuf);
    inst.size = words.size();
    Some(inst)
}
