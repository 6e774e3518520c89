//! A text that grows within bounds.

use super::Error;
use super::conversion::Flags;

/// What bounds the memory that texts take.
pub trait Room {
    /// Takes `bytes` more, for as long as the text is there; whether there were as many.
    fn take(&mut self, bytes: u64) -> bool;
}

/// All memory there is.
impl Room for () {
    fn take(&mut self, _: u64) -> bool {
        true
    }
}

impl Room for rpc_server::Reservation {
    fn take(&mut self, bytes: u64) -> bool {
        self.grow(bytes)
    }
}

/// A conversion's flags and numbers, when the stars are known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spec {
    pub(super) flags: Flags,
    pub(super) width: u32,
    pub(super) precision: Option<u32>,
}

/// A part of what a conversion prints.
#[derive(Clone, Copy)]
pub(super) enum Part<'p> {
    Bytes(&'p [u8]),
    Zeros(u64),
}

impl Part<'_> {
    const fn len(self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Zeros(count) => count,
        }
    }
}

#[derive(Debug)]
pub(super) struct Text<R> {
    pub(super) bytes: Vec<u8>,
    /// How much of the whole is, or will be, elsewhere.
    pub(super) elsewhere: u64,
    /// The most bytes of the whole.
    pub(super) limit: u64,
    pub(super) room: R,
}

impl<R: Room> Text<R> {
    /// Makes room for `count` bytes more, before any of them is there.
    fn grow(&mut self, count: u64) -> Result<(), Error> {
        let length = (self.bytes.len() as u64).saturating_add(self.elsewhere);
        if length.saturating_add(count) <= self.limit
            && self.room.take(count)
            && self.bytes.try_reserve(count as usize).is_ok()
        {
            Ok(())
        } else {
            Err(Error::TooLong)
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.grow(bytes.len() as u64)?;
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn fill(&mut self, byte: u8, count: u64) {
        self.bytes.resize(self.bytes.len() + count as usize, byte);
    }

    /// Prints `prefix` and `parts` in a field of the width that is asked for, filled with spaces,
    /// or with zeros between them if those are asked for and `zeros` allows it.
    pub(super) fn field(
        &mut self,
        spec: Spec,
        zeros: bool,
        prefix: &[u8],
        parts: &[Part<'_>],
    ) -> Result<(), Error> {
        let inside = prefix.len() as u64 + parts.iter().map(|part| part.len()).sum::<u64>();
        let missing = u64::from(spec.width).saturating_sub(inside);
        self.grow(inside + missing)?;
        let (mut before, mut between, mut after) = (0, 0, 0);
        if spec.flags.left() {
            after = missing;
        } else if zeros && spec.flags.zero() {
            between = missing;
        } else {
            before = missing;
        }
        self.fill(b' ', before);
        self.bytes.extend_from_slice(prefix);
        self.fill(b'0', between);
        for &part in parts {
            match part {
                Part::Bytes(bytes) => self.bytes.extend_from_slice(bytes),
                Part::Zeros(count) => self.fill(b'0', count),
            }
        }
        self.fill(b' ', after);
        Ok(())
    }
}

/// What stands before a number.
pub(super) const fn sign(flags: Flags, negative: bool) -> &'static [u8] {
    if negative {
        b"-"
    } else if flags.plus() {
        b"+"
    } else if flags.space() {
        b" "
    } else {
        b""
    }
}
