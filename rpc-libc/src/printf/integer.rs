//! Integers.

use super::Error;
use super::conversion::Base;
use super::text::{Part, Room, Spec, Text, sign};

/// The low `bits` bits of `value` as a two's complement, extended.
pub(super) const fn extend(value: u64, bits: u8) -> i64 {
    let unused = 64 - bits as u32;
    (value << unused) as i64 >> unused
}

/// The low `bits` bits of `value`.
pub(super) const fn truncate(value: u64, bits: u8) -> u64 {
    let unused = 64 - bits as u32;
    value << unused >> unused
}

pub(super) fn signed<R: Room>(text: &mut Text<R>, spec: Spec, value: i64) -> Result<(), Error> {
    let sign = sign(spec.flags, value < 0);
    number(text, spec, sign, value.unsigned_abs(), Base::Decimal)
}

pub(super) fn unsigned<R: Room>(
    text: &mut Text<R>,
    spec: Spec,
    value: u64,
    base: Base,
) -> Result<(), Error> {
    let prefix: &[u8] = match base {
        _ if value == 0 || !spec.flags.alternate() => b"",
        Base::Decimal | Base::Octal => b"",
        Base::Hex(false) => b"0x",
        Base::Hex(true) => b"0X",
        Base::Binary(false) => b"0b",
        Base::Binary(true) => b"0B",
    };
    number(text, spec, prefix, value, base)
}

/// With the flags of a signed number, as glibc has it.
pub(super) fn address<R: Room>(text: &mut Text<R>, spec: Spec, value: u64) -> Result<(), Error> {
    let prefix = [sign(spec.flags, false), b"0x"].concat();
    number(text, spec, &prefix, value, Base::Hex(false))
}

fn number<R: Room>(
    text: &mut Text<R>,
    spec: Spec,
    prefix: &[u8],
    value: u64,
    base: Base,
) -> Result<(), Error> {
    let mut buffer = [0; 64];
    let digits = digits(&mut buffer, value, base);
    // Zero without digits, if no digit is asked for.
    let digits = if value == 0 && spec.precision == Some(0) {
        &[]
    } else {
        digits
    };
    let least = u64::from(spec.precision.unwrap_or(0));
    let mut zeros = least.saturating_sub(digits.len() as u64);
    let octal = matches!(base, Base::Octal) && spec.flags.alternate();
    if octal && zeros == 0 && digits.first() != Some(&b'0') {
        zeros = 1;
    }
    let parts = [Part::Zeros(zeros), Part::Bytes(digits)];
    text.field(spec, spec.precision.is_none(), prefix, &parts)
}

/// The digits of a number, at least one.
fn digits(buffer: &mut [u8; 64], mut value: u64, base: Base) -> &[u8] {
    let radix = match base {
        Base::Decimal => 10,
        Base::Octal => 8,
        Base::Hex(_) => 16,
        Base::Binary(_) => 2,
    };
    let capital = matches!(base, Base::Hex(true));
    let table: &[u8; 16] = if capital {
        b"0123456789ABCDEF"
    } else {
        b"0123456789abcdef"
    };
    let mut start = buffer.len();
    loop {
        start -= 1;
        buffer[start] = table[(value % radix) as usize];
        value /= radix;
        if value == 0 {
            return &buffer[start..];
        }
    }
}
