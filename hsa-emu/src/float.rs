//! Floating-point operations that Rust has no function for, as the hardware defines them.
//!
//! Reciprocals, roots, exponentials and sines are approximations on the hardware; here they are
//! correctly rounded or as good as the host's, which is at least as exact. Rounding is to nearest even
//! and denormals are kept, whatever the mode register asks for: that is what compilers set.

/// The quiet bit of an `f32`.
const QUIET32: u32 = 1 << 22;
/// The quiet bit of an `f64`.
const QUIET64: u64 = 1 << 51;

/// Converts an `f16`.
pub(crate) fn from_half(half: u16) -> f32 {
    let sign = u32::from(half >> 15) << 31;
    let exponent = u32::from(half >> 10 & 31);
    let fraction = u32::from(half & 0x3ff);
    let magnitude = match exponent {
        // 2^-24 times the fraction: exact.
        0 => {
            return f32::from_bits(
                sign | (fraction as f32 * f32::from_bits(0x3380_0000)).to_bits(),
            );
        }
        31 => 0x7f80_0000 | fraction << 13,
        _ => (exponent + 112) << 23 | fraction << 13,
    };
    f32::from_bits(sign | magnitude)
}

/// Rounds to an `f16`, to nearest even.
pub(crate) fn to_half(value: f32) -> u16 {
    half_from_wide(value.into())
}

/// Rounds an `f64` to an `f16`, once, to nearest even.
pub(crate) fn half_from_wide(value: f64) -> u16 {
    let sign = ((value.to_bits() >> 63) as u16) << 15;
    let magnitude = value.abs();
    if value.is_nan() {
        return sign | 0x7e00 | (value.to_bits() >> 42 & 0x1ff) as u16;
    }
    if magnitude >= 65520.0 {
        return sign | 0x7c00;
    }
    // Units of the last place: 2^-24 for denormals and the lowest normals.
    let exponent = ((magnitude.to_bits() >> 52) as i32 - 1023).max(-14);
    let unit = power64(exponent - 10);
    // Exact: a division by a power of two.
    let units = (magnitude / unit).round_ties_even() as u32;
    // Normal numbers have 1024 to 2048 units; the carry moves into the exponent by itself.
    let bits = if units < 1024 {
        units
    } else {
        (((exponent + 14) as u32) << 10) + units
    };
    sign | bits as u16
}

/// 2 to the power of `n`, for normal results.
fn power64(n: i32) -> f64 {
    f64::from_bits(((n + 1023) as u64) << 52)
}

/// `x` times 2 to the power of `n`, rounded once.
pub(crate) fn ldexp64(x: f64, n: i32) -> f64 {
    let (mut x, mut n) = (x, n);
    if n > 1023 {
        for _ in 0..2 {
            if n > 1023 {
                x *= power64(1023);
                n -= 1023;
            }
        }
        return x * power64(n.min(1023));
    }
    // Down in steps that keep 53 bits above the smallest normal, so that only the last one rounds.
    for _ in 0..2 {
        if n < -1022 {
            x *= power64(-1022 + 53);
            n += 1022 - 53;
        }
    }
    x * power64(n.max(-1022))
}

/// `x` times 2 to the power of `n`, rounded once.
pub(crate) fn ldexp32(x: f32, n: i32) -> f32 {
    // In range of f64 for every f32 and n of this range; beyond it the result is 0 or infinite.
    ldexp64(x.into(), n.clamp(-400, 400)) as f32
}

/// The exponent of `x` as `frexp` has it; 0 for 0, infinities and NaN.
pub(crate) fn frexp_exponent(x: f64) -> i32 {
    if x == 0.0 || !x.is_finite() {
        return 0;
    }
    let exponent = (x.to_bits() >> 52 & 0x7ff) as i32;
    if exponent == 0 {
        return frexp_exponent(x * power64(64)) - 64;
    }
    exponent - 1022
}

/// The fraction of `x` as `frexp` has it.
pub(crate) fn frexp_mantissa(x: f64) -> f64 {
    if x == 0.0 || !x.is_finite() {
        return x;
    }
    ldexp64(x, -frexp_exponent(x))
}

/// The smaller one; a number wins over a quiet NaN, and -0 is below 0.
pub(crate) fn min32(a: f32, b: f32) -> f32 {
    pick32(a, b, a < b || (a == b && a.is_sign_negative()))
}

/// The larger one; a number wins over a quiet NaN, and -0 is below 0.
pub(crate) fn max32(a: f32, b: f32) -> f32 {
    pick32(a, b, a > b || (a == b && b.is_sign_negative()))
}

fn pick32(a: f32, b: f32, first: bool) -> f32 {
    let signaling = |x: f32| x.is_nan() && x.to_bits() & QUIET32 == 0;
    if signaling(a) {
        quiet32(a)
    } else if signaling(b) {
        quiet32(b)
    } else if a.is_nan() {
        b
    } else if b.is_nan() || first {
        a
    } else {
        b
    }
}

/// As [`min32`].
pub(crate) fn min64(a: f64, b: f64) -> f64 {
    pick64(a, b, a < b || (a == b && a.is_sign_negative()))
}

/// As [`max32`].
pub(crate) fn max64(a: f64, b: f64) -> f64 {
    pick64(a, b, a > b || (a == b && b.is_sign_negative()))
}

fn pick64(a: f64, b: f64, first: bool) -> f64 {
    let signaling = |x: f64| x.is_nan() && x.to_bits() & QUIET64 == 0;
    if signaling(a) {
        quiet64(a)
    } else if signaling(b) {
        quiet64(b)
    } else if a.is_nan() {
        b
    } else if b.is_nan() || first {
        a
    } else {
        b
    }
}

/// The middle one of three.
pub(crate) fn med32(a: f32, b: f32, c: f32) -> f32 {
    if a.is_nan() || b.is_nan() || c.is_nan() {
        return min32(min32(a, b), c);
    }
    max32(min32(a, b), min32(max32(a, b), c))
}

fn quiet32(x: f32) -> f32 {
    f32::from_bits(x.to_bits() | QUIET32)
}

fn quiet64(x: f64) -> f64 {
    f64::from_bits(x.to_bits() | QUIET64)
}

/// Whether a value is of one of the classes of `mask`: signaling and quiet NaN, then from minus
/// infinity up to plus infinity.
pub(crate) fn class(x: f64, signaling: bool, denormal: bool, mask: u32) -> bool {
    let positive = x.is_sign_positive();
    let class = if x.is_nan() {
        u32::from(!signaling)
    } else if x.is_infinite() {
        if positive { 9 } else { 2 }
    } else if x == 0.0 {
        if positive { 6 } else { 5 }
    } else if denormal {
        if positive { 7 } else { 4 }
    } else if positive {
        8
    } else {
        3
    };
    mask >> class & 1 == 1
}

/// [`class`] of an `f32`.
pub(crate) fn class32(x: f32, mask: u32) -> bool {
    let signaling = x.to_bits() & QUIET32 == 0;
    class(x.into(), signaling, x.is_subnormal(), mask)
}

/// [`class`] of an `f64`.
pub(crate) fn class64(x: f64, mask: u32) -> bool {
    class(x, x.to_bits() & QUIET64 == 0, x.is_subnormal(), mask)
}

/// The numbers that the division helpers differ by between widths.
struct Width {
    /// Exponents further apart than this give a quotient near the largest number.
    far: i32,
    /// A numerator with a biased exponent up to this is scaled.
    small: i32,
    /// By how much is scaled.
    scale: i32,
}

const WIDTH32: Width = Width {
    far: 96,
    small: 23,
    scale: 64,
};
const WIDTH64: Width = Width {
    far: 768,
    small: 53,
    scale: 128,
};

/// The decision of `v_div_scale`: by which power of two the value is scaled, and the condition.
#[derive(Clone, Copy)]
struct Operand {
    biased: i32,
    zero: bool,
    denormal: bool,
}

/// Which of its two operands a scaling is for.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Chosen {
    denominator: bool,
    numerator: bool,
}

fn scaling(
    width: &Width,
    den: Operand,
    num: Operand,
    chosen: Chosen,
    reciprocal_denormal: bool,
    quotient_denormal: bool,
) -> (Option<i32>, bool) {
    if den.zero || num.zero {
        return (None, false);
    }
    let only = |is: bool, scale: i32| Some(if is { scale } else { 0 });
    if num.biased - den.biased >= width.far {
        (only(chosen.denominator, width.scale), true)
    } else if den.denormal {
        (Some(width.scale), false)
    } else if reciprocal_denormal && quotient_denormal {
        (only(chosen.denominator, -width.scale), true)
    } else if reciprocal_denormal {
        (Some(-width.scale), false)
    } else if quotient_denormal {
        (only(chosen.numerator, width.scale), true)
    } else if num.biased <= width.small {
        (Some(width.scale), false)
    } else {
        (Some(0), false)
    }
}

/// `v_div_scale_f32`: the first operand, which is one of the others, scaled for a division; and
/// whether the quotient has to be scaled back.
pub(crate) fn div_scale32(value: f32, den: f32, num: f32) -> (f32, bool) {
    let operand = |x: f32| Operand {
        biased: (x.to_bits() >> 23 & 255) as i32,
        zero: x == 0.0,
        denormal: x.is_subnormal(),
    };
    let chosen = Chosen {
        denominator: value.to_bits() == den.to_bits(),
        numerator: value.to_bits() == num.to_bits(),
    };
    let reciprocal = (1.0 / f64::from(den)).abs();
    let quotient = (f64::from(num) / f64::from(den)).abs();
    let smallest = f64::from(f32::MIN_POSITIVE);
    let denormal = |x: f64| x > 0.0 && x < smallest;
    let (scale, back) = scaling(
        &WIDTH32,
        operand(den),
        operand(num),
        chosen,
        denormal(reciprocal),
        denormal(quotient),
    );
    (scale.map_or(f32::NAN, |n| ldexp32(value, n)), back)
}

/// `v_div_scale_f64`.
pub(crate) fn div_scale64(value: f64, den: f64, num: f64) -> (f64, bool) {
    let operand = |x: f64| Operand {
        biased: (x.to_bits() >> 52 & 0x7ff) as i32,
        zero: x == 0.0,
        denormal: x.is_subnormal(),
    };
    let chosen = Chosen {
        denominator: value.to_bits() == den.to_bits(),
        numerator: value.to_bits() == num.to_bits(),
    };
    // A quotient that underflows to zero is denormal, too: its exact value is not zero.
    let tiny = |x: f64| x.is_subnormal() || x == 0.0;
    let (scale, back) = scaling(
        &WIDTH64,
        operand(den),
        operand(num),
        chosen,
        den.is_finite() && tiny(1.0 / den),
        den.is_finite() && tiny(num / den),
    );
    (scale.map_or(f64::NAN, |n| ldexp64(value, n)), back)
}

/// `v_div_fmas_f32`.
pub(crate) fn div_fmas32(a: f32, b: f32, c: f32, back: bool) -> f32 {
    if !back {
        return a.mul_add(b, c);
    }
    let up = c.to_bits() >> 23 & 255 > 127;
    // The product and its scaling are rounded once: f64 has the room for the fused result's sum
    // only where exponents are near, which they are for a quotient and its correction.
    let exact = f64::from(a).mul_add(f64::from(b), f64::from(c));
    ldexp64(exact, if up { 64 } else { -64 }) as f32
}

/// `v_div_fmas_f64`.
pub(crate) fn div_fmas64(a: f64, b: f64, c: f64, back: bool) -> f64 {
    let sum = a.mul_add(b, c);
    if !back {
        return sum;
    }
    let up = c.to_bits() >> 52 & 0x7ff > 1023;
    if up || !sum.is_finite() {
        return ldexp64(sum, if up { 128 } else { -128 });
    }
    // Scaling down to a denormal number rounds again. If the first rounding has led to the middle
    // between two, its error decides. The sum is near `c`, so that error is exact, as is the rest.
    let error = a.mul_add(b, c - sum);
    let result = ldexp64(sum, -128);
    let rest = sum - ldexp64(result, 128);
    let middle = rest.abs() == ldexp64(1.0, 127 - 1074);
    if !middle || error == 0.0 || (error > 0.0) != (rest > 0.0) {
        return result;
    }
    if (rest > 0.0) == sum.is_sign_positive() {
        f64::from_bits(result.to_bits() + 1)
    } else {
        f64::from_bits(result.to_bits() - 1)
    }
}

/// The cases in which a quotient is known without division.
fn fixup(quotient: f64, den: f64, num: f64) -> f64 {
    let negative = den.is_sign_negative() != num.is_sign_negative();
    let signed = |x: f64| if negative { -x } else { x };
    if num.is_nan() {
        quiet64(num)
    } else if den.is_nan() {
        quiet64(den)
    } else if (den == 0.0 && num == 0.0) || (den.is_infinite() && num.is_infinite()) {
        -f64::NAN.abs()
    } else if den == 0.0 || num.is_infinite() {
        signed(f64::INFINITY)
    } else if den.is_infinite() || num == 0.0 {
        signed(0.0)
    } else if quotient.is_nan() {
        // The steps before overflowed.
        signed(f64::INFINITY)
    } else {
        signed(quotient.abs())
    }
}

/// `v_div_fixup_f32`.
pub(crate) fn div_fixup32(quotient: f32, den: f32, num: f32) -> f32 {
    let far = (num.to_bits() >> 23 & 255) as i32 - (den.to_bits() >> 23 & 255) as i32;
    let quotient = if far < -150 && num != 0.0 && den.is_finite() {
        0.0
    } else {
        quotient
    };
    fixup(quotient.into(), den.into(), num.into()) as f32
}

/// `v_div_fixup_f64`.
pub(crate) fn div_fixup64(quotient: f64, den: f64, num: f64) -> f64 {
    let far = (num.to_bits() >> 52 & 0x7ff) as i32 - (den.to_bits() >> 52 & 0x7ff) as i32;
    let quotient = if far < -1075 && num != 0.0 && den.is_finite() {
        0.0
    } else {
        quotient
    };
    fixup(quotient, den, num)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The steps that compilers make of a division.
    fn divide64(num: f64, den: f64) -> f64 {
        let (scaled_den, _) = div_scale64(den, den, num);
        let mut r = 1.0 / scaled_den;
        for _ in 0..2 {
            let e = (-scaled_den).mul_add(r, 1.0);
            r = r.mul_add(e, r);
        }
        let (scaled_num, back) = div_scale64(num, den, num);
        let q = scaled_num * r;
        let e = (-scaled_den).mul_add(q, scaled_num);
        let sum = div_fmas64(e, r, q, back);
        div_fixup64(sum, den, num)
    }

    #[test]
    fn quotients_that_are_denormal_are_rounded_once() {
        let num = f64::from_bits(0x8123_63ba_a5ee_6629);
        let den = f64::from_bits(0x4112_c6bb_4896_35d8);
        assert_eq!(divide64(num, den).to_bits(), (num / den).to_bits());
    }
}
