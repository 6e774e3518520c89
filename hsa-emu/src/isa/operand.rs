//! The register file, and operands as places in it.
//!
//! Scalar registers, inline constants in each width, the literal and the vector registers all lie in
//! one array, so that reading any operand is one index: `base + (lane & mask)`, where the mask is zero
//! for what all lanes share. Up to 255 the index is the 8-bit operand code itself.

use super::Kind;

/// VCC.
pub(crate) const VCC: u16 = 106;
/// Reads as zero, takes writes.
pub(crate) const NULL: u16 = 124;
/// M0.
pub(crate) const M0: u16 = 125;
/// The lanes that run.
pub(crate) const EXEC: u16 = 126;
/// The scalar condition.
pub(crate) const SCC: u16 = 253;
/// The code of a literal.
pub(crate) const LITERAL_CODE: u16 = 255;
/// Constants of 64 bits, two words for each code from 128.
const WIDE: u16 = 256;
/// Constants of 16 bits, one word for each code from 128.
const HALF: u16 = 512;
/// The literal of the instruction that runs.
pub(crate) const LITERAL: u16 = 640;
/// Where writes to [`NULL`] go.
const SINK: u16 = 642;
/// The first vector register.
pub(crate) const V0: u16 = 672;
/// Vector registers of a wave; one more holds what DPP gathered.
pub(crate) const VGPRS: u16 = 256;

/// The upper half of addresses in the local data share.
pub(crate) const SHARED_APERTURE: u32 = 0x0001_0000;
/// The upper half of addresses in private memory.
pub(crate) const PRIVATE_APERTURE: u32 = 0x0002_0000;

/// A source operand.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Src {
    /// Index of its (lowest) word for lane 0.
    pub(crate) base: u16,
    /// From one word to the next.
    pub(crate) step: u16,
    /// All ones if each lane has its own.
    pub(crate) lanes: u16,
    /// Where the half begins.
    pub(crate) shift: u8,
    /// Applied first, to the word with the sign: clears it for `|x|`.
    pub(crate) and: u32,
    /// Applied then: flips it for `-x`.
    pub(crate) xor: u32,
}

/// A destination.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Dst {
    /// Index of its (lowest) word for lane 0.
    pub(crate) base: u16,
    /// From one word to the next.
    pub(crate) step: u16,
    /// Where the half begins.
    pub(crate) shift: u8,
}

/// A vector register.
pub(crate) fn vector(number: u16, lanes: u16) -> Src {
    Src {
        base: V0 + number * lanes,
        step: lanes,
        lanes: u16::MAX,
        shift: 0,
        and: u32::MAX,
        xor: 0,
    }
}

/// A scalar operand by its 8-bit code.
pub(crate) fn scalar(code: u16, kind: Kind) -> Src {
    let constant = code >= 128 && code != SCC;
    let base = match kind {
        _ if code == LITERAL_CODE => LITERAL,
        Kind::D | Kind::I | Kind::Q | Kind::N(_) if constant => WIDE + (code - 128) * 2,
        Kind::H | Kind::F | Kind::P if constant => HALF + (code - 128),
        _ => code,
    };
    Src {
        base,
        step: 1,
        lanes: 0,
        shift: 0,
        and: u32::MAX,
        xor: 0,
    }
}

/// A scalar destination by its 7-bit code.
pub(crate) fn scalar_dst(code: u16) -> Dst {
    Dst {
        base: if code == NULL { SINK } else { code },
        step: 1,
        shift: 0,
    }
}

/// A vector destination.
pub(crate) fn vector_dst(number: u16, lanes: u16) -> Dst {
    Dst {
        base: V0 + number * lanes,
        step: lanes,
        shift: 0,
    }
}

/// What a literal means to an operand.
pub(crate) fn literal(kind: Kind, value: u32) -> u64 {
    match kind {
        Kind::Q => u64::from(value) << 32,
        Kind::I => value as i32 as i64 as u64,
        _ => value.into(),
    }
}

/// Whether an 8-bit code is an operand that can be read.
pub(crate) fn is_source(code: u16) -> bool {
    matches!(
        code,
        0..=208 | 235..=238 | 240..=248 | SCC | LITERAL_CODE | 256..=511
    )
}

/// A register file with its constants, for waves of `lanes`.
pub(crate) fn register_file(lanes: usize) -> Box<[u32]> {
    let mut file = vec![0u32; usize::from(V0) + (usize::from(VGPRS) + 1) * lanes];
    let mut set = |code: usize, word: u32, wide: u64, half: u32| {
        file[code] = word;
        file[usize::from(WIDE) + (code - 128) * 2] = wide as u32;
        file[usize::from(WIDE) + (code - 128) * 2 + 1] = (wide >> 32) as u32;
        file[usize::from(HALF) + (code - 128)] = half;
    };
    for n in 0..=64u32 {
        set(128 + n as usize, n, n.into(), n);
    }
    for n in 1..=16i32 {
        let word = (-n) as u32;
        set(192 + n as usize, word, i64::from(-n) as u64, word & 0xffff);
    }
    let apertures = [SHARED_APERTURE, PRIVATE_APERTURE];
    for (i, high) in apertures.into_iter().enumerate() {
        let base = u64::from(high) << 32;
        set(235 + 2 * i, 0, base, 0);
        set(236 + 2 * i, u32::MAX, base | 0xffff_ffff, 0xffff);
    }
    let floats = [
        (0.5f64, 0x3800),
        (-0.5, 0xb800),
        (1.0, 0x3c00),
        (-1.0, 0xbc00),
        (2.0, 0x4000),
        (-2.0, 0xc000),
        (4.0, 0x4400),
        (-4.0, 0xc400),
    ];
    for (i, (value, half)) in floats.into_iter().enumerate() {
        set(240 + i, (value as f32).to_bits(), value.to_bits(), half);
    }
    // 1 / (2 pi), as the hardware has it.
    set(248, 0x3e22_f983, 0x3fc4_5f30_6dc9_c882, 0x3118);
    file.into_boxed_slice()
}
