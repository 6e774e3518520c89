//! Single instructions against the host's arithmetic on special and random numbers. Their words are
//! those of LLVM's assembler, which is asked again where it is installed.

#![allow(
    clippy::pedantic,
    clippy::precedence,
    clippy::neg_cmp_op_on_partial_ord,
    reason = "a table of definitions"
)]

use std::io::Write;
use std::process::{Command, Stdio};

use crate::isa::operand::VCC;
use crate::memory::Space;
use crate::random::Random;
use crate::testing::{Bench, llvm, skipped};
use crate::wave::Pause;

/// What the registers hold: three numbers of 64 bits in v[0:1], v[2:3] and v[6:7], and their lower
/// halves.
struct Input {
    a: u64,
    b: u64,
    c: u64,
    x: u32,
    y: u32,
    z: u32,
}

/// An instruction, and what it leaves in v[4:5] and VCC.
struct Case {
    text: &'static str,
    words: &'static [u32],
    /// Bits of the result that are compared: 64, 32, or 16 for a half in a register of zeros.
    width: u32,
    result: fn(&Input) -> u64,
    carry: Option<fn(&Input) -> bool>,
}

macro_rules! case {
    ($text:literal, [$($word:literal),*], $width:literal, $result:expr, $carry:expr) => {
        Case {
            text: $text,
            words: &[$($word),*],
            width: $width,
            result: $result,
            carry: $carry,
        }
    };
}

/// The bytes that selectors pick out of two words.
fn permuted(x: u32, y: u32, selectors: u32) -> u64 {
    let all = u64::from(x) << 32 | u64::from(y);
    let byte = |selector: u32| match selector {
        0..=7 => all >> (selector * 8) & 255,
        8..=11 if all >> ((selector - 8) * 16 + 15) & 1 == 1 => 255,
        8..=12 => 0,
        _ => 255,
    };
    (0..4)
        .map(|n| byte(selectors >> (n * 8) & 255) << (n * 8))
        .sum()
}

/// The smaller of two floats by their bits: a number rather than a quiet NaN, a quieted signaling NaN
/// before all.
fn least(x: u32, y: u32) -> u32 {
    let (a, b) = (f32::from_bits(x), f32::from_bits(y));
    let signaling = |f: f32| f.is_nan() && f.to_bits() >> 22 & 1 == 0;
    match (a.is_nan(), b.is_nan()) {
        _ if signaling(a) => x | 1 << 22,
        _ if signaling(b) => y | 1 << 22,
        (true, _) => y,
        (_, true) => x,
        // Bits of floats are ordered but for the sign.
        _ => {
            let key = |bits: u32| {
                if bits >> 31 == 1 {
                    !bits
                } else {
                    bits | 1 << 31
                }
            };
            if key(x) <= key(y) { x } else { y }
        }
    }
}

/// A half as a float, by its definition.
fn half(bits: u16) -> f32 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f32::from(bits & 1023));
    let magnitude = match exponent {
        0 => fraction * 2f32.powi(-24),
        31 if fraction == 0.0 => f32::INFINITY,
        31 => f32::NAN,
        _ => (1024.0 + fraction) * 2f32.powi(exponent - 25),
    };
    if bits >> 15 == 1 {
        -magnitude
    } else {
        magnitude
    }
}

#[rustfmt::skip]
static CASES: &[Case] = &[
    case!("v_add_co_u32 v4, vcc_lo, v0, v2", [0xd7006a04, 0x00020500], 32, |i| i.x.wrapping_add(i.y).into(), Some(|i| i.x.checked_add(i.y).is_none())),
    case!("v_sub_co_u32 v4, vcc_lo, v0, v2", [0xd7016a04, 0x00020500], 32, |i| i.x.wrapping_sub(i.y).into(), Some(|i| i.x < i.y)),
    case!("v_subrev_co_u32 v4, vcc_lo, v0, v2", [0xd7026a04, 0x00020500], 32, |i| i.y.wrapping_sub(i.x).into(), Some(|i| i.y < i.x)),
    case!("v_mad_u64_u32 v[4:5], vcc_lo, v0, v2, v[6:7]", [0xd6fe6a04, 0x041a0500], 64, |i| (u64::from(i.x) * u64::from(i.y)).wrapping_add(i.c), Some(|i| (u64::from(i.x) * u64::from(i.y)).checked_add(i.c).is_none())),
    case!("v_mad_i64_i32 v[4:5], null, v0, v2, v[6:7]", [0xd6ff7c04, 0x041a0500], 64, |i| (i64::from(i.x as i32) * i64::from(i.y as i32)).wrapping_add(i.c as i64) as u64, None),
    case!("v_add_nc_u32_e64 v4, v0, v2 clamp", [0xd5258004, 0x00020500], 32, |i| i.x.saturating_add(i.y).into(), None),
    case!("v_sub_nc_i32 v4, v0, v2 clamp", [0xd7258004, 0x00020500], 32, |i| ((i.x as i32).saturating_sub(i.y as i32) as u32).into(), None),
    case!("v_mul_hi_u32 v4, v0, v2", [0xd72d0004, 0x00020500], 32, |i| (u64::from(i.x) * u64::from(i.y)) >> 32, None),
    case!("v_mul_hi_i32 v4, v0, v2", [0xd72e0004, 0x00020500], 32, |i| ((i64::from(i.x as i32) * i64::from(i.y as i32)) as u64) >> 32, None),
    case!("v_mul_u32_u24_e32 v4, v0, v2", [0x16080500], 32, |i| (i.a & 0xff_ffff) * (i.b & 0xff_ffff) & 0xffff_ffff, None),
    case!("v_mul_i32_i24_e32 v4, v0, v2", [0x12080500], 32, |i| ((((i.x << 8) as i32 >> 8) as i64 * ((i.y << 8) as i32 >> 8) as i64) as u32).into(), None),
    case!("v_mad_u32_u24 v4, v0, v2, v6", [0xd60b0004, 0x041a0500], 32, |i| ((i.a & 0xff_ffff) * (i.b & 0xff_ffff)).wrapping_add(i.c) & 0xffff_ffff, None),
    case!("v_lshlrev_b32_e32 v4, v0, v2", [0x30080500], 32, |i| (i.y << (i.x % 32)).into(), None),
    case!("v_lshrrev_b32_e32 v4, v0, v2", [0x32080500], 32, |i| (i.y >> (i.x % 32)).into(), None),
    case!("v_ashrrev_i32_e32 v4, v0, v2", [0x34080500], 32, |i| ((i.y as i32 >> (i.x % 32)) as u32).into(), None),
    case!("v_lshlrev_b64 v[4:5], v0, v[2:3]", [0xd73c0004, 0x00020500], 64, |i| i.b << (i.x % 64), None),
    case!("v_lshrrev_b64 v[4:5], v0, v[2:3]", [0xd73d0004, 0x00020500], 64, |i| i.b >> (i.x % 64), None),
    case!("v_ashrrev_i64 v[4:5], v0, v[2:3]", [0xd73e0004, 0x00020500], 64, |i| (i.b as i64 >> (i.x % 64)) as u64, None),
    case!("v_lshlrev_b16 v4.l, v0.l, v2.l", [0xd7380004, 0x00020500], 16, |i| u64::from((i.y as u16) << (i.x % 16)), None),
    case!("v_lshrrev_b16 v4.l, v0.h, v2.h", [0xd7391804, 0x00020500], 16, |i| u64::from(((i.y >> 16) as u16) >> (i.x >> 16) % 16), None),
    case!("v_ashrrev_i16 v4.l, v0.l, v2.h", [0xd73a1004, 0x00020500], 16, |i| u64::from(((i.y >> 16) as i16 >> (i.x % 16)) as u16), None),
    case!("v_alignbit_b32 v4, v0, v2, v6.l", [0xd6160004, 0x041a0500], 32, |i| ((u64::from(i.x) << 32 | u64::from(i.y)) >> (i.c % 32)) & 0xffff_ffff, None),
    case!("v_alignbyte_b32 v4, v0, v2, v6.l", [0xd6170004, 0x041a0500], 32, |i| ((u64::from(i.x) << 32 | u64::from(i.y)) >> (i.c % 4 * 8)) & 0xffff_ffff, None),
    case!("v_bfe_u32 v4, v0, v2, v6", [0xd6100004, 0x041a0500], 32, |i| if i.z % 32 == 0 { 0 } else { ((i.x >> (i.y % 32)) & (u32::MAX >> (32 - i.z % 32))).into() }, None),
    case!("v_bfe_i32 v4, v0, v2, v6", [0xd6110004, 0x041a0500], 32, |i| if i.z % 32 == 0 { 0 } else { let f = (i64::from(i.x as i32) >> (i.y % 32)) << (64 - i.z % 32) >> (64 - i.z % 32); (f as u32).into() }, None),
    case!("v_bfi_b32 v4, v0, v2, v6", [0xd6120004, 0x041a0500], 32, |i| (i.x & i.y | !i.x & i.z).into(), None),
    case!("v_bfm_b32 v4, v0, v2", [0xd71d0004, 0x00020500], 32, |i| (((1u64 << (i.x % 32)) - 1) << (i.y % 32)) & 0xffff_ffff, None),
    case!("v_perm_b32 v4, v0, v2, v6", [0xd6440004, 0x041a0500], 32, |i| permuted(i.x, i.y, i.z), None),
    case!("v_bcnt_u32_b32 v4, v0, v2", [0xd71e0004, 0x00020500], 32, |i| i.x.count_ones().wrapping_add(i.y).into(), None),
    case!("v_clz_i32_u32_e32 v4, v0", [0x7e087300], 32, |i| if i.x == 0 { 0xffff_ffff } else { i.x.leading_zeros().into() }, None),
    case!("v_ctz_i32_b32_e32 v4, v0", [0x7e087500], 32, |i| if i.x == 0 { 0xffff_ffff } else { i.x.trailing_zeros().into() }, None),
    case!("v_cls_i32_e32 v4, v0", [0x7e087700], 32, |i| if i.x == 0 || i.x == u32::MAX { 0xffff_ffff } else if i.x >> 31 == 1 { i.x.leading_ones().into() } else { i.x.leading_zeros().into() }, None),
    case!("v_bfrev_b32_e32 v4, v0", [0x7e087100], 32, |i| i.x.reverse_bits().into(), None),
    case!("v_sad_u8 v4, v0, v2, v6", [0xd6220004, 0x041a0500], 32, |i| (0..4).map(|n| u32::from(i.x.to_le_bytes()[n].abs_diff(i.y.to_le_bytes()[n]))).fold(i.z, u32::wrapping_add).into(), None),
    case!("v_lshl_add_u32 v4, v0, v2, v6", [0xd6460004, 0x041a0500], 32, |i| (i.x << (i.y % 32)).wrapping_add(i.z).into(), None),
    case!("v_add_lshl_u32 v4, v0, v2, v6", [0xd6470004, 0x041a0500], 32, |i| (i.x.wrapping_add(i.y) << (i.z % 32)).into(), None),
    case!("v_xad_u32 v4, v0, v2, v6", [0xd6450004, 0x041a0500], 32, |i| (i.x ^ i.y).wrapping_add(i.z).into(), None),
    case!("v_and_or_b32 v4, v0, v2, v6", [0xd6570004, 0x041a0500], 32, |i| (i.x & i.y | i.z).into(), None),
    case!("v_med3_i32 v4, v0, v2, v6", [0xd6200004, 0x041a0500], 32, |i| { let mut n = [i.x as i32, i.y as i32, i.z as i32]; n.sort_unstable(); (n[1] as u32).into() }, None),
    case!("v_med3_u32 v4, v0, v2, v6", [0xd6210004, 0x041a0500], 32, |i| { let mut n = [i.x, i.y, i.z]; n.sort_unstable(); n[1].into() }, None),
    case!("v_min3_u32 v4, v0, v2, v6", [0xd61b0004, 0x041a0500], 32, |i| i.x.min(i.y).min(i.z).into(), None),
    case!("v_max3_i32 v4, v0, v2, v6", [0xd61d0004, 0x041a0500], 32, |i| ((i.x as i32).max(i.y as i32).max(i.z as i32) as u32).into(), None),
    case!("v_mad_u16 v4.h, v0.l, v2.h, v6.l", [0xd6415004, 0x041a0500], 16, |i| u64::from((i.x as u16).wrapping_mul((i.y >> 16) as u16).wrapping_add(i.z as u16)) << 16, None),
    case!("v_mad_u32_u16 v4, v0.h, v2.l, v6", [0xd6590804, 0x041a0500], 32, |i| ((i.x >> 16) * (i.y & 0xffff)).wrapping_add(i.z).into(), None),
    case!("v_mul_lo_u16 v4.l, v0.h, v2.l", [0xd7050804, 0x00020500], 16, |i| u64::from(((i.x >> 16) as u16).wrapping_mul(i.y as u16)), None),
    case!("v_add_nc_i16 v4.l, v0.l, v2.l clamp", [0xd70d8004, 0x00020500], 16, |i| u64::from((i.x as i16).saturating_add(i.y as i16) as u16), None),
    case!("v_cvt_f32_u32_e32 v4, v0", [0x7e080d00], 32, |i| (i.x as f32).to_bits().into(), None),
    case!("v_cvt_f32_i32_e32 v4, v0", [0x7e080b00], 32, |i| (i.x as i32 as f32).to_bits().into(), None),
    case!("v_cvt_u32_f32_e32 v4, v0", [0x7e080f00], 32, |i| (f32::from_bits(i.x) as u32).into(), None),
    case!("v_cvt_i32_f32_e32 v4, v0", [0x7e081100], 32, |i| (f32::from_bits(i.x) as i32 as u32).into(), None),
    case!("v_cvt_i32_f64_e32 v4, v[0:1]", [0x7e080700], 32, |i| (f64::from_bits(i.a) as i32 as u32).into(), None),
    case!("v_cvt_u32_f64_e32 v4, v[0:1]", [0x7e082b00], 32, |i| (f64::from_bits(i.a) as u32).into(), None),
    case!("v_cvt_f32_ubyte2_e32 v4, v0", [0x7e082700], 32, |i| ((i.x >> 16 & 255) as f32).to_bits().into(), None),
    case!("v_cvt_f64_f32_e32 v[4:5], v0", [0x7e082100], 64, |i| f64::from(f32::from_bits(i.x)).to_bits(), None),
    case!("v_min_f32_e32 v4, v0, v2", [0x1e080500], 32, |i| least(i.x, i.y).into(), None),
    case!("v_max_f32_e32 v4, v0, v2", [0x20080500], 32, |i| (least(i.x ^ 1 << 31, i.y ^ 1 << 31) ^ 1 << 31).into(), None),
    case!("v_add_f32_e64 v4, -v0, |v2|", [0xd5030204, 0x20020500], 32, |i| (-f32::from_bits(i.x) + f32::from_bits(i.y).abs()).to_bits().into(), None),
    case!("v_mul_f32_e64 v4, v0, v2 mul:2", [0xd5080004, 0x08020500], 32, |i| (f32::from_bits(i.x) * f32::from_bits(i.y) * 2.0).to_bits().into(), None),
    case!("v_fma_f32 v4, v0, v2, -v6", [0xd6130004, 0x841a0500], 32, |i| f32::from_bits(i.x).mul_add(f32::from_bits(i.y), -f32::from_bits(i.z)).to_bits().into(), None),
    case!("v_fma_f64 v[4:5], v[0:1], v[2:3], v[6:7]", [0xd6140004, 0x041a0500], 64, |i| f64::from_bits(i.a).mul_add(f64::from_bits(i.b), f64::from_bits(i.c)).to_bits(), None),
    case!("v_sqrt_f64_e32 v[4:5], v[0:1]", [0x7e086900], 64, |i| f64::from_bits(i.a).sqrt().to_bits(), None),
    case!("v_trunc_f64_e32 v[4:5], v[0:1]", [0x7e082f00], 64, |i| f64::from_bits(i.a).trunc().to_bits(), None),
    case!("v_rndne_f32_e32 v4, v0", [0x7e084700], 32, |i| f32::from_bits(i.x).round_ties_even().to_bits().into(), None),
    case!("v_cmp_lt_i64_e32 vcc_lo, v[0:1], v[2:3]", [0x7ca20500], 0, |_| 0, Some(|i| (i.a as i64) < i.b as i64)),
    case!("v_cmp_ge_u64_e32 vcc_lo, v[0:1], v[2:3]", [0x7cbc0500], 0, |_| 0, Some(|i| i.a >= i.b)),
    case!("v_cmp_gt_u16_e32 vcc_lo, v0.h, v2.l", [0x7c780580], 0, |_| 0, Some(|i| (i.x >> 16) as u16 > i.y as u16)),
    case!("v_cmp_nlt_f32_e32 vcc_lo, v0, v2", [0x7c3c0500], 0, |_| 0, Some(|i| !(f32::from_bits(i.x) < f32::from_bits(i.y)))),
    case!("v_cmp_lg_f64_e32 vcc_lo, v[0:1], v[2:3]", [0x7c4a0500], 0, |_| 0, Some(|i| f64::from_bits(i.a) < f64::from_bits(i.b) || f64::from_bits(i.a) > f64::from_bits(i.b))),
    case!("v_cmp_u_f32_e32 vcc_lo, v0, v2", [0x7c300500], 0, |_| 0, Some(|i| f32::from_bits(i.x).is_nan() || f32::from_bits(i.y).is_nan())),
    case!("v_cmp_class_f32_e64 vcc_lo, v0, 0x204", [0xd47e006a, 0x0001ff00, 0x00000204], 0, |_| 0, Some(|i| f32::from_bits(i.x).is_infinite())),
    case!("v_pk_add_u16 v4, v0, v2", [0xcc0a4004, 0x18020500], 32, |i| u64::from((i.x as u16).wrapping_add(i.y as u16)) | u64::from(((i.x >> 16) as u16).wrapping_add((i.y >> 16) as u16)) << 16, None),
    case!("v_pk_mul_lo_u16 v4, v0, v2 op_sel_hi:[0,1]", [0xcc014004, 0x10020500], 32, |i| u64::from((i.x as u16).wrapping_mul(i.y as u16)) | u64::from((i.x as u16).wrapping_mul((i.y >> 16) as u16)) << 16, None),
    case!("v_dual_mov_b32 v5, v2 :: v_dual_add_nc_u32 v4, v0, v2", [0xca200102, 0x05040500], 64, |i| u64::from(i.x.wrapping_add(i.y)) | u64::from(i.y) << 32, None),
    case!("v_fmamk_f32 v4, v0, 0x40490fdb, v2", [0x58080500, 0x40490fdb], 32, |i| f32::from_bits(i.x).mul_add(std::f32::consts::PI, f32::from_bits(i.y)).to_bits().into(), None),
    case!("v_cndmask_b16 v4.l, v0.l, v2.h, vcc_lo", [0xd65d1004, 0x01aa0500], 16, |i| u64::from(i.x as u16), None),
    case!("v_not_b16_e32 v4.h, v0.l", [0x7f08d300], 16, |i| u64::from(!(i.x as u16)) << 16, None),
    case!("v_cvt_f32_f16_e32 v4, v0.h", [0x7e081780], 32, |i| half((i.x >> 16) as u16).to_bits().into(), None),
];

const SPECIAL: [u64; 26] = [
    0,
    1,
    2,
    31,
    32,
    33,
    63,
    64,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0x8000,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x1_0000_0000,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    u64::MAX,
    0x7ff0_0000_7f80_0000,
    0xfff8_0000_7fc0_0000,
    0x7ff0_0001_7fa0_0000,
    0x0403_0201_0c08_0b0d,
    0x3ff0_0000_3f80_0000,
];

fn number(random: &mut Random) -> u64 {
    match random.below(4) {
        0 => SPECIAL[random.below(SPECIAL.len() as u64) as usize],
        1 => random.next() >> random.below(64),
        // Floats of moderate size.
        2 => {
            let value = (random.next() as f64 / u64::MAX as f64 - 0.5) * 1e5;
            value.to_bits() & !0xffff_ffff | u64::from((value as f32).to_bits())
        }
        _ => random.next(),
    }
}

/// Whether two results are one: any NaN is as good as another.
fn same(case: &Case, got: u64, wanted: u64) -> bool {
    let name = case.text.split(' ').next().unwrap_or_default();
    let nan = |bits: u64| match case.width {
        64 => f64::from_bits(bits).is_nan(),
        _ => f32::from_bits(bits as u32).is_nan(),
    };
    let exact = name.starts_with("v_min") || name.starts_with("v_max");
    got == wanted || (name.contains("_f") && !exact && nan(got) && nan(wanted))
}

fn check(case: &Case, lanes: u16) {
    let space = Space::default();
    let mut random = Random::new(case.words[0].into());
    for _ in 0..60 {
        let mut bench = Bench::new(lanes);
        let inputs: Vec<_> = (0..usize::from(lanes))
            .map(|lane| {
                let [a, b, c] = [(); 3].map(|()| number(&mut random));
                bench.set64(0, lane, a);
                bench.set64(2, lane, b);
                bench.set64(6, lane, c);
                let (x, y, z) = (a as u32, b as u32, c as u32);
                Input { a, b, c, x, y, z }
            })
            .collect();
        let pause = bench.run(case.words, &space);
        assert!(matches!(pause, Pause::End), "{}: {pause:?}", case.text);
        let vcc = bench.wave.mask(VCC);
        for (lane, input) in inputs.iter().enumerate() {
            let place = format!(
                "{} of {:#x}, {:#x}, {:#x}",
                case.text, input.a, input.b, input.c
            );
            if let Some(carry) = case.carry {
                assert_eq!(vcc >> lane & 1 == 1, carry(input), "{place}");
            }
            let got = match case.width {
                0 => continue,
                64 => bench.get64(4, lane),
                _ => bench.get(4, lane).into(),
            };
            let wanted = (case.result)(input);
            assert!(
                same(case, got, wanted),
                "{place}: {got:#x}, not {wanted:#x}"
            );
        }
    }
}

#[test]
fn instructions_do_what_the_host_does() {
    for case in CASES {
        check(case, 32);
    }
}

#[test]
fn waves_of_64_lanes_do_it_too() {
    for case in CASES {
        let two_at_once = case.text.contains("::");
        // The register that follows VCC's lower half is its upper one then.
        let null = case.text.contains("vcc_lo") && case.carry.is_none();
        if !two_at_once && !null {
            check(case, 64);
        }
    }
}

#[test]
fn words_are_the_assemblers() {
    let Some(tool) = llvm("llvm-mc") else {
        return skipped("llvm-mc");
    };
    let mut child = Command::new(tool)
        .args([
            "-triple=amdgcn-amd-amdhsa",
            "-mcpu=gfx1100",
            "-show-encoding",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("llvm-mc starts");
    let texts: Vec<_> = CASES.iter().chain(CROSS).map(|case| case.text).collect();
    let mut input = child.stdin.take().expect("a pipe");
    input
        .write_all(texts.join("\n").as_bytes())
        .expect("a short text");
    drop(input);
    let output = child.wait_with_output().expect("llvm-mc ends");
    let output = String::from_utf8(output.stdout).expect("text");
    let encodings: Vec<Vec<u32>> = output
        .lines()
        .filter_map(|line| line.split_once("encoding: [")?.1.split_once(']'))
        .map(|(bytes, _)| {
            let byte = |text: &str| u8::from_str_radix(&text[2..], 16).expect("a byte");
            let bytes: Vec<u8> = bytes.split(',').map(byte).collect();
            let word = |four: &[u8]| u32::from_le_bytes(four.try_into().expect("four"));
            bytes.chunks(4).map(word).collect()
        })
        .collect();
    assert_eq!(encodings.len(), texts.len());
    for (case, words) in CASES.iter().chain(CROSS).zip(encodings) {
        assert_eq!(case.words, words, "{}", case.text);
    }
}

/// Exchanges between lanes: what lane `c` reads, of v0 that holds the number of each lane plus 100.
/// Nothing is read by a lane that keeps the 7 that was there.
#[rustfmt::skip]
static CROSS: &[Case] = &[
    case!("v_mov_b32_dpp v4, v0 row_shr:1 row_mask:0xf bank_mask:0xf", [0x7e0802fa, 0xff011100], 32, |i| if i.z % 16 == 0 || i.z == 6 || i.z == 21 { 7 } else { 99 + i.c }, None),
    case!("v_mov_b32_dpp v4, v0 row_shl:3 row_mask:0xf bank_mask:0xf bound_ctrl:1", [0x7e0802fa, 0xff090300], 32, |i| if i.z % 16 > 12 || i.z == 2 || i.z == 17 { 0 } else { 103 + i.c }, None),
    case!("v_mov_b32_dpp v4, v0 row_ror:1 row_mask:0x1 bank_mask:0xf", [0x7e0802fa, 0x1f012100], 32, |i| if i.z > 15 || i.z == 6 { 7 } else { 100 + (i.c + 15) % 16 }, None),
    case!("v_mov_b32_dpp v4, v0 row_mirror row_mask:0xf bank_mask:0x3", [0x7e0802fa, 0xf3014000], 32, |i| if i.z % 16 > 7 || i.z == 10 || i.z == 27 { 7 } else { 100 + (i.c ^ 15) }, None),
    case!("v_mov_b32_dpp v4, v0 row_half_mirror row_mask:0xf bank_mask:0xf fi:1", [0x7e0802fa, 0xff054100], 32, |i| 100 + (i.c ^ 7), None),
    case!("v_mov_b32_dpp v4, v0 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf fi:1", [0x7e0802fa, 0xff04b100], 32, |i| 100 + (i.c ^ 1), None),
    case!("v_mov_b32_dpp v4, v0 row_xmask:8 row_mask:0xf bank_mask:0xf fi:1", [0x7e0802fa, 0xff056800], 32, |i| 100 + (i.c ^ 8), None),
    case!("v_mov_b32_dpp v4, v0 row_share:3 row_mask:0xf bank_mask:0xf", [0x7e0802fa, 0xff015300], 32, |i| 103 + i.c / 16 * 16, None),
    case!("v_mov_b32_dpp v4, v0 dpp8:[7,6,5,4,3,2,1,0] fi:1", [0x7e0802ea, 0x05397700], 32, |i| 100 + (i.c ^ 7), None),
    case!("v_add_nc_u32_dpp v4, v0, v0 row_xmask:1 row_mask:0xf bank_mask:0xf fi:1", [0x4a0800fa, 0xff056100], 32, |i| 200 + i.c + (i.c ^ 1), None),
    case!("v_permlane16_b32 v4, v0, s2, s3", [0xd65b0004, 0x000c0500], 32, |i| if i.z == 10 || i.z == 27 { 7 } else { 100 + (i.c ^ 15) }, None),
    case!("v_permlanex16_b32 v4, v0, s2, s3 op_sel:[1,0]", [0xd65c0804, 0x000c0500], 32, |i| 100 + (i.c ^ 31), None),
    case!("ds_bpermute_b32 v4, v2, v0", [0xdacc0000, 0x04000002], 32, |i| if i.z == 3 || i.z == 18 { 0 } else { 100 + (i.c + 2) % 32 }, None),
    case!("ds_permute_b32 v4, v2, v0", [0xdac80000, 0x04000002], 32, |i| if i.z == 7 || i.z == 22 { 0 } else { 100 + (i.c + 30) % 32 }, None),
    case!("ds_swizzle_b32 v4, v0 offset:swizzle(SWAP,16)", [0xd8d4401f, 0x04000000], 32, |i| if i.z == 21 || i.z == 4 { 0 } else { 100 + (i.c ^ 16) }, None),
    case!("v_mbcnt_lo_u32_b32 v4, exec_lo, 0", [0xd71f0004, 0x0001007e], 32, |i| i.c - u64::from(i.z > 5) - u64::from(i.z > 20), None),
];

/// Lanes that run in the tests of exchanges: all but these.
const OFF: u32 = 1 << 5 | 1 << 20;

#[test]
fn lanes_exchange() {
    for case in CROSS {
        let mut bench = Bench::new(32);
        bench
            .wave
            .set_mask(crate::isa::operand::EXEC, (!OFF).into());
        for lane in 0..32 {
            bench.set(0, lane, lane as u32 + 100);
            // Indices for permutations, in bytes: two further on.
            bench.set(2, lane, (lane as u32 + 2) * 4);
            bench.set(4, lane, 7);
        }
        // Selectors of rows: the reverse.
        bench.wave.regs[2] = 0x89ab_cdef;
        bench.wave.regs[3] = 0x0123_4567;
        let pause = bench.run(case.words, &Space::default());
        assert!(matches!(pause, Pause::End), "{}: {pause:?}", case.text);
        for lane in 0..32usize {
            let input = Input {
                a: 0,
                b: 0,
                c: lane as u64,
                x: 0,
                y: 0,
                z: lane as u32,
            };
            let wanted = if OFF >> lane & 1 == 1 {
                7
            } else {
                (case.result)(&input)
            };
            let got = u64::from(bench.get(4, lane));
            assert_eq!(got, wanted, "{} lane {lane}", case.text);
        }
    }
}
