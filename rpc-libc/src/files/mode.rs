//! What a file is opened for, and how.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use rustix::fs::{major, minor};

/// Longer mode texts are refused: a letter stands there more than once.
const LONGEST: usize = 15;

/// What the first letter says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The file is there.
    Read,
    /// The file is made, or made empty.
    Write,
    /// The file may be made; all writing goes to its end.
    Append,
}

/// A mode of C's `fopen`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mode {
    kind: Kind,
    /// Reading and writing.
    both: bool,
    /// The file must be new.
    new: bool,
}

impl Mode {
    /// For a stream that is only read.
    pub(super) const READ: Self = Self {
        kind: Kind::Read,
        both: false,
        new: false,
    };

    /// The mode that the text in `packet` names, up to its NUL: `r`, `w` or `a`, then any of `+`,
    /// `b`, `e`, and `x` where a file is made. What else there is is no mode.
    ///
    /// No program that is started gets files of the device, with `e` or without.
    pub(super) fn parse(packet: &[u8]) -> Option<Self> {
        let end = packet.iter().position(|byte| *byte == 0)?;
        let (first, flags) = packet[..end].split_first().filter(|_| end <= LONGEST)?;
        let kind = match first {
            b'r' => Kind::Read,
            b'w' => Kind::Write,
            b'a' => Kind::Append,
            _ => return None,
        };
        let mut mode = Self { kind, ..Self::READ };
        for flag in flags {
            match flag {
                b'+' => mode.both = true,
                b'b' | b'e' => {}
                b'x' if kind != Kind::Read => mode.new = true,
                _ => return None,
            }
        }
        Some(mode)
    }

    pub(super) fn reads(self) -> bool {
        self.kind == Kind::Read || self.both
    }

    pub(super) fn writes(self) -> bool {
        self.kind != Kind::Read || self.both
    }

    pub(super) fn appends(self) -> bool {
        self.kind == Kind::Append
    }

    /// Opens a file. May block.
    pub(super) fn open(self, path: &Path) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options
            .read(self.reads())
            .write(self.writes() && !self.appends())
            .append(self.appends())
            .truncate(self.kind == Kind::Write && !self.new)
            .create(self.kind != Kind::Read)
            .create_new(self.new);
        options.open(path)
    }

    /// Whether opening `path` may wait for somebody: for the other end of a pipe, or, where it is a
    /// device, for who is on the line.
    pub(super) fn waits_for(path: &Path) -> bool {
        let waits = |metadata: &Metadata| {
            let kind = metadata.file_type();
            kind.is_fifo() || kind.is_char_device() && !is_memory(metadata)
        };
        fs::metadata(path).is_ok_and(|metadata| waits(&metadata))
    }
}

/// Whether reads and writes of an open file may have to wait for somebody outside.
pub(super) fn may_wait(metadata: &Metadata) -> bool {
    !metadata.is_file() && !metadata.is_dir() && !is_memory(metadata)
}

/// Whether it is a device behind which there is nobody: Linux has `null`, `zero`, `full`, `random` and
/// `urandom` under these numbers.
fn is_memory(metadata: &Metadata) -> bool {
    let device = metadata.rdev();
    metadata.file_type().is_char_device()
        && major(device) == 1
        && matches!(minor(device), 3 | 5 | 7 | 8 | 9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_may_wait_and_files_do_not() {
        let waits = |path: &str| Mode::waits_for(Path::new(path));
        assert!(waits("/dev/tty") && waits("/dev/ptmx"));
        for device in ["null", "zero", "full", "random", "urandom"] {
            let path = format!("/dev/{device}");
            assert!(!waits(&path), "{device}");
            assert!(!may_wait(&fs::metadata(path).unwrap()), "{device}");
        }
        assert!(may_wait(&fs::metadata("/dev/tty").unwrap()));
        assert!(!waits("/") && !waits(file!()) && !waits("/no such file"));
    }

    #[test]
    fn modes_of_c_and_no_others() {
        let mode = |text: &[u8]| Mode::parse(text);
        assert_eq!(mode(b"r\0"), Some(Mode::READ));
        assert_eq!(mode(b"rbe\0 and what is behind it"), Some(Mode::READ));
        for text in [b"w+bx\0", b"wbx+\0", b"wx+e\0"] {
            let mode = mode(text).unwrap();
            assert!(mode.new && mode.kind == Kind::Write && mode.writes());
            assert_eq!(mode.reads(), text.contains(&b'+'));
        }
        let append = mode(b"a+\0").unwrap();
        assert!(append.reads() && append.writes() && append.appends() && !append.new);
        for text in [
            &b""[..],
            b"\0",
            b"r",
            b"+r\0",
            b"rw\0",
            b"rx\0",
            b"R\0",
            b"r,ccs=x\0",
            b"rbbbbbbbbbbbbbbb\0",
            &[b'r'; 64],
            &[0xFF; 64],
        ] {
            assert_eq!(mode(text), None, "{text:?}");
        }
    }
}
