//! Vector operations of the long encoding that work on halves of registers, or exchange between lanes.

use crate::isa::Kind::{H, M, None as N, P, W};
use crate::isa::{Entry, Form, e, form};

const HHH: Form = form(H, [H, H, N]);
const HHHH: Form = form(H, [H, H, H]);

fn median(a: u16, b: u16, c: u16) -> u16 {
    a.min(b).max(a.max(b).min(c))
}

fn median_signed(a: i16, b: i16, c: i16) -> i16 {
    a.min(b).max(a.max(b).min(c))
}

pub(super) static VOP3: &[Entry] = &[
    e(534, "v_alignbit_b32", form(W, [W, W, H]), |w, i, _| {
        w.each(|w, l| {
            let wide = u64::from(w.r32(&i.src[0], l)) << 32 | u64::from(w.r32(&i.src[1], l));
            let value = wide >> (w.r16(&i.src[2], l) & 31);
            w.w32(&i.dst, l, value as u32);
        })
    }),
    e(535, "v_alignbyte_b32", form(W, [W, W, H]), |w, i, _| {
        w.each(|w, l| {
            let wide = u64::from(w.r32(&i.src[0], l)) << 32 | u64::from(w.r32(&i.src[1], l));
            let value = wide >> ((w.r16(&i.src[2], l) & 3) * 8);
            w.w32(&i.dst, l, value as u32);
        })
    }),
    e(577, "v_mad_u16", HHHH, |w, i, _| {
        w.tri16(i, |a, b, c| a.wrapping_mul(b).wrapping_add(c))
    }),
    e(586, "v_min3_i16", HHHH, |w, i, _| {
        w.tri16(i, |a, b, c| (a as i16).min(b as i16).min(c as i16) as u16)
    }),
    e(587, "v_min3_u16", HHHH, |w, i, _| {
        w.tri16(i, |a, b, c| a.min(b).min(c))
    }),
    e(589, "v_max3_i16", HHHH, |w, i, _| {
        w.tri16(i, |a, b, c| (a as i16).max(b as i16).max(c as i16) as u16)
    }),
    e(590, "v_max3_u16", HHHH, |w, i, _| {
        w.tri16(i, |a, b, c| a.max(b).max(c))
    }),
    e(592, "v_med3_i16", HHHH, |w, i, _| {
        w.tri16(i, |a, b, c| {
            median_signed(a as i16, b as i16, c as i16) as u16
        })
    }),
    e(593, "v_med3_u16", HHHH, |w, i, _| w.tri16(i, median)),
    e(595, "v_mad_i16", HHHH, |w, i, _| {
        w.tri16(i, |a, b, c| a.wrapping_mul(b).wrapping_add(c))
    }),
    e(601, "v_mad_u32_u16", form(W, [H, H, W]), |w, i, _| {
        w.each(|w, l| {
            let product = u32::from(w.r16(&i.src[0], l)) * u32::from(w.r16(&i.src[1], l));
            let value = product.wrapping_add(w.r32(&i.src[2], l));
            w.w32(&i.dst, l, value);
        })
    }),
    e(602, "v_mad_i32_i16", form(W, [H, H, W]), |w, i, _| {
        w.each(|w, l| {
            let (a, b) = (w.r16(&i.src[0], l) as i16, w.r16(&i.src[1], l) as i16);
            let value = (i32::from(a) * i32::from(b)) as u32;
            let value = value.wrapping_add(w.r32(&i.src[2], l));
            w.w32(&i.dst, l, value);
        })
    }),
    e(603, "v_permlane16_b32", form(W, [W, W, W]), |w, i, _| {
        w.permute_rows(i, 0)
    }),
    e(604, "v_permlanex16_b32", form(W, [W, W, W]), |w, i, _| {
        w.permute_rows(i, 16)
    }),
    e(605, "v_cndmask_b16", form(H, [H, H, M]), |w, i, _| {
        let mask = w.mask(i.src[2].base);
        w.each(|w, l| {
            let value = w.r16(&i.src[usize::from(mask >> l & 1 == 1)], l);
            w.w16(&i.dst, l, value);
        })
    }),
    e(771, "v_add_nc_u16", HHH, |w, i, _| {
        let clamp = i.clamp;
        w.bin16(i, |a, b| {
            if clamp {
                a.saturating_add(b)
            } else {
                a.wrapping_add(b)
            }
        })
    }),
    e(772, "v_sub_nc_u16", HHH, |w, i, _| {
        let clamp = i.clamp;
        w.bin16(i, |a, b| {
            if clamp {
                a.saturating_sub(b)
            } else {
                a.wrapping_sub(b)
            }
        })
    }),
    e(773, "v_mul_lo_u16", HHH, |w, i, _| {
        w.bin16(i, u16::wrapping_mul)
    }),
    e(777, "v_max_u16", HHH, |w, i, _| w.bin16(i, u16::max)),
    e(778, "v_max_i16", HHH, |w, i, _| {
        w.bin16(i, |a, b| (a as i16).max(b as i16) as u16)
    }),
    e(779, "v_min_u16", HHH, |w, i, _| w.bin16(i, u16::min)),
    e(780, "v_min_i16", HHH, |w, i, _| {
        w.bin16(i, |a, b| (a as i16).min(b as i16) as u16)
    }),
    e(781, "v_add_nc_i16", HHH, |w, i, _| {
        let clamp = i.clamp;
        w.bin16(i, |a, b| {
            let (a, b) = (a as i16, b as i16);
            (if clamp {
                a.saturating_add(b)
            } else {
                a.wrapping_add(b)
            }) as u16
        })
    }),
    e(782, "v_sub_nc_i16", HHH, |w, i, _| {
        let clamp = i.clamp;
        w.bin16(i, |a, b| {
            let (a, b) = (a as i16, b as i16);
            (if clamp {
                a.saturating_sub(b)
            } else {
                a.wrapping_sub(b)
            }) as u16
        })
    }),
    e(785, "v_pack_b32_f16", form(P, [H, H, N]), |w, i, _| {
        w.each(|w, l| {
            let (a, b) = (w.r16(&i.src[0], l), w.r16(&i.src[1], l));
            w.w32(&i.dst, l, u32::from(a) | u32::from(b) << 16);
        })
    }),
    e(824, "v_lshlrev_b16", HHH, |w, i, _| {
        w.bin16(i, |a, b| b.wrapping_shl(a.into()))
    }),
    e(825, "v_lshrrev_b16", HHH, |w, i, _| {
        w.bin16(i, |a, b| b.wrapping_shr(a.into()))
    }),
    e(826, "v_ashrrev_i16", HHH, |w, i, _| {
        w.bin16(i, |a, b| (b as i16).wrapping_shr(a.into()) as u16)
    }),
    e(866, "v_and_b16", HHH, |w, i, _| w.bin16(i, |a, b| a & b)),
    e(867, "v_or_b16", HHH, |w, i, _| w.bin16(i, |a, b| a | b)),
    e(868, "v_xor_b16", HHH, |w, i, _| w.bin16(i, |a, b| a ^ b)),
];
