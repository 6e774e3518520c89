//! What a call asks for.
//!
//! An opcode is a `u32`: `0x6300_0000 + n` for the built-in services (the numbers of LLVM's libc,
//! then ours), `0x7500_0000 + n` with `n < 0x4000` for those of a program. A layout with room for
//! 16 bits only carries the *compact form*: `n` for a built-in one, `0x4000 | n` for a user's.

use core::fmt;

use bytemuck::{Pod, Zeroable};

/// Base of the built-in opcodes: the letter `c` in the top byte.
pub const BUILTIN_BASE: u32 = 0x6300_0000;
/// Base of the user opcodes: the letter `u` in the top byte.
pub const USER_BASE: u32 = 0x7500_0000;
/// How many user opcodes there are.
pub const USER_COUNT: u16 = 0x4000;

const USER_COMPACT: u16 = 0x4000;

/// What a call asks for; any `u32` is representable, since the wire may carry any.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable)]
#[repr(transparent)]
pub struct Opcode(pub u32);

impl Opcode {
    /// Does nothing; no reply.
    pub const NOOP: Self = Self::builtin(0);
    /// Ends the program: send, acknowledgement, then the status as `i32` in the first word.
    pub const EXIT: Self = Self::builtin(1);
    /// Writes a message to standard output; the reply's first word counts the bytes written.
    pub const WRITE_TO_STDOUT: Self = Self::builtin(2);
    /// Writes a message to standard error; the reply's first word counts the bytes written.
    pub const WRITE_TO_STDERR: Self = Self::builtin(3);
    /// Writes a message to a stream: its handle, then the message; the reply's first word counts the
    /// bytes written.
    pub const WRITE_TO_STREAM: Self = Self::builtin(4);
    /// As [`WRITE_TO_STDOUT`](Self::WRITE_TO_STDOUT), with a newline added and counted.
    pub const WRITE_TO_STDOUT_NEWLINE: Self = Self::builtin(5);
    /// Reads: size and stream -> message, then its length.
    pub const READ_FROM_STREAM: Self = Self::builtin(6);
    /// Reads a line as `fgets`: size and stream -> message with its 0, empty at the end.
    pub const READ_FGETS: Self = Self::builtin(7);
    /// Opens a file: path, then mode -> handle, 0 on failure.
    pub const OPEN_FILE: Self = Self::builtin(8);
    /// Closes a file: handle -> 0, or `EOF`.
    pub const CLOSE_FILE: Self = Self::builtin(9);
    /// Allocates device memory: size in bytes -> device address, 0 on failure.
    pub const MALLOC: Self = Self::builtin(10);
    /// Frees device memory; no reply.
    pub const FREE: Self = Self::builtin(11);
    /// Calls a function of the host: arguments, then its address -> result.
    pub const HOST_CALL: Self = Self::builtin(12);
    /// Ends the program as `abort` does.
    pub const ABORT: Self = Self::builtin(13);
    /// As `feof`: stream -> nonzero at the end.
    pub const FEOF: Self = Self::builtin(14);
    /// As `ferror`: stream -> nonzero after an error.
    pub const FERROR: Self = Self::builtin(15);
    /// As `clearerr`: stream.
    pub const CLEARERR: Self = Self::builtin(16);
    /// As `fseek`: stream, offset and whence -> 0, or -1.
    pub const FSEEK: Self = Self::builtin(17);
    /// As `ftell`: stream -> offset, or -1.
    pub const FTELL: Self = Self::builtin(18);
    /// As `fflush`: stream -> 0, or `EOF`.
    pub const FFLUSH: Self = Self::builtin(19);
    /// As `ungetc`: character and stream -> character, or `EOF`.
    pub const UNGETC: Self = Self::builtin(20);
    /// As `printf`, arguments at their natural alignment.
    pub const PRINTF_TO_STDOUT: Self = Self::builtin(21);
    /// As `fprintf(stderr, ...)`, arguments at their natural alignment.
    pub const PRINTF_TO_STDERR: Self = Self::builtin(22);
    /// As `fprintf`, arguments at their natural alignment: handle first.
    pub const PRINTF_TO_STREAM: Self = Self::builtin(23);
    /// As [`PRINTF_TO_STDOUT`](Self::PRINTF_TO_STDOUT), arguments packed.
    pub const PRINTF_TO_STDOUT_PACKED: Self = Self::builtin(24);
    /// As [`PRINTF_TO_STDERR`](Self::PRINTF_TO_STDERR), arguments packed.
    pub const PRINTF_TO_STDERR_PACKED: Self = Self::builtin(25);
    /// As [`PRINTF_TO_STREAM`](Self::PRINTF_TO_STREAM), arguments packed.
    pub const PRINTF_TO_STREAM_PACKED: Self = Self::builtin(26);
    /// As `remove`: path -> 0, or -1.
    pub const REMOVE: Self = Self::builtin(27);
    /// As `rename`: two paths -> 0, or -1.
    pub const RENAME: Self = Self::builtin(28);
    /// As `system`: command -> status.
    pub const SYSTEM: Self = Self::builtin(29);
    /// A part of a text that is printed whole: stream header of a [`PrintPart`](crate::stream::PrintPart).
    pub const PRINT_PART: Self = Self::builtin(0x100);
    /// Ends the program after a panic: a message, printed to standard error.
    pub const PANIC: Self = Self::builtin(0x101);
    /// LLVM's first patch: writes a text of at most 56 bytes to standard error.
    pub const FIRST_PRINT: Self = Self::first(1);
    /// LLVM's first patch: ends the program.
    pub const FIRST_EXIT: Self = Self::first(2);
    /// Adds one to the first word.
    pub const TEST_INCREMENT: Self = Self::builtin(0x8000);
    /// A fixed order of sends and receives, in which a counter goes to 9.
    pub const TEST_INTERFACE: Self = Self::builtin(0x8001);
    /// Sends a message back as it came.
    pub const TEST_STREAM: Self = Self::builtin(0x8002);

    /// The built-in opcode number `n`.
    ///
    /// # Panics
    /// If `n` is in `0x4000..0x8000`, where the compact form keeps the user opcodes: at compile
    /// time for a constant.
    pub const fn builtin(n: u16) -> Self {
        assert!(
            n & 0xC000 != USER_COMPACT,
            "built-in opcodes are below 0x4000 or from 0x8000 on"
        );
        Self(BUILTIN_BASE + n as u32)
    }

    /// What has this number in the layout [`First`](crate::LayoutKind::First). From 256 on they were
    /// left to programs: one opcode that nobody handles.
    #[inline(always)]
    pub const fn first(number: u64) -> Self {
        match number {
            0 => Self::NOOP,
            1..=0xFF => Self::builtin(0x200 + number as u16),
            _ => Self(u32::MAX),
        }
    }

    /// The user opcode number `n`.
    ///
    /// # Panics
    /// If `n` is not below [`USER_COUNT`]: at compile time for a constant.
    pub const fn user(n: u16) -> Self {
        assert!(n < USER_COUNT, "user opcodes are below 0x4000");
        Self(USER_BASE + n as u32)
    }

    /// The 16-bit form, or `None` if this opcode has none.
    #[inline(always)]
    pub const fn compact(self) -> Option<u16> {
        let n = (self.0 & 0xFFFF) as u16;
        match self.0 & 0xFFFF_0000 {
            BUILTIN_BASE if n & 0xC000 != USER_COMPACT => Some(n),
            USER_BASE if n < USER_COUNT => Some(USER_COMPACT | n),
            _ => None,
        }
    }

    /// The opcode whose 16-bit form is `compact`.
    #[inline(always)]
    pub const fn from_compact(compact: u16) -> Self {
        if compact & 0xC000 == USER_COMPACT {
            Self(USER_BASE + (compact & !USER_COMPACT) as u32)
        } else {
            Self(BUILTIN_BASE + compact as u32)
        }
    }

    /// The name of a built-in opcode.
    pub const fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::NOOP => "noop",
            Self::EXIT => "exit",
            Self::WRITE_TO_STDOUT => "write_to_stdout",
            Self::WRITE_TO_STDERR => "write_to_stderr",
            Self::WRITE_TO_STREAM => "write_to_stream",
            Self::WRITE_TO_STDOUT_NEWLINE => "write_to_stdout_newline",
            Self::READ_FROM_STREAM => "read_from_stream",
            Self::READ_FGETS => "read_fgets",
            Self::OPEN_FILE => "open_file",
            Self::CLOSE_FILE => "close_file",
            Self::MALLOC => "malloc",
            Self::FREE => "free",
            Self::HOST_CALL => "host_call",
            Self::ABORT => "abort",
            Self::FEOF => "feof",
            Self::FERROR => "ferror",
            Self::CLEARERR => "clearerr",
            Self::FSEEK => "fseek",
            Self::FTELL => "ftell",
            Self::FFLUSH => "fflush",
            Self::UNGETC => "ungetc",
            Self::PRINTF_TO_STDOUT => "printf_to_stdout",
            Self::PRINTF_TO_STDERR => "printf_to_stderr",
            Self::PRINTF_TO_STREAM => "printf_to_stream",
            Self::PRINTF_TO_STDOUT_PACKED => "printf_to_stdout_packed",
            Self::PRINTF_TO_STDERR_PACKED => "printf_to_stderr_packed",
            Self::PRINTF_TO_STREAM_PACKED => "printf_to_stream_packed",
            Self::REMOVE => "remove",
            Self::RENAME => "rename",
            Self::SYSTEM => "system",
            Self::PRINT_PART => "print_part",
            Self::PANIC => "panic",
            Self::FIRST_PRINT => "first_print",
            Self::FIRST_EXIT => "first_exit",
            Self::TEST_INCREMENT => "test_increment",
            Self::TEST_INTERFACE => "test_interface",
            Self::TEST_STREAM => "test_stream",
            _ => return None,
        })
    }
}

impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.pad(name),
            None => write!(f, "{self:?}"),
        }
    }
}

impl fmt::Debug for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#010x}", self.0)
    }
}

const _: () = assert!(size_of::<Opcode>() == 4 && align_of::<Opcode>() == 4);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_compact_form_comes_back() {
        for compact in 0..=u16::MAX {
            assert_eq!(Opcode::from_compact(compact).compact(), Some(compact));
        }
    }

    #[test]
    fn numbers_of_the_first_patch_are_none_of_other_opcodes() {
        let first = [0, 1, 2, 3, 0xFF, 0x100, 1 << 32 | 1, u64::MAX].map(Opcode::first);
        let [noop, print, exit, unknown @ ..] = first;
        assert_eq!(
            [noop, print, exit],
            [Opcode::NOOP, Opcode::FIRST_PRINT, Opcode::FIRST_EXIT]
        );
        assert_eq!(unknown.map(Opcode::name), [None; 5]);
        assert_eq!((unknown[0].0, unknown[4].0), (0x6300_0203, u32::MAX));
    }

    #[test]
    fn opcodes_without_a_compact_form_say_so() {
        for opcode in [
            0,
            BUILTIN_BASE + 0x4000,
            BUILTIN_BASE + 0x1_0000,
            USER_BASE + 0x4000,
            !0,
        ] {
            assert_eq!(Opcode(opcode).compact(), None);
        }
    }
}
