//! What the printing macros do.
//!
//! Text is formatted first, without holding a port: formatting runs the program's own code, which
//! may print or panic itself. What fits into a small buffer goes as one message. Longer text goes
//! in parts that the host joins, so that one call's text is never torn or interleaved.

use core::fmt::{self, Write};
use core::mem::MaybeUninit;

use rpc_port::Error;
use rpc_types::Opcode;
use rpc_types::stream::PrintPart;

use crate::client::{client, unless_stopped};

/// Where text goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// The program's standard output.
    Stdout,
    /// The program's standard error.
    Stderr,
    /// Standard error through the panic handler's port.
    Panic,
}

const HEAD: usize = size_of::<PrintPart>();
/// Four packets of either layout.
const TEXT: usize = 240;

/// Collects text; what does not fit the buffer is sent on the way.
///
/// An image has each of these functions once, and nothing in them can panic: all that a kernel can
/// reach is compiled when the image is loaded, and that a program waits for.
pub(crate) struct Writer {
    stream: Stream,
    /// The number of a message that goes in parts, from its first part on.
    message: Option<u32>,
    used: usize,
    /// Room for a part's head, then text; the bytes from `HEAD` up to `used` have been written.
    /// Not zeroed first, which would take longer than most texts.
    buffer: [MaybeUninit<u8>; HEAD + TEXT],
}

/// Prints `text`, followed by a newline if `newline`, as one whole.
///
/// Inlined, so that of a plain literal, which the compiler sees here, nothing is formatted.
#[inline(always)]
pub fn print(stream: Stream, text: fmt::Arguments<'_>, newline: bool) {
    match text.as_str() {
        Some(text) => print_plain(stream, text, newline),
        None => print_formatted(stream, text, newline),
    }
}

#[inline(never)]
fn print_plain(stream: Stream, text: &str, newline: bool) {
    let mut writer = Writer::new(stream);
    writer.put(text.as_bytes());
    writer.finish(newline);
}

#[inline(never)]
fn print_formatted(stream: Stream, text: fmt::Arguments<'_>, newline: bool) {
    let mut writer = Writer::new(stream);
    let _ = writer.write_fmt(text);
    writer.finish(newline);
}

impl Writer {
    pub(crate) fn new(stream: Stream) -> Self {
        Self {
            stream,
            message: None,
            used: HEAD,
            buffer: [MaybeUninit::uninit(); HEAD + TEXT],
        }
    }

    /// Adds text.
    #[inline(never)]
    pub(crate) fn put(&mut self, text: &[u8]) {
        for &byte in text {
            if self.used >= self.buffer.len() {
                self.part(false);
            }
            if let Some(place) = self.buffer.get_mut(self.used) {
                place.write(byte);
                self.used += 1;
            }
        }
    }

    /// Adds a decimal number: what panic reports need of formatting.
    #[inline(never)]
    pub(crate) fn put_number(&mut self, mut number: u64) {
        let mut digits = [0; 20];
        let mut count = 0;
        for place in digits.iter_mut().rev() {
            *place = b'0' + (number % 10) as u8;
            number /= 10;
            count += 1;
            if number == 0 {
                break;
            }
        }
        self.put(digits.get(digits.len() - count..).unwrap_or_default());
    }

    /// Sends what is in the buffer as a part.
    #[inline(never)]
    fn part(&mut self, last: bool) {
        let message = *self
            .message
            .get_or_insert_with(|| client().message_number());
        let flags = if self.stream == Stream::Stdout {
            0
        } else {
            PrintPart::STDERR
        } | if last { PrintPart::LAST } else { 0 };
        let head = PrintPart { message, flags };
        for (place, byte) in self.buffer.iter_mut().zip(bytemuck::bytes_of(&head)) {
            place.write(*byte);
        }
        self.send(Opcode::PRINT_PART, 0);
        self.used = HEAD;
    }

    /// Sends the rest, with a newline behind it if `newline`.
    #[inline(never)]
    pub(crate) fn finish(&mut self, newline: bool) {
        if newline {
            self.put(b"\n");
        }
        if self.message.is_some() {
            self.part(true);
        }
        let opcode = match self.stream {
            // After its parts the panic still has to end the program.
            Stream::Panic => Opcode::PANIC,
            _ if self.message.is_some() || self.used == HEAD => return,
            Stream::Stdout => Opcode::WRITE_TO_STDOUT,
            Stream::Stderr => Opcode::WRITE_TO_STDERR,
        };
        self.send(opcode, HEAD);
    }

    /// One message, the buffer from `start` on, and its acknowledgement: the next thing this thread
    /// prints comes after it.
    ///
    /// Not inlined although it takes a mask: it is done with the mask when it returns.
    #[inline(never)]
    fn send(&self, opcode: Opcode, start: usize) {
        let message = self.buffer.get(start..self.used).unwrap_or_default();
        // SAFETY: `put` has written the bytes from `HEAD` up to `used`, and `part`, which alone
        // starts further in front, those of the head.
        let message = unsafe { message.assume_init_ref() };
        let say = || -> Result<(), Error> {
            let client = client();
            let reserved = self.stream == Stream::Panic;
            client.with_port(opcode, reserved, |port| {
                port.send_packets(|_| message)?;
                port.recv(size_of::<u64>(), |_, _| ())
            })
        };
        // A host that cannot write (a closed pipe) has said so itself; there is nobody to tell.
        let _ = unless_stopped(say());
    }
}

impl Write for Writer {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.put(text.as_bytes());
        Ok(())
    }

    /// The one place where formatting begins.
    #[inline(never)]
    fn write_fmt(&mut self, text: fmt::Arguments<'_>) -> fmt::Result {
        fmt::write(self, text)
    }
}

/// Prints to the host's standard output, as one whole.
#[macro_export]
macro_rules! print {
    ($($arg:tt)*) => {
        $crate::print::print($crate::print::Stream::Stdout, ::core::format_args!($($arg)*), false)
    };
}

/// Prints a line to the host's standard output, as one whole.
#[macro_export]
macro_rules! println {
    () => { $crate::print!("\n") };
    ($($arg:tt)*) => {
        $crate::print::print($crate::print::Stream::Stdout, ::core::format_args!($($arg)*), true)
    };
}

/// Prints to the host's standard error, as one whole.
#[macro_export]
macro_rules! eprint {
    ($($arg:tt)*) => {
        $crate::print::print($crate::print::Stream::Stderr, ::core::format_args!($($arg)*), false)
    };
}

/// Prints a line to the host's standard error, as one whole.
#[macro_export]
macro_rules! eprintln {
    () => { $crate::eprint!("\n") };
    ($($arg:tt)*) => {
        $crate::print::print($crate::print::Stream::Stderr, ::core::format_args!($($arg)*), true)
    };
}
