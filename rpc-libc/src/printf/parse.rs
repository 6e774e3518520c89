//! A format, piece by piece.

use super::arguments::Argument;
use super::conversion::{Base, Conversion, Count, Flags, Piece, Style, What};

/// The pieces of a format without its NUL.
#[derive(Clone, Debug)]
pub struct Pieces<'f> {
    rest: &'f [u8],
}

/// The pieces of a format without its NUL.
pub const fn pieces(format: &[u8]) -> Pieces<'_> {
    Pieces { rest: format }
}

impl<'f> Iterator for Pieces<'f> {
    type Item = Piece<'f>;

    fn next(&mut self) -> Option<Piece<'f>> {
        let text = self.rest.iter().position(|&byte| byte == b'%');
        let text = text.unwrap_or(self.rest.len());
        if text > 0 {
            let (text, rest) = self.rest.split_at(text);
            self.rest = rest;
            return Some(Piece::Text(text));
        }
        if self.rest.is_empty() {
            return None;
        }
        let conversion = conversion(self.rest);
        self.rest = &self.rest[conversion.text.len()..];
        Some(Piece::Conversion(conversion))
    }
}

/// A place in a format.
struct Scanner<'f> {
    format: &'f [u8],
    at: usize,
}

impl Scanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.format.get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn flags(&mut self) -> Flags {
        let mut flags = Flags::default();
        while let Some(flag) = self.peek().and_then(Flags::of) {
            flags = flags.and(flag);
            self.at += 1;
        }
        flags
    }

    fn digits(&mut self) -> Option<u32> {
        let mut value = None;
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            let before = value.unwrap_or(0_u32).saturating_mul(10);
            value = Some(before.saturating_add(u32::from(digit - b'0')));
            self.at += 1;
        }
        value
    }

    fn count(&mut self) -> Option<Count> {
        if self.eat(b'*') {
            Some(Count::Star)
        } else {
            self.digits().map(Count::Given)
        }
    }

    fn length(&mut self) -> Length {
        let Some(byte) = self.peek() else {
            return Length::of(32);
        };
        self.at += 1;
        match byte {
            b'h' if self.eat(b'h') => Length::of(8),
            b'h' => Length::of(16),
            b'l' if self.eat(b'l') => Length::of(64),
            b'l' => Length {
                bits: Some(64),
                wide: true,
            },
            b'j' | b'z' | b't' | b'L' => Length::of(64),
            b'w' => {
                // The fast types of clang's GPU targets are no wider than the exact ones.
                self.eat(b'f');
                let bits = self.digits();
                let known = bits.filter(|bits| matches!(bits, 8 | 16 | 32 | 64));
                Length {
                    bits: known.map(|bits| bits as u8),
                    wide: false,
                }
            }
            _ => {
                self.at -= 1;
                Length::of(32)
            }
        }
    }
}

/// What stands before the letter.
struct Length {
    /// How many bits an integer has, unless nobody knows.
    bits: Option<u8>,
    /// Whether a character is a wide one.
    wide: bool,
}

impl Length {
    const fn of(bits: u8) -> Self {
        Self {
            bits: Some(bits),
            wide: false,
        }
    }
}

/// The conversion that a format, which begins with a `%`, begins with.
fn conversion(format: &[u8]) -> Conversion<'_> {
    let mut scanner = Scanner { format, at: 1 };
    let flags = scanner.flags();
    let width = scanner.count();
    let point = scanner.eat(b'.');
    let precision = point.then(|| scanner.count().unwrap_or(Count::Given(0)));
    let length = scanner.length();
    let what = match scanner.peek() {
        Some(letter) => {
            scanner.at += 1;
            what(letter, &length)
        }
        None => What::Itself(None),
    };
    Conversion {
        text: &format[..scanner.at],
        flags,
        width,
        precision,
        what,
    }
}

fn what(letter: u8, length: &Length) -> What {
    let unsigned = |base| length.bits.map(|bits| What::Unsigned(bits, base));
    let capital = letter.is_ascii_uppercase();
    let what = match letter {
        b'%' => Some(What::Percent),
        b'c' if length.wide => Some(What::Character),
        b'c' => Some(What::Byte),
        b'd' | b'i' => length.bits.map(What::Signed),
        b'u' => unsigned(Base::Decimal),
        b'o' => unsigned(Base::Octal),
        b'x' | b'X' => unsigned(Base::Hex(capital)),
        b'b' | b'B' => unsigned(Base::Binary(capital)),
        b'p' => Some(What::Pointer),
        // A wide string does not come over the wire, which counts bytes up to a zero one.
        b's' if length.wide => Some(What::Itself(Some(Argument::Word))),
        b's' => Some(What::String),
        b'f' | b'F' => Some(What::Float(Style::Fixed, capital)),
        b'e' | b'E' => Some(What::Float(Style::Exponent, capital)),
        b'g' | b'G' => Some(What::Float(Style::General, capital)),
        b'a' | b'A' => Some(What::Float(Style::Hex, capital)),
        // Off, but its pointer is there: what follows would get it.
        b'n' => Some(What::Itself(Some(Argument::Word))),
        _ => None,
    };
    what.unwrap_or(What::Itself(None))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(format: &str) -> Conversion<'_> {
        let mut pieces = pieces(format.as_bytes());
        let (first, second) = (pieces.next(), pieces.next());
        match (first, second) {
            (Some(Piece::Conversion(conversion)), None) => conversion,
            other => panic!("{format}: {other:?}"),
        }
    }

    #[test]
    fn a_format_comes_apart() {
        let all: Vec<_> = pieces(b"a%-+ #0*.*lldb%%").collect();
        let [
            Piece::Text(b"a"),
            Piece::Conversion(long),
            Piece::Text(b"b"),
            Piece::Conversion(percent),
        ] = all[..]
        else {
            panic!("{all:?}");
        };
        assert_eq!(long.text, b"%-+ #0*.*lld");
        let flags = long.flags;
        assert!(flags.left() && flags.plus() && flags.space());
        assert!(flags.alternate() && flags.zero());
        assert_eq!(long.what, What::Signed(64));
        let arguments: Vec<_> = long.arguments().collect();
        assert_eq!(arguments, [Argument::Int, Argument::Int, Argument::Word]);
        assert_eq!((percent.text, percent.what), (&b"%%"[..], What::Percent));
    }

    #[test]
    fn counts_are_bounded() {
        let given = |format| (only(format).width, only(format).precision);
        let count = |n| Some(Count::Given(n));
        assert_eq!(given("%d"), (None, None));
        assert_eq!(given("%.d"), (None, count(0)));
        assert_eq!(given("%07.012d"), (count(7), count(12)));
        assert_eq!(
            given("%99999999999.4294967296d"),
            (count(u32::MAX), count(u32::MAX))
        );
    }

    #[test]
    fn what_is_unknown_stands_for_itself() {
        for format in ["%", "%-5", "%5.", "%ll", "%y", "%m", "%w9d", "%wd", "%1$"] {
            let conversion = only(format);
            assert_eq!(conversion.text, format.as_bytes());
            assert_eq!(conversion.what, What::Itself(None), "{format}");
            assert_eq!(conversion.arguments().count(), 0, "{format}");
        }
        // The stars were there before it was seen to be unknown.
        assert_eq!(only("%**").arguments().count(), 1);
        assert_eq!(only("%*.*y").arguments().count(), 2);
        assert_eq!(only("%n").arguments().count(), 1);
        assert_eq!(only("%ls").arguments().count(), 1);
    }

    #[test]
    fn lengths() {
        for (format, bits) in [
            ("%hhd", 8),
            ("%hd", 16),
            ("%d", 32),
            ("%ld", 64),
            ("%lld", 64),
            ("%jd", 64),
            ("%zd", 64),
            ("%td", 64),
            ("%Ld", 64),
            ("%w8d", 8),
            ("%w16d", 16),
            ("%w32d", 32),
            ("%w64d", 64),
            ("%wf8d", 8),
            ("%wf16d", 16),
            ("%wf32d", 32),
            ("%wf64d", 64),
        ] {
            assert_eq!(only(format).what, What::Signed(bits), "{format}");
        }
    }
}
