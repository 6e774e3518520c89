//! What the printing macros do.
//!
//! Text is formatted first, without holding a port: formatting runs the program's own code, which
//! may print or panic itself. What fits into a small buffer goes as one message. Longer text goes
//! in parts that the host joins, so that one call's text is never torn or interleaved.

use core::fmt::{self, Write};

use rpc_port::Error;
use rpc_types::Opcode;
use rpc_types::stream::PrintPart;

use crate::client::{Client, client, unless_stopped};

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
struct Writer {
    stream: Stream,
    /// The number of a message that goes in parts, from its first part on.
    message: Option<u32>,
    used: usize,
    /// Room for a part's head, then text.
    buffer: [u8; HEAD + TEXT],
}

/// Prints `text`, followed by a newline if `newline`, as one whole.
#[inline(never)]
pub fn print(stream: Stream, text: fmt::Arguments<'_>, newline: bool) {
    let mut writer = Writer::new(stream);
    let _ = writer.write_fmt(text);
    if newline {
        let _ = writer.write_str("\n");
    }
    writer.finish();
}

/// Reports a panic and ends the program.
pub(crate) fn print_panic(text: fmt::Arguments<'_>) {
    let mut writer = Writer::new(Stream::Panic);
    let _ = writer.write_fmt(text);
    let _ = writer.write_str("\n");
    writer.finish();
}

impl Writer {
    fn new(stream: Stream) -> Self {
        Self {
            stream,
            message: None,
            used: HEAD,
            buffer: [0; HEAD + TEXT],
        }
    }

    /// Sends what is in the buffer as a part.
    fn part(&mut self, last: bool) {
        let client = client();
        let message = *self.message.get_or_insert_with(|| new_message(&client));
        let flags = if self.stream == Stream::Stdout {
            0
        } else {
            PrintPart::STDERR
        } | if last { PrintPart::LAST } else { 0 };
        self.buffer[..HEAD].copy_from_slice(bytemuck::bytes_of(&PrintPart { message, flags }));
        self.send(Opcode::PRINT_PART, &self.buffer[..self.used]);
        self.used = HEAD;
    }

    fn finish(mut self) {
        if self.message.is_some() {
            self.part(true);
        }
        let text = &self.buffer[HEAD..self.used];
        match self.stream {
            // After its parts the panic still has to end the program.
            Stream::Panic => self.send(Opcode::PANIC, text),
            _ if self.message.is_some() || text.is_empty() => {}
            Stream::Stdout => self.send(Opcode::WRITE_TO_STDOUT, text),
            Stream::Stderr => self.send(Opcode::WRITE_TO_STDERR, text),
        }
    }

    /// One message and its acknowledgement: the next thing this thread prints comes after it.
    fn send(&self, opcode: Opcode, message: &[u8]) {
        let say = || -> Result<(), Error> {
            let client = client();
            let opened = match self.stream {
                Stream::Panic => client.open_reserved(opcode),
                _ => client.open(opcode),
            };
            let mut port = opened?.dynamic();
            port.send_n(|_| message)?;
            port.recv(size_of::<u64>(), |_, _| ())
        };
        // A host that cannot write (a closed pipe) has said so itself; there is nobody to tell.
        let _ = unless_stopped(say());
    }
}

/// A number for a message that goes in parts, unique while fewer than 2^32 are under way.
fn new_message(client: &Client) -> u32 {
    use rpc_bitmap::Memory;
    client
        .private()
        .fetch_add32(rpc_types::Geometry::MESSAGES, 1)
}

impl Write for Writer {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            if self.used == self.buffer.len() {
                self.part(false);
            }
            let count = rest.len().min(self.buffer.len() - self.used);
            self.buffer[self.used..self.used + count].copy_from_slice(&rest[..count]);
            self.used += count;
            rest = &rest[count..];
        }
        Ok(())
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
