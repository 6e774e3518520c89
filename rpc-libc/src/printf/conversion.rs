//! What a format consists of.

use super::arguments::Argument;

/// A part of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'f> {
    /// Bytes that are printed as they stand.
    Text(&'f [u8]),
    /// What begins with a `%`.
    Conversion(Conversion<'f>),
}

/// A conversion specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conversion<'f> {
    /// As it stands in the format.
    pub text: &'f [u8],
    /// Its flags.
    pub flags: Flags,
    /// The least bytes to print.
    pub width: Option<Count>,
    /// What is behind the point, 0 if nothing is.
    pub precision: Option<Count>,
    /// What is printed.
    pub what: What,
}

impl Conversion<'_> {
    /// The arguments that it takes, in order.
    pub fn arguments(&self) -> impl Iterator<Item = Argument> + use<> {
        let star = |count| (count == Some(Count::Star)).then_some(Argument::Int);
        [star(self.width), star(self.precision), self.what.argument()]
            .into_iter()
            .flatten()
    }
}

/// A width or a precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// Digits of the format; the largest value stands for all that are larger.
    Given(u32),
    /// The next argument, an `int`.
    Star,
}

/// Which of `-+ #0` a conversion has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u8);

impl Flags {
    const ALL: &'static [u8] = b"-+ #0";
    /// `-`.
    pub(super) const LEFT: Self = Self(1);

    /// The flag that a byte stands for.
    pub(super) fn of(byte: u8) -> Option<Self> {
        let place = Self::ALL.iter().position(|&flag| flag == byte)?;
        Some(Self(1 << place))
    }

    const fn has(self, place: u8) -> bool {
        self.0 >> place & 1 != 0
    }

    /// `-`: fill on the right.
    pub const fn left(self) -> bool {
        self.has(0)
    }

    /// `+`: a sign in any case.
    pub const fn plus(self) -> bool {
        self.has(1)
    }

    /// A space where no sign is.
    pub const fn space(self) -> bool {
        self.has(2)
    }

    /// `#`: the alternative form.
    pub const fn alternate(self) -> bool {
        self.has(3)
    }

    /// `0`: fill with zeros.
    pub const fn zero(self) -> bool {
        self.has(4)
    }

    /// Both sets.
    pub(super) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// What a conversion prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// `%`.
    Percent,
    /// `c`: a byte.
    Byte,
    /// `lc`: a character.
    Character,
    /// `d`, `i`, of so many bits.
    Signed(u8),
    /// `u`, `o`, `x`, `X`, `b`, `B`, of so many bits.
    Unsigned(u8, Base),
    /// `p`.
    Pointer,
    /// `s`.
    String,
    /// `f`, `e`, `g`, `a`, and whether in capitals.
    Float(Style, bool),
    /// Itself as it stands, since it is off or unknown; but its argument is taken.
    Itself(Option<Argument>),
}

impl What {
    /// Its argument.
    pub const fn argument(self) -> Option<Argument> {
        Some(match self {
            Self::Percent => return None,
            Self::Byte | Self::Character => Argument::Int,
            Self::Signed(bits) | Self::Unsigned(bits, _) => {
                if bits > 32 {
                    Argument::Word
                } else {
                    Argument::Int
                }
            }
            Self::Pointer | Self::String | Self::Float(..) => Argument::Word,
            Self::Itself(argument) => return argument,
        })
    }
}

/// How an unsigned number is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// `u`.
    Decimal,
    /// `o`.
    Octal,
    /// `x`, and whether in capitals.
    Hex(bool),
    /// `b`, and whether its prefix is in capitals.
    Binary(bool),
}

/// How a floating-point number is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// `f`.
    Fixed,
    /// `e`.
    Exponent,
    /// `g`.
    General,
    /// `a`.
    Hex,
}
