//! Floating-point numbers.

use std::fmt;
use std::io::Write;

use super::Error;
use super::conversion::Style;
use super::text::{Part, Room, Spec, Text, sign};

/// The most decimal places that a `double` has, and the most digits behind its first: all that
/// would follow are zeros.
const PLACES: u64 = 1074;
const DIGITS: u64 = 766;
/// Holds the longest number with all its places.
const BUFFER: usize = 309 + 1 + PLACES as usize + 8;

pub(super) fn float<R: Room>(
    text: &mut Text<R>,
    spec: Spec,
    (style, capital): (Style, bool),
    value: f64,
) -> Result<(), Error> {
    let number = Number {
        value: value.abs(),
        capital,
        sign: sign(spec.flags, value.is_sign_negative()),
    };
    let precision = u64::from(spec.precision.unwrap_or(6));
    if !value.is_finite() {
        return number.special(text, spec);
    }
    match style {
        Style::Fixed => number.fixed(text, spec, precision, true),
        Style::Exponent => number.exponent(text, spec, precision, true),
        Style::General => number.general(text, spec, precision),
        Style::Hex => number.hex(text, spec),
    }
}

struct Number {
    /// Without its sign.
    value: f64,
    capital: bool,
    sign: &'static [u8],
}

impl Number {
    fn special<R: Room>(&self, text: &mut Text<R>, spec: Spec) -> Result<(), Error> {
        let word: &[u8] = match (self.value.is_nan(), self.capital) {
            (true, false) => b"nan",
            (true, true) => b"NAN",
            (false, false) => b"inf",
            (false, true) => b"INF",
        };
        text.field(spec, false, self.sign, &[Part::Bytes(word)])
    }

    /// `keep`: zeros at the end stay where they are.
    fn fixed<R: Room>(
        &self,
        text: &mut Text<R>,
        spec: Spec,
        precision: u64,
        keep: bool,
    ) -> Result<(), Error> {
        let mut buffer = [0; BUFFER];
        let places = precision.min(PLACES) as usize;
        let digits = print(&mut buffer, format_args!("{:.places$}", self.value));
        let more = precision - places as u64;
        let [digits, point, zeros] = fraction(digits, spec, more, keep);
        text.field(spec, true, self.sign, &[digits, point, zeros])
    }

    fn exponent<R: Room>(
        &self,
        text: &mut Text<R>,
        spec: Spec,
        precision: u64,
        keep: bool,
    ) -> Result<(), Error> {
        let mut buffer = [0; BUFFER];
        let (digits, exponent) = self.scientific(&mut buffer, precision);
        let more = precision.saturating_sub(DIGITS);
        let [digits, point, zeros] = fraction(digits, spec, more, keep);
        let mut buffer = [0; 8];
        let letter = if self.capital { 'E' } else { 'e' };
        let (sign, size) = (plus_or_minus(exponent), exponent.unsigned_abs());
        let exponent = print(&mut buffer, format_args!("{letter}{sign}{size:02}"));
        let parts = [digits, point, zeros, Part::Bytes(exponent)];
        text.field(spec, true, self.sign, &parts)
    }

    fn general<R: Room>(
        &self,
        text: &mut Text<R>,
        spec: Spec,
        precision: u64,
    ) -> Result<(), Error> {
        let places = precision.max(1) - 1;
        let mut buffer = [0; BUFFER];
        let exponent = i64::from(self.scientific(&mut buffer, places).1);
        let keep = spec.flags.alternate();
        if exponent < -4 || exponent > places as i64 {
            self.exponent(text, spec, places, keep)
        } else {
            self.fixed(text, spec, (places as i64 - exponent) as u64, keep)
        }
    }

    /// The first digit, `precision` digits behind it, as far as they can be others than zero, and
    /// the exponent.
    fn scientific<'b>(&self, buffer: &'b mut [u8], precision: u64) -> (&'b [u8], i32) {
        let places = precision.min(DIGITS) as usize;
        let printed = print(buffer, format_args!("{:.places$e}", self.value));
        let place = printed.iter().position(|&byte| byte == b'e');
        let (digits, exponent) = printed.split_at(place.unwrap_or(printed.len()));
        let exponent = exponent.get(1..).unwrap_or_default();
        let exponent = std::str::from_utf8(exponent).map_or(Ok(0), str::parse);
        (digits, exponent.unwrap_or(0))
    }

    fn hex<R: Room>(&self, text: &mut Text<R>, spec: Spec) -> Result<(), Error> {
        const PLACES: u32 = 13;
        let bits = self.value.to_bits();
        let (mut mantissa, biased) = (bits & ((1 << 52) - 1), (bits >> 52) as i32);
        let exponent = match (biased, mantissa) {
            (0, 0) => 0,
            (0, _) => -1022,
            _ => {
                mantissa |= 1 << 52;
                biased - 1023
            }
        };
        // All digits, or as many as are there, or as many as are asked for.
        let places = match spec.precision {
            None => PLACES - ((mantissa | 1 << 52).trailing_zeros() / 4).min(PLACES),
            Some(places) => places.min(PLACES),
        };
        let unused = (PLACES - places) * 4;
        mantissa = round_to_even(mantissa, unused);
        let (whole, part) = (
            mantissa >> (places * 4),
            mantissa & ((1 << (places * 4)) - 1),
        );
        let point = if spec.flags.alternate() || spec.precision.unwrap_or(places) > 0 {
            "."
        } else {
            ""
        };
        let zeros = u64::from(spec.precision.map_or(0, |asked| asked - places));
        let (mut digits, mut end) = ([0; 32], [0; 8]);
        let places = places as usize;
        let shown = if places > 0 {
            print(&mut digits, format_args!("{whole}{point}{part:0places$x}"))
        } else {
            print(&mut digits, format_args!("{whole}{point}"))
        };
        let shown = shown.len();
        let (sign, size) = (plus_or_minus(exponent), exponent.unsigned_abs());
        let end_length = print(&mut end, format_args!("p{sign}{size}")).len();
        let mut prefix = [self.sign, b"0x"].concat();
        if self.capital {
            for bytes in [&mut digits[..], &mut end, &mut prefix] {
                bytes.make_ascii_uppercase();
            }
        }
        let parts = [
            Part::Bytes(&digits[..shown]),
            Part::Zeros(zeros),
            Part::Bytes(&end[..end_length]),
        ];
        text.field(spec, true, &prefix, &parts)
    }
}

/// Digits with a point in them or none, `more` zeros behind them, and a point between the two if
/// the alternative form wants one there. Without `keep` zeros at the end are left out.
fn fraction(digits: &[u8], spec: Spec, more: u64, keep: bool) -> [Part<'_>; 3] {
    let has_point = digits.contains(&b'.');
    if keep {
        let point: &[u8] = if !has_point && spec.flags.alternate() {
            b"."
        } else {
            b""
        };
        return [Part::Bytes(digits), Part::Bytes(point), Part::Zeros(more)];
    }
    let mut digits = digits;
    if has_point {
        while let [rest @ .., b'0'] = digits {
            digits = rest;
        }
        if let [rest @ .., b'.'] = digits {
            digits = rest;
        }
    }
    [Part::Bytes(digits), Part::Zeros(0), Part::Zeros(0)]
}

/// `value` without its low `unused` bits, rounded to nearest, ties to even.
const fn round_to_even(value: u64, unused: u32) -> u64 {
    if unused == 0 {
        return value;
    }
    let (rest, half) = (value & ((1 << unused) - 1), 1 << (unused - 1));
    let kept = value >> unused;
    if rest > half || rest == half && kept & 1 != 0 {
        kept + 1
    } else {
        kept
    }
}

const fn plus_or_minus(exponent: i32) -> char {
    if exponent < 0 { '-' } else { '+' }
}

/// What is printed, at the start of a buffer that has room for it.
fn print<'b>(buffer: &'b mut [u8], what: fmt::Arguments<'_>) -> &'b [u8] {
    let mut rest = &mut *buffer;
    // The sizes of all buffers here are those of the longest number: it cannot fail.
    let _ = rest.write_fmt(what);
    let left = rest.len();
    &buffer[..buffer.len() - left]
}
