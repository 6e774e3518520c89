//! Vector comparisons, which write a bit for each lane: to a scalar register, or to EXEC (`cmpx`).

use crate::float;
use crate::isa::Kind::{self, D, F, H, I, M, None as N, Q, W};
use crate::isa::operand::{EXEC, VCC};
use crate::isa::{Entry, e, form};

/// Where the short encoding of comparison `op` puts its bits.
pub(crate) fn destination(op: u16) -> u16 {
    if op < 0x80 { VCC } else { EXEC }
}

const fn two(kind: Kind) -> crate::isa::Form {
    form(M, [kind, kind, N])
}

/// Both forms of one comparison.
macro_rules! pair {
    ($op:expr, $cond:literal, $type:literal, $kind:expr, $f:expr) => {
        [
            e(
                $op,
                concat!("v_cmp_", $cond, "_", $type),
                $kind,
                |w, i, _| w.lane_bits(i, |w, l| $f(w, i, l)),
            ),
            e(
                $op + 0x80,
                concat!("v_cmpx_", $cond, "_", $type),
                $kind,
                |w, i, _| w.lane_bits(i, |w, l| $f(w, i, l)),
            ),
        ]
    };
}

/// The comparisons of an integer type; those that are always false or true exist for 32 and 64 bits.
macro_rules! integers {
    ($base:expr, $type:literal, $kind:expr, $read:ident, $int:ty) => {
        &[
            pair!(
                $base + 1,
                "lt",
                $type,
                two($kind),
                |w: &crate::wave::Wave, i: &crate::isa::Inst, l| (w.$read(&i.src[0], l) as $int)
                    < w.$read(&i.src[1], l) as $int
            ),
            pair!(
                $base + 2,
                "eq",
                $type,
                two($kind),
                |w: &crate::wave::Wave, i: &crate::isa::Inst, l| w.$read(&i.src[0], l)
                    == w.$read(&i.src[1], l)
            ),
            pair!(
                $base + 3,
                "le",
                $type,
                two($kind),
                |w: &crate::wave::Wave, i: &crate::isa::Inst, l| w.$read(&i.src[0], l) as $int
                    <= w.$read(&i.src[1], l) as $int
            ),
            pair!(
                $base + 4,
                "gt",
                $type,
                two($kind),
                |w: &crate::wave::Wave, i: &crate::isa::Inst, l| w.$read(&i.src[0], l) as $int
                    > w.$read(&i.src[1], l) as $int
            ),
            pair!(
                $base + 5,
                "ne",
                $type,
                two($kind),
                |w: &crate::wave::Wave, i: &crate::isa::Inst, l| w.$read(&i.src[0], l)
                    != w.$read(&i.src[1], l)
            ),
            pair!(
                $base + 6,
                "ge",
                $type,
                two($kind),
                |w: &crate::wave::Wave, i: &crate::isa::Inst, l| w.$read(&i.src[0], l) as $int
                    >= w.$read(&i.src[1], l) as $int
            ),
        ]
    };
}

/// Always false, always true.
macro_rules! constant {
    ($base:expr, $type:literal, $kind:expr) => {
        &[
            pair!(
                $base,
                "f",
                $type,
                two($kind),
                |_: &crate::wave::Wave, _: &crate::isa::Inst, _| false
            ),
            pair!(
                $base + 7,
                "t",
                $type,
                two($kind),
                |_: &crate::wave::Wave, _: &crate::isa::Inst, _| true
            ),
        ]
    };
}

/// The comparisons of a float type, by the order of the operands (`None` if one is NaN).
macro_rules! floats {
    ($base:expr, $type:literal, $kind:expr, $read:ident; $($n:literal $cond:literal $f:expr;)*) => {
        &[$(
            pair!($base + $n, $cond, $type, two($kind), |w: &crate::wave::Wave, i: &crate::isa::Inst, l| {
                let test: fn(Option<std::cmp::Ordering>) -> bool = $f;
                test(w.$read(&i.src[0], l).partial_cmp(&w.$read(&i.src[1], l)))
            }),
        )*]
    };
    ($base:expr, $type:literal, $kind:expr, $read:ident) => {
        floats! { $base, $type, $kind, $read;
            0 "f" |_| false;
            1 "lt" |o| o.is_some_and(std::cmp::Ordering::is_lt);
            2 "eq" |o| o.is_some_and(std::cmp::Ordering::is_eq);
            3 "le" |o| o.is_some_and(std::cmp::Ordering::is_le);
            4 "gt" |o| o.is_some_and(std::cmp::Ordering::is_gt);
            5 "lg" |o| o.is_some_and(std::cmp::Ordering::is_ne);
            6 "ge" |o| o.is_some_and(std::cmp::Ordering::is_ge);
            7 "o" |o| o.is_some();
            8 "u" |o| o.is_none();
            9 "nge" |o| !o.is_some_and(std::cmp::Ordering::is_ge);
            10 "nlg" |o| !o.is_some_and(std::cmp::Ordering::is_ne);
            11 "ngt" |o| !o.is_some_and(std::cmp::Ordering::is_gt);
            12 "nle" |o| !o.is_some_and(std::cmp::Ordering::is_le);
            13 "neq" |o| !o.is_some_and(std::cmp::Ordering::is_eq);
            14 "nlt" |o| !o.is_some_and(std::cmp::Ordering::is_lt);
            15 "t" |_| true;
        }
    };
}

static I16: &[[Entry; 2]] = integers!(48, "i16", H, r16, i16);
static U16: &[[Entry; 2]] = integers!(56, "u16", H, r16, u16);
static I32: &[[Entry; 2]] = integers!(64, "i32", W, r32, i32);
static U32: &[[Entry; 2]] = integers!(72, "u32", W, r32, u32);
static I64: &[[Entry; 2]] = integers!(80, "i64", I, r64, i64);
static U64: &[[Entry; 2]] = integers!(88, "u64", D, r64, u64);
static CONST_I32: &[[Entry; 2]] = constant!(64, "i32", W);
static CONST_U32: &[[Entry; 2]] = constant!(72, "u32", W);
static CONST_I64: &[[Entry; 2]] = constant!(80, "i64", I);
static CONST_U64: &[[Entry; 2]] = constant!(88, "u64", D);
static F16: &[[Entry; 2]] = floats!(0, "f16", F, f16);
static F32: &[[Entry; 2]] = floats!(16, "f32", W, f32);
static F64: &[[Entry; 2]] = floats!(32, "f64", Q, f64);
static CLASS: &[[Entry; 2]] = &[
    pair!(
        126,
        "class",
        "f32",
        two(W),
        |w: &crate::wave::Wave, i: &crate::isa::Inst, l| {
            float::class32(w.f32(&i.src[0], l), w.r32(&i.src[1], l))
        }
    ),
    pair!(
        127,
        "class",
        "f64",
        form(M, [Q, W, N]),
        |w: &crate::wave::Wave, i: &crate::isa::Inst, l| {
            float::class64(w.f64(&i.src[0], l), w.r32(&i.src[1], l))
        }
    ),
];

/// All comparisons.
pub(super) fn tables() -> Vec<&'static [Entry]> {
    let groups = [
        F16, F32, F64, I16, U16, I32, U32, I64, U64, CONST_I32, CONST_U32, CONST_I64, CONST_U64,
        CLASS,
    ];
    groups
        .into_iter()
        .map(<[[Entry; 2]]>::as_flattened)
        .collect()
}
