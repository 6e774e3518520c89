//! Arguments and environment.

use core::fmt;
use core::marker::PhantomData;
use core::str::{FromStr, Utf8Error};

/// What the host gave the program.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    count: usize,
    args: *const *const u8,
    vars: *const *const u8,
}

/// Bytes that are meant as text: displayed with what is not UTF-8 replaced.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Text<'p>(&'p [u8]);

impl Program {
    /// The program whose kernel got these.
    ///
    /// # Safety
    /// `args` points to `count` pointers and `vars` to pointers up to a null one, all to
    /// NUL-terminated strings that nobody changes while this value or what it gave out is used.
    pub unsafe fn new(count: i32, args: *const *const u8, vars: *const *const u8) -> Self {
        Self {
            count: usize::try_from(count).unwrap_or(0),
            args,
            vars,
        }
    }

    /// The arguments; the first is the image's path.
    pub fn args(&self) -> impl ExactSizeIterator<Item = Text<'_>> + Clone {
        // SAFETY: `new`'s caller vouches for each of `count` pointers.
        (0..self.count).map(|i| unsafe { Text::at(*self.args.add(i)) })
    }

    /// The argument number `index`; 0 is the image's path.
    pub fn arg(&self, index: usize) -> Option<Text<'_>> {
        self.args().nth(index)
    }

    /// The environment, each as `NAME=value`.
    pub fn vars(&self) -> impl Iterator<Item = Text<'_>> {
        Vars {
            next: self.vars,
            program: PhantomData,
        }
    }

    /// The value of an environment variable.
    pub fn var(&self, name: &str) -> Option<Text<'_>> {
        self.vars().find_map(|Text(entry)| {
            entry
                .strip_prefix(name.as_bytes())?
                .strip_prefix(b"=")
                .map(Text)
        })
    }
}

struct Vars<'p> {
    next: *const *const u8,
    program: PhantomData<&'p Program>,
}

impl<'p> Iterator for Vars<'p> {
    type Item = Text<'p>;

    fn next(&mut self) -> Option<Text<'p>> {
        if self.next.is_null() {
            return None;
        }
        // SAFETY: `Program::new`'s caller vouches for the array up to its null pointer, and `next`
        // never goes past that.
        let entry = unsafe { *self.next };
        if entry.is_null() {
            return None;
        }
        // SAFETY: the entry was not the last, so there is another behind it; it is a string.
        unsafe {
            self.next = self.next.add(1);
            Some(Text::at(entry))
        }
    }
}

impl<'p> Text<'p> {
    /// # Safety
    /// `start` is a NUL-terminated string that lives and does not change for `'p`.
    unsafe fn at(start: *const u8) -> Self {
        let mut length = 0;
        // SAFETY: the bytes up to the NUL, and only those, are read.
        unsafe {
            while *start.add(length) != 0 {
                length += 1;
            }
            Self(core::slice::from_raw_parts(start, length))
        }
    }

    /// The bytes.
    pub const fn as_bytes(&self) -> &'p [u8] {
        self.0
    }

    /// The text.
    ///
    /// # Errors
    /// If it is not UTF-8.
    pub const fn to_str(&self) -> Result<&'p str, Utf8Error> {
        core::str::from_utf8(self.0)
    }

    /// The value that the text stands for, if it does.
    pub fn parse<F: FromStr>(&self) -> Option<F> {
        self.to_str().ok()?.parse().ok()
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            f.write_str(chunk.valid())?;
            if !chunk.invalid().is_empty() {
                f.write_str("\u{FFFD}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}
