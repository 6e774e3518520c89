//! Vector operations with one source.

use crate::float;
use crate::isa::Kind::{F, H, None as N, Q, W};
use crate::isa::operand::EXEC;
use crate::isa::{Entry, Exec, Form, e, form};
use crate::wave::Flow;

const WW: Form = form(W, [W, N, N]);
const HH: Form = form(H, [H, N, N]);
const FF: Form = form(F, [F, N, N]);
const QQ: Form = form(Q, [Q, N, N]);
const WQ: Form = form(W, [Q, N, N]);
const QW: Form = form(Q, [W, N, N]);

/// A byte of the source as an `f32`.
macro_rules! ubyte {
    ($op:literal $name:literal $shift:literal) => {
        e($op, $name, WW, |w, i, _| {
            w.each(|w, l| {
                let value = (w.r32(&i.src[0], l) >> $shift & 255) as f32;
                w.wf32(i, l, value);
            })
        })
    };
}

/// A conversion from what `$read` gives, written by `$write`.
macro_rules! convert {
    ($read:ident $write:ident $f:expr) => {{
        let exec: Exec = |w, i, _| {
            w.each(|w, l| {
                let value = $f(w.$read(&i.src[0], l));
                w.$write(&i.dst, l, value);
            })
        };
        exec
    }};
}

/// A conversion to a float, whose output modifiers apply.
macro_rules! to_float {
    ($read:ident $write:ident $f:expr) => {{
        let exec: Exec = |w, i, _| {
            w.each(|w, l| {
                let value = $f(w.$read(&i.src[0], l));
                w.$write(i, l, value);
            })
        };
        exec
    }};
}

pub(super) static VOP1: &[Entry] = &[
    e(0, "v_nop", form(N, [N, N, N]), |_, _, _| Flow::Next),
    e(1, "v_mov_b32", WW, |w, i, _| w.un32(i, |a| a)),
    e(
        2,
        "v_readfirstlane_b32",
        Form { scalar: true, ..WW },
        |w, i, _| {
            // Lane 0 if none runs.
            let exec = w.mask(EXEC);
            let lane = if exec == 0 { 0 } else { exec.trailing_zeros() };
            let value = w.r32(&i.src[0], lane as usize);
            w.ws32(&i.dst, value)
        },
    ),
    e(28, "v_mov_b16", HH, |w, i, _| w.un16(i, |a| a)),
    e(55, "v_not_b32", WW, |w, i, _| w.un32(i, |a| !a)),
    e(56, "v_bfrev_b32", WW, |w, i, _| {
        w.un32(i, u32::reverse_bits)
    }),
    e(57, "v_clz_i32_u32", WW, |w, i, _| {
        w.un32(i, |a| a.checked_ilog2().map_or(u32::MAX, |n| 31 - n))
    }),
    e(58, "v_ctz_i32_b32", WW, |w, i, _| {
        w.un32(i, |a| if a == 0 { u32::MAX } else { a.trailing_zeros() })
    }),
    e(59, "v_cls_i32", WW, |w, i, _| {
        w.un32(i, |a| super::scalar_move::sign_bits(a as i32))
    }),
    e(101, "v_swap_b32", WW, |w, i, _| {
        w.each(|w, l| {
            let (a, b) = (w.r32(&i.src[0], l), w.regs[usize::from(i.dst.base) + l]);
            w.w32(&i.dst, l, a);
            w.regs[usize::from(i.src[0].base) + l] = b;
        })
    }),
    e(105, "v_not_b16", HH, |w, i, _| w.un16(i, |a| !a)),
    e(
        106,
        "v_cvt_i32_i16",
        form(W, [H, N, N]),
        convert!(r16 w32 |a| a as i16 as u32),
    ),
    e(
        107,
        "v_cvt_u32_u16",
        form(W, [H, N, N]),
        convert!(r16 w32 u32::from),
    ),
];

pub(super) static FLOAT: &[Entry] = &[
    e(
        3,
        "v_cvt_i32_f64",
        WQ,
        convert!(f64 w32 |a: f64| a as i32 as u32),
    ),
    e(
        4,
        "v_cvt_f64_i32",
        QW,
        to_float!(r32 wf64 |a| f64::from(a as i32)),
    ),
    e(
        5,
        "v_cvt_f32_i32",
        WW,
        to_float!(r32 wf32 |a| a as i32 as f32),
    ),
    e(6, "v_cvt_f32_u32", WW, to_float!(r32 wf32 |a| a as f32)),
    e(7, "v_cvt_u32_f32", WW, convert!(f32 w32 |a: f32| a as u32)),
    e(
        8,
        "v_cvt_i32_f32",
        WW,
        convert!(f32 w32 |a: f32| a as i32 as u32),
    ),
    e(
        10,
        "v_cvt_f16_f32",
        form(F, [W, N, N]),
        to_float!(f32 wf16 f64::from),
    ),
    e(
        11,
        "v_cvt_f32_f16",
        form(W, [F, N, N]),
        to_float!(f16 wf32 |a| a),
    ),
    e(
        12,
        "v_cvt_nearest_i32_f32",
        WW,
        convert!(f32 w32 |a: f32| (a + 0.5).floor() as i32 as u32),
    ),
    e(
        13,
        "v_cvt_floor_i32_f32",
        WW,
        convert!(f32 w32 |a: f32| a.floor() as i32 as u32),
    ),
    e(15, "v_cvt_f32_f64", WQ, to_float!(f64 wf32 |a| a as f32)),
    e(16, "v_cvt_f64_f32", QW, to_float!(f32 wf64 f64::from)),
    ubyte!(17 "v_cvt_f32_ubyte0" 0),
    ubyte!(18 "v_cvt_f32_ubyte1" 8),
    ubyte!(19 "v_cvt_f32_ubyte2" 16),
    ubyte!(20 "v_cvt_f32_ubyte3" 24),
    e(21, "v_cvt_u32_f64", WQ, convert!(f64 w32 |a: f64| a as u32)),
    e(22, "v_cvt_f64_u32", QW, to_float!(r32 wf64 f64::from)),
    e(23, "v_trunc_f64", QQ, |w, i, _| w.unf64(i, f64::trunc)),
    e(24, "v_ceil_f64", QQ, |w, i, _| w.unf64(i, f64::ceil)),
    e(25, "v_rndne_f64", QQ, |w, i, _| {
        w.unf64(i, f64::round_ties_even)
    }),
    e(26, "v_floor_f64", QQ, |w, i, _| w.unf64(i, f64::floor)),
    e(32, "v_fract_f32", WW, |w, i, _| {
        w.unf32(i, |a| (a - a.floor()).min(f32::from_bits(0x3f7f_ffff)))
    }),
    e(33, "v_trunc_f32", WW, |w, i, _| w.unf32(i, f32::trunc)),
    e(34, "v_ceil_f32", WW, |w, i, _| w.unf32(i, f32::ceil)),
    e(35, "v_rndne_f32", WW, |w, i, _| {
        w.unf32(i, f32::round_ties_even)
    }),
    e(36, "v_floor_f32", WW, |w, i, _| w.unf32(i, f32::floor)),
    e(37, "v_exp_f32", WW, |w, i, _| {
        w.unf32(i, |a| f64::from(a).exp2() as f32)
    }),
    e(39, "v_log_f32", WW, |w, i, _| {
        w.unf32(i, |a| f64::from(a).log2() as f32)
    }),
    e(42, "v_rcp_f32", WW, |w, i, _| w.unf32(i, |a| 1.0 / a)),
    e(43, "v_rcp_iflag_f32", WW, |w, i, _| w.unf32(i, |a| 1.0 / a)),
    e(46, "v_rsq_f32", WW, |w, i, _| {
        w.unf32(i, |a| (1.0 / f64::from(a).sqrt()) as f32)
    }),
    e(47, "v_rcp_f64", QQ, |w, i, _| w.unf64(i, |a| 1.0 / a)),
    e(49, "v_rsq_f64", QQ, |w, i, _| {
        w.unf64(i, |a| 1.0 / a.sqrt())
    }),
    e(51, "v_sqrt_f32", WW, |w, i, _| w.unf32(i, f32::sqrt)),
    e(52, "v_sqrt_f64", QQ, |w, i, _| w.unf64(i, f64::sqrt)),
    e(53, "v_sin_f32", WW, |w, i, _| {
        w.unf32(i, |a| (f64::from(a) * std::f64::consts::TAU).sin() as f32)
    }),
    e(54, "v_cos_f32", WW, |w, i, _| {
        w.unf32(i, |a| (f64::from(a) * std::f64::consts::TAU).cos() as f32)
    }),
    e(
        60,
        "v_frexp_exp_i32_f64",
        WQ,
        convert!(f64 w32 |a| float::frexp_exponent(a) as u32),
    ),
    e(61, "v_frexp_mant_f64", QQ, |w, i, _| {
        w.unf64(i, float::frexp_mantissa)
    }),
    e(62, "v_fract_f64", QQ, |w, i, _| {
        w.unf64(i, |a| {
            (a - a.floor()).min(f64::from_bits(0x3fef_ffff_ffff_ffff))
        })
    }),
    e(
        63,
        "v_frexp_exp_i32_f32",
        WW,
        convert!(f32 w32 |a: f32| float::frexp_exponent(a.into()) as u32),
    ),
    e(64, "v_frexp_mant_f32", WW, |w, i, _| {
        w.unf32(i, |a| float::frexp_mantissa(a.into()) as f32)
    }),
    e(
        80,
        "v_cvt_f16_u16",
        form(F, [H, N, N]),
        to_float!(r16 wf16 f64::from),
    ),
    e(
        81,
        "v_cvt_f16_i16",
        form(F, [H, N, N]),
        to_float!(r16 wf16 |a| f64::from(a as i16)),
    ),
    e(
        82,
        "v_cvt_u16_f16",
        form(H, [F, N, N]),
        convert!(f16 w16 |a: f32| a as u16),
    ),
    e(
        83,
        "v_cvt_i16_f16",
        form(H, [F, N, N]),
        convert!(f16 w16 |a: f32| a as i16 as u16),
    ),
    e(84, "v_rcp_f16", FF, |w, i, _| w.unf16(i, |a| 1.0 / a)),
    e(85, "v_sqrt_f16", FF, |w, i, _| w.unf16(i, f64::sqrt)),
    e(86, "v_rsq_f16", FF, |w, i, _| {
        w.unf16(i, |a| 1.0 / a.sqrt())
    }),
    e(87, "v_log_f16", FF, |w, i, _| w.unf16(i, f64::log2)),
    e(88, "v_exp_f16", FF, |w, i, _| w.unf16(i, f64::exp2)),
    e(91, "v_floor_f16", FF, |w, i, _| w.unf16(i, f64::floor)),
    e(92, "v_ceil_f16", FF, |w, i, _| w.unf16(i, f64::ceil)),
    e(93, "v_trunc_f16", FF, |w, i, _| w.unf16(i, f64::trunc)),
    e(94, "v_rndne_f16", FF, |w, i, _| {
        w.unf16(i, f64::round_ties_even)
    }),
];
