//! The block of arguments that a format asks for.

use super::Error;
use super::conversion::Piece;
use super::parse::pieces;

/// How the arguments lie in their block, which always ends with the last one's last byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Each at a multiple of its size, as on NVIDIA's GPUs.
    Natural,
    /// One after the other, as on AMD's GPUs.
    Packed,
}

/// An argument, after C's promotions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// `int`, and what is promoted to it: 4 bytes.
    Int,
    /// `long`, `size_t`, a pointer, `double`, `long double` and the like: 8 bytes.
    Word,
}

impl Argument {
    /// Its bytes, and what its address is a multiple of in the natural form.
    pub const fn size(self) -> usize {
        match self {
            Self::Int => 4,
            Self::Word => 8,
        }
    }
}

impl Form {
    /// Where an argument of `size` bytes lies if `offset` bytes are before it.
    const fn place(self, offset: usize, size: usize) -> usize {
        match self {
            Self::Natural => offset.next_multiple_of(size),
            Self::Packed => offset,
        }
    }
}

/// The bytes of arguments that a format, without its NUL, asks for.
pub fn block_size(format: &[u8], form: Form) -> usize {
    let mut end = 0;
    for piece in pieces(format) {
        if let Piece::Conversion(conversion) = piece {
            for argument in conversion.arguments() {
                end = form.place(end, argument.size()) + argument.size();
            }
        }
    }
    end
}

/// Takes arguments from their block, one after the other.
#[derive(Clone, Debug)]
pub(super) struct Arguments<'b> {
    block: &'b [u8],
    form: Form,
    at: usize,
}

impl<'b> Arguments<'b> {
    pub(super) const fn new(block: &'b [u8], form: Form) -> Self {
        Self { block, form, at: 0 }
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let start = self.form.place(self.at, N);
        let rest = self.block.get(start..).unwrap_or_default();
        let bytes = *rest.first_chunk().ok_or(Error::Short {
            needed: start + N,
            there: self.block.len(),
        })?;
        self.at = start + N;
        Ok(bytes)
    }

    pub(super) fn int(&mut self) -> Result<i32, Error> {
        self.take().map(i32::from_le_bytes)
    }

    pub(super) fn word(&mut self) -> Result<u64, Error> {
        self.take().map(u64::from_le_bytes)
    }

    /// Passes over an argument.
    pub(super) fn skip(&mut self, argument: Argument) -> Result<(), Error> {
        match argument {
            Argument::Int => self.int().map(drop),
            Argument::Word => self.word().map(drop),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_end_with_their_last_argument() {
        for (format, natural, packed) in [
            ("", 0, 0),
            ("100%% text", 0, 0),
            ("%d", 4, 4),
            ("%s", 8, 8),
            ("%d%s", 16, 12),
            ("%s%d", 12, 12),
            ("%c%c%f%hhd%Lf", 32, 28),
            ("%*.*f", 16, 16),
            ("%d%*.*f", 24, 20),
            ("%n%m%1$d%d", 12, 12),
            ("%**d%6d", 8, 8),
            ("%**.**f", 4, 4),
        ] {
            let sizes =
                [Form::Natural, Form::Packed].map(|form| block_size(format.as_bytes(), form));
            assert_eq!(sizes, [natural, packed], "{format}");
        }
    }

    #[test]
    fn nothing_is_taken_from_behind_the_end() {
        let block = [1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0];
        let mut packed = Arguments::new(&block[..12], Form::Packed);
        assert_eq!((packed.int(), packed.word()), (Ok(1), Ok(0x3_0000_0002)));
        assert!(packed.int().is_err());
        let mut natural = Arguments::new(&block, Form::Natural);
        assert_eq!(natural.int(), Ok(1));
        assert!(natural.word().is_err(), "a byte is missing");
        assert_eq!(natural.int(), Ok(2), "what is there can be had");
    }
}
