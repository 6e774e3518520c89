//! An instruction as an assembler would write it: for faults, traces, and the comparison with LLVM's
//! disassembler.

use std::fmt::Write;

use super::operand::{EXEC, LITERAL, LITERAL_CODE, M0, NULL, SCC, V0, VCC, VGPRS};
use super::{Encoding, Inst, Kind, Src};

/// The name of scalar register `n`, and whether pairs of it have a name without numbers.
fn special(n: u16) -> Option<&'static str> {
    Some(match n {
        VCC => "vcc",
        NULL => "null",
        M0 => "m0",
        EXEC => "exec",
        SCC => "src_scc",
        _ => return None,
    })
}

fn range(letter: &str, first: u16, words: u8) -> String {
    match words {
        0 | 1 => format!("{letter}{first}"),
        n => format!("{letter}[{first}:{}]", first + u16::from(n) - 1),
    }
}

/// A scalar register or constant by the index of its place.
fn scalar(index: u16, words: u8, kind: Kind, literal: u64) -> String {
    match index {
        // Where writes to null go.
        642 => return "null".into(),
        LITERAL | LITERAL_CODE if kind == Kind::Q => return format!("{:#x}", literal >> 32),
        LITERAL | LITERAL_CODE if kind.half() => return format!("{:#x}", literal as u16),
        LITERAL | LITERAL_CODE => return format!("{:#x}", literal as u32),
        107 => return "vcc_hi".into(),
        127 => return "exec_hi".into(),
        _ => {}
    }
    if let Some(name) = special(index) {
        return match (name, words) {
            ("vcc" | "exec", 0 | 1) => format!("{name}_lo"),
            _ => name.into(),
        };
    }
    // Constants of other widths lie elsewhere.
    let code = match index {
        256..=511 => 128 + (index - 256) / 2,
        512..=639 => index - 512 + 128,
        _ => index,
    };
    match code {
        0..=105 => range("s", code, words),
        108..=123 => range("ttmp", code - 108, words),
        128..=192 => (code - 128).to_string(),
        193..=208 => format!("-{}", code - 192),
        235 => "src_shared_base".into(),
        236 => "src_shared_limit".into(),
        237 => "src_private_base".into(),
        238 => "src_private_limit".into(),
        240..=248 => [
            "0.5",
            "-0.5",
            "1.0",
            "-1.0",
            "2.0",
            "-2.0",
            "4.0",
            "-4.0",
            "0.15915494",
        ][usize::from(code - 240)]
        .into(),
        _ => format!("?{code}"),
    }
}

struct Writer<'a> {
    inst: &'a Inst,
    lanes: u16,
    out: String,
    first: bool,
}

impl Writer<'_> {
    fn operand(&mut self, text: &str) {
        self.out.push_str(if self.first { " " } else { ", " });
        self.first = false;
        self.out.push_str(text);
    }

    fn place(&self, index: u16, kind: Kind, shift: u8) -> String {
        let words = kind.words(self.lanes == 64);
        if index < V0 {
            let mut text = scalar(index, words, kind, self.inst.literal);
            if shift == 16 {
                text.push_str(".h");
            }
            return text;
        }
        let number = (index - V0) / self.lanes;
        let number = if number == VGPRS {
            (self.inst.imm as u16 - V0) / self.lanes
        } else {
            number
        };
        let mut text = range("v", number, words);
        if kind.half() {
            text.push_str(if shift == 16 { ".h" } else { ".l" });
        }
        text
    }

    fn source(&self, src: &Src, kind: Kind) -> String {
        let text = self.place(src.base, kind, src.shift);
        let text = match src.and {
            u32::MAX => text,
            _ => format!("|{text}|"),
        };
        if src.xor == 0 {
            text
        } else {
            format!("-{text}")
        }
    }

    fn memory(&mut self) {
        let inst = self.inst;
        let form = &inst.entry.form;
        let atomic = inst.entry.name.starts_with("atomic");
        if form.dst != Kind::None && (!atomic || inst.glc) {
            let dst = self.place(inst.dst.base, form.dst, 0);
            self.operand(&dst);
        }
        let wide = matches!(inst.encoding, Encoding::Flat)
            || (inst.encoding == Encoding::Global && inst.base.is_none());
        let address = match (inst.vaddr, wide) {
            (false, _) => "off".into(),
            (true, wide) => self.place(inst.src[0].base, if wide { Kind::D } else { Kind::W }, 0),
        };
        self.operand(&address);
        for n in 1..3 {
            if form.src[n] != Kind::None {
                let data = self.place(inst.src[n].base, form.src[n], 0);
                self.operand(&data);
            }
        }
        match (inst.encoding, inst.base) {
            (Encoding::Global, Some(base)) => {
                let base = scalar(base, 2, Kind::D, 0);
                self.operand(&base);
            }
            (Encoding::Scratch, Some(base)) => {
                let base = scalar(base, 1, Kind::W, 0);
                self.operand(&base);
            }
            (Encoding::Global | Encoding::Scratch, None) => self.operand("off"),
            _ => {}
        }
        if inst.imm != 0 {
            let two = inst.encoding == Encoding::Ds && inst.entry.name.contains("2addr");
            let _ = if two {
                let (low, high) = (inst.imm & 255, inst.imm >> 8 & 255);
                write!(self.out, " offset0:{low} offset1:{high}")
            } else {
                write!(self.out, " offset:{}", inst.imm)
            };
        }
    }

    fn scalar_memory(&mut self) {
        let inst = self.inst;
        if inst.entry.form.dst == Kind::None {
            return;
        }
        let dst = self.place(inst.dst.base, inst.entry.form.dst, 0);
        self.operand(&dst);
        let base = self.place(inst.src[0].base, Kind::D, 0);
        self.operand(&base);
        let offset = match inst.base {
            Some(offset) => scalar(offset, 1, Kind::W, 0),
            None if inst.imm == 0 => "null".into(),
            None => format!("{:#x}", inst.imm),
        };
        self.operand(&offset);
        if inst.base.is_some() && inst.imm != 0 {
            let _ = write!(self.out, " offset:{:#x}", inst.imm);
        }
    }

    /// Registers and constants of anything else, results first.
    fn plain(&mut self) {
        let inst = self.inst;
        let form = &inst.entry.form;
        if form.dst == Kind::M {
            // A comparison that sets EXEC does not name it.
            if inst.sdst != EXEC {
                let dst = self.place(inst.sdst, Kind::M, 0);
                self.operand(&dst);
            }
        } else if form.dst != Kind::None {
            let dst = self.place(inst.dst.base, form.dst, inst.dst.shift);
            self.operand(&dst);
        }
        if form.carry {
            let dst = self.place(inst.sdst, Kind::M, 0);
            self.operand(&dst);
        }
        for (src, kind) in inst.src.iter().zip(form.src) {
            match kind {
                Kind::None | Kind::Tied => {}
                // Always VCC there, and not written.
                Kind::M if inst.encoding == Encoding::Vopd => {}
                Kind::Lit => {
                    let text = format!("{:#x}", inst.literal as u32);
                    self.operand(&text);
                }
                kind => {
                    let text = self.source(src, kind);
                    self.operand(&text);
                }
            }
        }
        let constant = match inst.encoding {
            Encoding::Sopp => !matches!(
                inst.entry.name,
                "s_endpgm" | "s_barrier" | "s_code_end" | "s_icache_inv" | "s_wait_idle"
            ),
            Encoding::Sopk => true,
            _ => false,
        };
        if constant {
            let text = format!("{:#x}", inst.imm as u16);
            self.operand(&text);
        }
    }
}

/// Writes `inst`, for waves of `lanes`.
pub(crate) fn text(inst: &Inst, lanes: u16) -> String {
    let mut writer = Writer {
        inst,
        lanes,
        out: String::new(),
        first: true,
    };
    match inst.encoding {
        Encoding::Flat => writer.out.push_str("flat_"),
        Encoding::Global => writer.out.push_str("global_"),
        Encoding::Scratch => writer.out.push_str("scratch_"),
        _ => {}
    }
    writer.out.push_str(inst.entry.name);
    match inst.encoding {
        Encoding::Flat | Encoding::Global | Encoding::Scratch | Encoding::Ds => writer.memory(),
        Encoding::Smem => writer.scalar_memory(),
        Encoding::Mubuf => {}
        _ => writer.plain(),
    }
    if inst.clamp {
        writer.out.push_str(" clamp");
    }
    let mut out = writer.out;
    if let Some(other) = &inst.other {
        out.push_str(" :: ");
        let literal = inst.literal;
        let mut writer = Writer {
            inst: other,
            lanes,
            out,
            first: true,
        };
        writer.out.push_str(other.entry.name);
        writer.plain();
        out = writer.out.replace("0x0", &format!("{literal:#x}"));
    }
    out
}
