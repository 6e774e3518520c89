//! Vector operations that only the long encoding has.

use super::scalar::{extract, extract_signed};
use super::vector2::{add, i24, sub, u24};
use crate::float;
use crate::isa::Kind::{D, I, None as N, Q, W};
use crate::isa::{Entry, Form, Inst, e, form};
use crate::wave::{Flow, Wave};

const WWW: Form = form(W, [W, W, N]);
const WWWW: Form = form(W, [W, W, W]);
const QQQ: Form = form(Q, [Q, Q, N]);
const QQQQ: Form = form(Q, [Q, Q, Q]);
const DWD: Form = form(D, [W, D, N]);

/// With a bit for each lane coming out.
const fn out(form: Form) -> Form {
    Form {
        carry: true,
        ..form
    }
}

impl Wave {
    /// A product of 64 bits and a sum of 64 bits, with the bit that is carried out.
    #[inline(always)]
    fn mad64(&mut self, i: &Inst, f: impl Fn(u32, u32, u64) -> (u64, bool)) -> Flow {
        let mut mask = 0;
        self.each(|w, l| {
            let (a, b) = (w.r32(&i.src[0], l), w.r32(&i.src[1], l));
            let (value, carry) = f(a, b, w.r64(&i.src[2], l));
            w.w64(&i.dst, l, value);
            mask |= u64::from(carry) << l;
        });
        self.set_mask(i.sdst, mask);
        Flow::Next
    }

    #[inline(always)]
    fn ldexp64(&mut self, i: &Inst) -> Flow {
        self.each(|w, l| {
            let value = float::ldexp64(w.f64(&i.src[0], l), w.r32(&i.src[1], l) as i32);
            w.wf64(i, l, value);
        })
    }
}

/// Picks bytes of both sources, or constants.
fn perm(a: u32, b: u32, selectors: u32) -> u32 {
    let bytes = (u64::from(a) << 32 | u64::from(b)).to_le_bytes();
    let sign = |byte: u8| if byte & 0x80 == 0 { 0 } else { 0xff };
    let pick = |selector: u8| match selector {
        0..=7 => bytes[usize::from(selector)],
        8..=11 => sign(bytes[usize::from(selector - 8) * 2 + 1]),
        12 => 0,
        _ => 0xff,
    };
    u32::from_le_bytes(selectors.to_le_bytes().map(pick))
}

fn average_bytes(a: u32, b: u32, round: u32) -> u32 {
    let (a, b, round) = (a.to_le_bytes(), b.to_le_bytes(), round.to_le_bytes());
    u32::from_le_bytes(std::array::from_fn(|n| {
        ((u16::from(a[n]) + u16::from(b[n]) + u16::from(round[n] & 1)) >> 1) as u8
    }))
}

fn difference_bytes(a: u32, b: u32) -> u32 {
    let pairs = a.to_le_bytes().into_iter().zip(b.to_le_bytes());
    pairs.map(|(a, b)| u32::from(a.abs_diff(b))).sum()
}

fn median(a: u32, b: u32, c: u32) -> u32 {
    a.min(b).max(a.max(b).min(c))
}

fn median_signed(a: i32, b: i32, c: i32) -> i32 {
    a.min(b).max(a.max(b).min(c))
}

/// Bits of the lanes below this one.
fn below(lane: usize) -> u64 {
    (1 << lane) - 1
}

pub(super) static VOP3: &[Entry] = &[
    e(522, "v_mad_i32_i24", WWWW, |w, i, _| {
        w.tri32(i, |a, b, c| ((i24(a) * i24(b)) as u32).wrapping_add(c))
    }),
    e(523, "v_mad_u32_u24", WWWW, |w, i, _| {
        w.tri32(i, |a, b, c| ((u24(a) * u24(b)) as u32).wrapping_add(c))
    }),
    e(528, "v_bfe_u32", WWWW, |w, i, _| {
        w.tri32(i, |a, b, c| extract(a.into(), b & 31, c & 31) as u32)
    }),
    e(529, "v_bfe_i32", WWWW, |w, i, _| {
        w.tri32(i, |a, b, c| {
            extract_signed((a as i32).into(), b & 31, c & 31, 32) as u32
        })
    }),
    e(530, "v_bfi_b32", WWWW, |w, i, _| {
        w.tri32(i, |a, b, c| a & b | !a & c)
    }),
    e(531, "v_fma_f32", WWWW, |w, i, _| w.trif32(i, f32::mul_add)),
    e(532, "v_fma_f64", QQQQ, |w, i, _| w.trif64(i, f64::mul_add)),
    e(533, "v_lerp_u8", WWWW, |w, i, _| w.tri32(i, average_bytes)),
    e(537, "v_min3_f32", WWWW, |w, i, _| {
        w.trif32(i, |a, b, c| float::min32(float::min32(a, b), c))
    }),
    e(538, "v_min3_i32", WWWW, |w, i, _| {
        w.tri32(i, |a, b, c| (a as i32).min(b as i32).min(c as i32) as u32)
    }),
    e(539, "v_min3_u32", WWWW, |w, i, _| {
        w.tri32(i, |a, b, c| a.min(b).min(c))
    }),
    e(540, "v_max3_f32", WWWW, |w, i, _| {
        w.trif32(i, |a, b, c| float::max32(float::max32(a, b), c))
    }),
    e(541, "v_max3_i32", WWWW, |w, i, _| {
        w.tri32(i, |a, b, c| (a as i32).max(b as i32).max(c as i32) as u32)
    }),
    e(542, "v_max3_u32", WWWW, |w, i, _| {
        w.tri32(i, |a, b, c| a.max(b).max(c))
    }),
    e(543, "v_med3_f32", WWWW, |w, i, _| w.trif32(i, float::med32)),
    e(544, "v_med3_i32", WWWW, |w, i, _| {
        w.tri32(i, |a, b, c| {
            median_signed(a as i32, b as i32, c as i32) as u32
        })
    }),
    e(545, "v_med3_u32", WWWW, |w, i, _| w.tri32(i, median)),
    e(546, "v_sad_u8", WWWW, |w, i, _| {
        w.tri32(i, |a, b, c| difference_bytes(a, b).wrapping_add(c))
    }),
    e(549, "v_sad_u32", WWWW, |w, i, _| {
        w.tri32(i, |a, b, c| a.abs_diff(b).wrapping_add(c))
    }),
    e(551, "v_div_fixup_f32", WWWW, |w, i, _| {
        w.trif32(i, float::div_fixup32)
    }),
    e(552, "v_div_fixup_f64", QQQQ, |w, i, _| {
        w.trif64(i, float::div_fixup64)
    }),
    e(567, "v_div_fmas_f32", WWWW, |w, i, _| {
        let vcc = w.vcc();
        w.each(|w, l| {
            let (a, b, c) = (
                w.f32(&i.src[0], l),
                w.f32(&i.src[1], l),
                w.f32(&i.src[2], l),
            );
            w.wf32(i, l, float::div_fmas32(a, b, c, vcc >> l & 1 == 1));
        })
    }),
    e(568, "v_div_fmas_f64", QQQQ, |w, i, _| {
        let vcc = w.vcc();
        w.each(|w, l| {
            let (a, b, c) = (
                w.f64(&i.src[0], l),
                w.f64(&i.src[1], l),
                w.f64(&i.src[2], l),
            );
            w.wf64(i, l, float::div_fmas64(a, b, c, vcc >> l & 1 == 1));
        })
    }),
    e(576, "v_xor3_b32", WWWW, |w, i, _| {
        w.tri32(i, |a, b, c| a ^ b ^ c)
    }),
    e(580, "v_perm_b32", WWWW, |w, i, _| w.tri32(i, perm)),
    e(581, "v_xad_u32", WWWW, |w, i, _| {
        w.tri32(i, |a, b, c| (a ^ b).wrapping_add(c))
    }),
    e(582, "v_lshl_add_u32", WWWW, |w, i, _| {
        w.tri32(i, |a, b, c| a.wrapping_shl(b).wrapping_add(c))
    }),
    e(583, "v_add_lshl_u32", WWWW, |w, i, _| {
        w.tri32(i, |a, b, c| a.wrapping_add(b).wrapping_shl(c))
    }),
    e(597, "v_add3_u32", WWWW, |w, i, _| {
        w.tri32(i, |a, b, c| a.wrapping_add(b).wrapping_add(c))
    }),
    e(598, "v_lshl_or_b32", WWWW, |w, i, _| {
        w.tri32(i, |a, b, c| a.wrapping_shl(b) | c)
    }),
    e(599, "v_and_or_b32", WWWW, |w, i, _| {
        w.tri32(i, |a, b, c| a & b | c)
    }),
    e(600, "v_or3_b32", WWWW, |w, i, _| {
        w.tri32(i, |a, b, c| a | b | c)
    }),
    e(606, "v_maxmin_f32", WWWW, |w, i, _| {
        w.trif32(i, |a, b, c| float::min32(float::max32(a, b), c))
    }),
    e(607, "v_minmax_f32", WWWW, |w, i, _| {
        w.trif32(i, |a, b, c| float::max32(float::min32(a, b), c))
    }),
    e(610, "v_maxmin_u32", WWWW, |w, i, _| {
        w.tri32(i, |a, b, c| a.max(b).min(c))
    }),
    e(611, "v_minmax_u32", WWWW, |w, i, _| {
        w.tri32(i, |a, b, c| a.min(b).max(c))
    }),
    e(612, "v_maxmin_i32", WWWW, |w, i, _| {
        w.tri32(i, |a, b, c| (a as i32).max(b as i32).min(c as i32) as u32)
    }),
    e(613, "v_minmax_i32", WWWW, |w, i, _| {
        w.tri32(i, |a, b, c| (a as i32).min(b as i32).max(c as i32) as u32)
    }),
    e(764, "v_div_scale_f32", out(WWWW), |w, i, _| {
        let mut mask = 0;
        w.each(|w, l| {
            let (a, b, c) = (
                w.f32(&i.src[0], l),
                w.f32(&i.src[1], l),
                w.f32(&i.src[2], l),
            );
            let (value, back) = float::div_scale32(a, b, c);
            w.w32(&i.dst, l, value.to_bits());
            mask |= u64::from(back) << l;
        });
        w.set_mask(i.sdst, mask);
        Flow::Next
    }),
    e(765, "v_div_scale_f64", out(QQQQ), |w, i, _| {
        let mut mask = 0;
        w.each(|w, l| {
            let (a, b, c) = (
                w.f64(&i.src[0], l),
                w.f64(&i.src[1], l),
                w.f64(&i.src[2], l),
            );
            let (value, back) = float::div_scale64(a, b, c);
            w.w64(&i.dst, l, value.to_bits());
            mask |= u64::from(back) << l;
        });
        w.set_mask(i.sdst, mask);
        Flow::Next
    }),
    e(766, "v_mad_u64_u32", out(form(D, [W, W, D])), |w, i, _| {
        w.mad64(i, |a, b, c| {
            (u64::from(a) * u64::from(b)).overflowing_add(c)
        })
    }),
    e(767, "v_mad_i64_i32", out(form(I, [W, W, I])), |w, i, _| {
        w.mad64(i, |a, b, c| {
            let product = i64::from(a as i32) * i64::from(b as i32);
            let (sum, overflow) = product.overflowing_add(c as i64);
            (sum as u64, overflow)
        })
    }),
    e(768, "v_add_co_u32", out(WWW), |w, i, _| w.carry(i, 0, add)),
    e(769, "v_sub_co_u32", out(WWW), |w, i, _| w.carry(i, 0, sub)),
    e(770, "v_subrev_co_u32", out(WWW), |w, i, _| {
        w.carry(i, 0, |a, b, c| sub(b, a, c))
    }),
    e(796, "v_ldexp_f32", WWW, |w, i, _| {
        w.each(|w, l| {
            let value = float::ldexp32(w.f32(&i.src[0], l), w.r32(&i.src[1], l) as i32);
            w.wf32(i, l, value);
        })
    }),
    e(797, "v_bfm_b32", WWW, |w, i, _| {
        w.bin32(i, |a, b| ((1u32 << (a & 31)) - 1).wrapping_shl(b))
    }),
    e(798, "v_bcnt_u32_b32", WWW, |w, i, _| {
        w.bin32(i, |a, b| a.count_ones().wrapping_add(b))
    }),
    e(799, "v_mbcnt_lo_u32_b32", WWW, |w, i, _| {
        w.each(|w, l| {
            let bits = w.r32(&i.src[0], l) & below(l) as u32;
            let value = bits.count_ones().wrapping_add(w.r32(&i.src[1], l));
            w.w32(&i.dst, l, value);
        })
    }),
    e(800, "v_mbcnt_hi_u32_b32", WWW, |w, i, _| {
        w.each(|w, l| {
            let bits = w.r32(&i.src[0], l) & (below(l) >> 32) as u32;
            let value = bits.count_ones().wrapping_add(w.r32(&i.src[1], l));
            w.w32(&i.dst, l, value);
        })
    }),
    e(805, "v_sub_nc_i32", WWW, |w, i, _| {
        let clamp = i.clamp;
        w.bin32(i, |a, b| {
            let (a, b) = (a as i32, b as i32);
            (if clamp {
                a.saturating_sub(b)
            } else {
                a.wrapping_sub(b)
            }) as u32
        })
    }),
    e(806, "v_add_nc_i32", WWW, |w, i, _| {
        let clamp = i.clamp;
        w.bin32(i, |a, b| {
            let (a, b) = (a as i32, b as i32);
            (if clamp {
                a.saturating_add(b)
            } else {
                a.wrapping_add(b)
            }) as u32
        })
    }),
    e(807, "v_add_f64", QQQ, |w, i, _| w.binf64(i, |a, b| a + b)),
    e(808, "v_mul_f64", QQQ, |w, i, _| w.binf64(i, |a, b| a * b)),
    e(809, "v_min_f64", QQQ, |w, i, _| w.binf64(i, float::min64)),
    e(810, "v_max_f64", QQQ, |w, i, _| w.binf64(i, float::max64)),
    e(811, "v_ldexp_f64", form(Q, [Q, W, N]), |w, i, _| {
        w.ldexp64(i)
    }),
    e(812, "v_mul_lo_u32", WWW, |w, i, _| {
        w.bin32(i, u32::wrapping_mul)
    }),
    e(813, "v_mul_hi_u32", WWW, |w, i, _| {
        w.bin32(i, |a, b| ((u64::from(a) * u64::from(b)) >> 32) as u32)
    }),
    e(814, "v_mul_hi_i32", WWW, |w, i, _| {
        w.bin32(i, |a, b| {
            ((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32
        })
    }),
    e(828, "v_lshlrev_b64", DWD, |w, i, _| {
        w.shift64(i, |a, b| b.wrapping_shl(a))
    }),
    e(829, "v_lshrrev_b64", DWD, |w, i, _| {
        w.shift64(i, |a, b| b.wrapping_shr(a))
    }),
    e(830, "v_ashrrev_i64", form(D, [W, I, N]), |w, i, _| {
        w.shift64(i, |a, b| (b as i64).wrapping_shr(a) as u64)
    }),
    e(
        864,
        "v_readlane_b32",
        Form {
            scalar: true,
            ..WWW
        },
        |w, i, _| {
            let lane = w.s32(&i.src[1]) as usize & usize::from(w.lanes - 1);
            let value = w.r32(&i.src[0], lane);
            w.ws32(&i.dst, value)
        },
    ),
    e(865, "v_writelane_b32", WWW, |w, i, _| {
        // Whether the lane runs does not matter.
        let lane = w.s32(&i.src[1]) as usize & usize::from(w.lanes - 1);
        let value = w.s32(&i.src[0]);
        w.w32(&i.dst, lane, value);
        Flow::Next
    }),
];
