//! Where the device's text goes.

use std::io::{self, Write};
use std::os::fd::BorrowedFd;
use std::sync::{Mutex, TryLockError};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::shared::lock;

/// One of the program's two streams of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Where the device's text goes. What is written by one call stays together.
pub trait Output: Send + Sync {
    /// Writes to the program's standard output.
    ///
    /// # Errors
    /// When not all of it could be written.
    fn stdout(&self, bytes: &[u8]) -> io::Result<()>;

    /// Writes to the program's standard error.
    ///
    /// # Errors
    /// When not all of it could be written.
    fn stderr(&self, bytes: &[u8]) -> io::Result<()>;

    /// Writes out what may be buffered.
    fn flush(&self) {}

    /// Whether writing `bytes` bytes may have to wait, for a reader say: then it is left to a
    /// thread that may wait, and ports are served meanwhile.
    fn may_wait(&self, stream: Stream, bytes: usize) -> bool {
        let _ = (stream, bytes);
        false
    }
}

/// Writes to `stream` of `output`.
pub(crate) fn write(output: &dyn Output, stream: Stream, bytes: &[u8]) -> io::Result<()> {
    match stream {
        Stream::Stdout => output.stdout(bytes),
        Stream::Stderr => output.stderr(bytes),
    }
}

/// This process's standard output and standard error. When a reader has gone away, what follows
/// is dropped.
#[derive(Clone, Copy, Debug, Default)]
pub struct Standard;

/// Whether the stream's reader has gone away; held while writing.
static GONE: [Mutex<bool>; 2] = [const { Mutex::new(false) }; 2];

/// A pipe that is ready takes this much at once.
const PIPE_BUF: usize = 4096;

/// `own` is what this program prints by itself, and so has the lock that keeps other threads' text apart.
fn write_unless_gone(
    gone: &Mutex<bool>,
    mut own: impl Write,
    to: BorrowedFd<'_>,
    bytes: &[u8],
) -> io::Result<()> {
    let mut gone = lock(gone);
    if *gone {
        return Err(io::ErrorKind::BrokenPipe.into());
    }
    // What it still has comes first; that it cannot be written is not the device's affair.
    let _ = own.flush();
    let result = write_all(to, bytes);
    *gone = result
        .as_ref()
        .is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe);
    result
}

/// Not by the standard library's streams: they keep what could not be written for the next time, and take
/// a descriptor that cannot be written to for one that takes everything.
fn write_all(to: BorrowedFd<'_>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(to, bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                // Whoever shares it has made it so that it does not wait by itself.
                let _ = poll(&mut [PollFd::from_borrowed_fd(to, PollFlags::OUT)], None);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// The descriptor of this process's stream.
fn descriptor(stream: Stream) -> BorrowedFd<'static> {
    match stream {
        Stream::Stdout => rustix::stdio::stdout(),
        Stream::Stderr => rustix::stdio::stderr(),
    }
}

impl Output for Standard {
    fn stdout(&self, bytes: &[u8]) -> io::Result<()> {
        let to = descriptor(Stream::Stdout);
        write_unless_gone(&GONE[0], io::stdout().lock(), to, bytes)
    }

    fn stderr(&self, bytes: &[u8]) -> io::Result<()> {
        let to = descriptor(Stream::Stderr);
        write_unless_gone(&GONE[1], io::stderr().lock(), to, bytes)
    }

    fn may_wait(&self, stream: Stream, bytes: usize) -> bool {
        if bytes > PIPE_BUF {
            return true;
        }
        let gone = match GONE[stream as usize].try_lock() {
            Ok(gone) => *gone,
            Err(TryLockError::Poisoned(gone)) => *gone.into_inner(),
            // Somebody is writing, and may be waiting.
            Err(TryLockError::WouldBlock) => return true,
        };
        let mut ready = [PollFd::from_borrowed_fd(descriptor(stream), PollFlags::OUT)];
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        !gone && matches!(poll(&mut ready, Some(&now)), Ok(0))
    }
}

/// Keeps what is written, for tests and for programs that show it themselves.
#[derive(Debug, Default)]
pub struct Captured {
    streams: [Mutex<Vec<u8>>; 2],
}

impl Captured {
    /// All bytes written to `stream` so far.
    pub fn bytes(&self, stream: Stream) -> Vec<u8> {
        lock(&self.streams[stream as usize]).clone()
    }

    /// All text written to `stream` so far, with U+FFFD for what is not UTF-8.
    pub fn text(&self, stream: Stream) -> String {
        String::from_utf8_lossy(&lock(&self.streams[stream as usize])).into_owned()
    }
}

impl Output for Captured {
    fn stdout(&self, bytes: &[u8]) -> io::Result<()> {
        lock(&self.streams[0]).extend_from_slice(bytes);
        Ok(())
    }

    fn stderr(&self, bytes: &[u8]) -> io::Result<()> {
        lock(&self.streams[1]).extend_from_slice(bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{PipeReader, PipeWriter, Read, pipe, sink};
    use std::os::fd::AsFd;
    use std::thread;

    use super::*;

    /// A pipe whose writer does not wait, and has no room for long.
    fn impatient() -> (PipeReader, PipeWriter) {
        let (reader, writer) = pipe().unwrap();
        rustix::io::ioctl_fionbio(&writer, true).unwrap();
        (reader, writer)
    }

    #[test]
    fn a_slow_reader_gets_all_of_it() {
        let (mut reader, writer) = impatient();
        let text: Vec<u8> = (0..1_000_000).map(|n| n as u8).collect();
        let all = text.clone();
        let writing = thread::spawn(move || write_all(writer.as_fd(), &all));
        let mut read = Vec::new();
        reader.read_to_end(&mut read).unwrap();
        writing.join().unwrap().unwrap();
        assert!(read == text);
    }

    #[test]
    fn what_cannot_be_written_to_is_an_error() {
        let read_only = File::open("/dev/null").unwrap();
        let error = write_all(read_only.as_fd(), b"text").unwrap_err();
        assert_eq!(error.raw_os_error(), Some(Errno::BADF.raw_os_error()));
        assert!(write_all(read_only.as_fd(), b"").is_ok());
    }

    #[test]
    fn nothing_is_written_once_the_reader_has_gone() {
        let gone = Mutex::new(false);
        let (mut other, writer) = impatient();
        let (reader, broken) = impatient();
        drop(reader);
        for to in [&broken, &writer] {
            let error = write_unless_gone(&gone, sink(), to.as_fd(), b"text").unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
        }
        drop(writer);
        assert_eq!(other.read_to_end(&mut Vec::new()).unwrap(), 0);
    }
}
