//! A text in the making.

use super::Error;
use super::arguments::{Arguments, Form};
use super::conversion::{Conversion, Count, Flags, Piece, What};
use super::float::float;
use super::integer::{address, extend, signed, truncate, unsigned};
use super::parse::pieces;
use super::text::{Part, Room, Spec, Text};

/// The longest text that C's result can tell of.
pub const MAX_TEXT: u64 = i32::MAX as u64;

/// A text in which strings are still missing: their arguments tell only where they lie on the
/// device. They are asked for from the last to the first, as the exchange wants it.
#[derive(Debug)]
pub struct Draft<R> {
    /// Up to the last missing string.
    text: Text<R>,
    holes: Vec<Hole>,
    /// What follows the last missing string, its last byte first.
    tail: Vec<u8>,
    /// The least bytes of all missing strings.
    promised: u64,
}

/// Where a string is missing.
#[derive(Debug)]
struct Hole {
    at: usize,
    address: u64,
    spec: Spec,
}

impl<R: Room> Draft<R> {
    /// What a format, without its NUL, makes of the arguments in `block`: a text of at most `limit`
    /// bytes, and never more than [`MAX_TEXT`], whose memory comes from `room`.
    ///
    /// # Errors
    /// When the block is too short, or the text too long, or a `%lc` is no character.
    pub fn new(
        format: &[u8],
        block: &[u8],
        form: Form,
        (limit, room): (u64, R),
    ) -> Result<Self, Error> {
        let mut draft = Self {
            text: Text {
                bytes: Vec::new(),
                elsewhere: 0,
                limit: limit.min(MAX_TEXT),
                room,
            },
            holes: Vec::new(),
            tail: Vec::new(),
            promised: 0,
        };
        let mut arguments = Arguments::new(block, form);
        for piece in pieces(format) {
            match piece {
                Piece::Text(text) => draft.text.push(text)?,
                Piece::Conversion(conversion) => draft.convert(&conversion, &mut arguments)?,
            }
        }
        Ok(draft)
    }

    /// Allows a text of `limit` bytes from now on, but never more than [`MAX_TEXT`].
    pub fn set_limit(&mut self, limit: u64) {
        self.text.limit = limit.min(MAX_TEXT);
    }

    /// Where the last missing string lies on the device; `None` if no string is missing.
    pub fn wanted(&self) -> Option<u64> {
        self.holes.last().map(|hole| hole.address)
    }

    /// Puts in the last missing string, which comes without its NUL.
    ///
    /// # Errors
    /// When the text becomes too long.
    pub fn supply(&mut self, string: &[u8]) -> Result<(), Error> {
        let Some(hole) = self.holes.pop() else {
            return Ok(());
        };
        let behind = self.text.bytes.len() - hole.at;
        let fits = self.text.room.take(behind as u64) && self.tail.try_reserve(behind).is_ok();
        if !fits {
            return Err(Error::TooLong);
        }
        self.tail.extend(self.text.bytes.drain(hole.at..).rev());
        self.promised -= u64::from(hole.spec.width);
        self.text.elsewhere = self.promised + self.tail.len() as u64;
        let string = cut(string, hole.spec.precision);
        self.text.field(hole.spec, false, b"", &[string])
    }

    /// The text, in which what is still missing is left out, and what its memory comes from.
    ///
    /// # Errors
    /// When there is no room to put it together.
    pub fn finish(mut self) -> Result<(Vec<u8>, R), Error> {
        self.tail.reverse();
        self.text.elsewhere = 0;
        if self.text.bytes.is_empty() {
            return Ok((self.tail, self.text.room));
        }
        self.text.push(&self.tail)?;
        Ok((self.text.bytes, self.text.room))
    }

    fn convert(
        &mut self,
        conversion: &Conversion<'_>,
        arguments: &mut Arguments<'_>,
    ) -> Result<(), Error> {
        if let What::Itself(_) = conversion.what {
            conversion
                .arguments()
                .try_for_each(|argument| arguments.skip(argument))?;
            return self.text.push(conversion.text);
        }
        let spec = resolve(conversion, arguments)?;
        let text = &mut self.text;
        match conversion.what {
            What::Percent => text.push(b"%"),
            What::Byte => {
                let byte = [arguments.int()? as u8];
                text.field(spec, false, b"", &[Part::Bytes(&byte)])
            }
            What::Character => {
                let code = arguments.int()? as u32;
                let character = char::from_u32(code).ok_or(Error::Character { code })?;
                let bytes = character.encode_utf8(&mut [0; 4]).as_bytes().to_vec();
                text.field(spec, false, b"", &[Part::Bytes(&bytes)])
            }
            What::Signed(bits) => signed(text, spec, extend(integer(arguments, bits)?, bits)),
            What::Unsigned(bits, base) => {
                let value = truncate(integer(arguments, bits)?, bits);
                unsigned(text, spec, value, base)
            }
            What::Pointer => pointer(text, spec, arguments.word()?),
            What::String => self.string(spec, arguments.word()?),
            What::Float(style, capital) => {
                let value = f64::from_bits(arguments.word()?);
                float(text, spec, (style, capital), value)
            }
            What::Itself(_) => Ok(()),
        }
    }

    fn string(&mut self, spec: Spec, address: u64) -> Result<(), Error> {
        const NULL: &[u8] = b"(null)";
        if address == 0 {
            // All of it or nothing, as C libraries of hosts have it.
            let room = spec
                .precision
                .is_none_or(|most| most as usize >= NULL.len());
            let shown = if room { NULL } else { b"" };
            return self.text.field(spec, false, b"", &[Part::Bytes(shown)]);
        }
        self.promised += u64::from(spec.width);
        self.text.elsewhere = self.promised;
        // Seen before the strings are fetched.
        self.text.push(b"")?;
        let fits =
            self.text.room.take(size_of::<Hole>() as u64) && self.holes.try_reserve(1).is_ok();
        if !fits {
            return Err(Error::TooLong);
        }
        self.holes.push(Hole {
            at: self.text.bytes.len(),
            address,
            spec,
        });
        Ok(())
    }
}

/// Takes the stars of a conversion.
fn resolve(conversion: &Conversion<'_>, arguments: &mut Arguments<'_>) -> Result<Spec, Error> {
    let mut flags: Flags = conversion.flags;
    let width = match conversion.width {
        None => 0,
        Some(Count::Given(width)) => width,
        Some(Count::Star) => {
            let width = arguments.int()?;
            if width < 0 {
                flags = flags.and(Flags::LEFT);
            }
            width.unsigned_abs()
        }
    };
    let precision = match conversion.precision {
        None => None,
        Some(Count::Given(precision)) => Some(precision),
        Some(Count::Star) => u32::try_from(arguments.int()?).ok(),
    };
    // Even where it would mean nothing, as for a string.
    if u64::from(width.max(precision.unwrap_or(0))) > MAX_TEXT {
        return Err(Error::TooLong);
    }
    Ok(Spec {
        flags,
        width,
        precision,
    })
}

/// The argument of an integer of so many bits; higher bits mean nothing.
fn integer(arguments: &mut Arguments<'_>, bits: u8) -> Result<u64, Error> {
    if bits > 32 {
        arguments.word()
    } else {
        arguments.int().map(|value| value as u64)
    }
}

fn pointer<R: Room>(text: &mut Text<R>, spec: Spec, value: u64) -> Result<(), Error> {
    if value == 0 {
        return text.field(spec, false, b"", &[Part::Bytes(b"(nullptr)")]);
    }
    address(text, spec, value)
}

/// The part of a string that is printed.
fn cut(string: &[u8], precision: Option<u32>) -> Part<'_> {
    let most = precision.map_or(string.len(), |most| most as usize);
    Part::Bytes(&string[..most.min(string.len())])
}
