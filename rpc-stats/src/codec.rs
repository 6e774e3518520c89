//! Numbers and text as the file has them.

use thiserror::Error;

/// The bytes are not what they should be.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("the bytes make no sense")]
pub(crate) struct Nonsense;

/// Appends to a buffer.
pub(crate) struct Encoder<'a>(pub(crate) &'a mut Vec<u8>);

impl Encoder<'_> {
    /// Seven bits a byte, lowest first; the high bit says that more follow.
    pub(crate) fn number(&mut self, number: impl Into<u64>) {
        let mut rest = number.into();
        while rest >= 0x80 {
            self.0.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.0.push(rest as u8);
    }

    pub(crate) fn count(&mut self, count: usize) {
        self.number(count as u64);
    }

    /// The length, then UTF-8.
    pub(crate) fn text(&mut self, text: &str) {
        self.count(text.len());
        self.0.extend_from_slice(text.as_bytes());
    }

    /// 0 for nothing, else the number and one more.
    pub(crate) fn option(&mut self, number: Option<u32>) {
        self.number(number.map_or(0, |number| u64::from(number) + 1));
    }
}

/// Takes from the front of a buffer, which may hold anything.
pub(crate) struct Decoder<'a>(pub(crate) &'a [u8]);

impl<'a> Decoder<'a> {
    fn byte(&mut self) -> Result<u8, Nonsense> {
        let (&byte, rest) = self.0.split_first().ok_or(Nonsense)?;
        self.0 = rest;
        Ok(byte)
    }

    pub(crate) fn number(&mut self) -> Result<u64, Nonsense> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7F);
            if bits << shift >> shift != bits {
                return Err(Nonsense);
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(Nonsense)
    }

    /// A number that has room in `N`.
    pub(crate) fn small<N: TryFrom<u64>>(&mut self) -> Result<N, Nonsense> {
        self.number()?.try_into().map_err(|_| Nonsense)
    }

    /// How many things follow: at most `most`, and no more than there are bytes.
    pub(crate) fn count(&mut self, most: usize) -> Result<usize, Nonsense> {
        let count = self.small()?;
        if count > most.min(self.0.len()) {
            return Err(Nonsense);
        }
        Ok(count)
    }

    pub(crate) fn text(&mut self) -> Result<String, Nonsense> {
        let length = self.count(usize::MAX)?;
        let (text, rest): (&'a [u8], _) = self.0.split_at_checked(length).ok_or(Nonsense)?;
        self.0 = rest;
        String::from_utf8(text.to_vec()).map_err(|_| Nonsense)
    }

    pub(crate) fn option(&mut self) -> Result<Option<u32>, Nonsense> {
        match self.number()? {
            0 => Ok(None),
            number => u32::try_from(number - 1).map(Some).map_err(|_| Nonsense),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(
            numbers: Vec<u64>, text: String, option: Option<u32>, cut in 0_usize..100
        ) {
            let mut bytes = Vec::new();
            let mut encoder = Encoder(&mut bytes);
            for &number in &numbers {
                encoder.number(number);
            }
            encoder.text(&text);
            encoder.option(option);
            let mut decoder = Decoder(&bytes);
            for &number in &numbers {
                prop_assert_eq!(decoder.number(), Ok(number));
            }
            prop_assert_eq!(decoder.text(), Ok(text));
            prop_assert_eq!(decoder.option(), Ok(option));
            prop_assert!(decoder.0.is_empty());
            let mut short = Decoder(&bytes[..bytes.len().saturating_sub(cut + 1)]);
            let read = (|| {
                for _ in &numbers {
                    short.number()?;
                }
                short.text()?;
                short.option()
            })();
            prop_assert_eq!(read, Err(Nonsense));
        }
    }

    #[test]
    fn numbers_have_64_bits() {
        let mut decoder = Decoder(&[0xFF; 20]);
        assert_eq!(decoder.number(), Err(Nonsense));
        let most = [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1];
        assert_eq!(Decoder(&most).number(), Ok(u64::MAX));
        assert_eq!(Decoder(&most).option(), Err(Nonsense));
        assert_eq!(Decoder(&most).small::<u32>(), Err(Nonsense));
    }
}
