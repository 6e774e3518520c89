//! Where the device's text goes.

use std::io::{self, Write};
use std::sync::{Mutex, TryLockError};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

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

fn write_unless_gone(gone: &Mutex<bool>, mut to: impl Write, bytes: &[u8]) -> io::Result<()> {
    let mut gone = lock(gone);
    if *gone {
        return Err(io::ErrorKind::BrokenPipe.into());
    }
    let result = to.write_all(bytes).and_then(|()| to.flush());
    *gone = result
        .as_ref()
        .is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe);
    result
}

impl Output for Standard {
    fn stdout(&self, bytes: &[u8]) -> io::Result<()> {
        write_unless_gone(&GONE[0], io::stdout().lock(), bytes)
    }

    fn stderr(&self, bytes: &[u8]) -> io::Result<()> {
        write_unless_gone(&GONE[1], io::stderr().lock(), bytes)
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
        let fd = match stream {
            Stream::Stdout => rustix::stdio::stdout(),
            Stream::Stderr => rustix::stdio::stderr(),
        };
        let mut ready = [PollFd::from_borrowed_fd(fd, PollFlags::OUT)];
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
    use super::*;

    struct Broken(usize);

    impl Write for &mut Broken {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            self.0 += 1;
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn nothing_is_written_once_the_reader_has_gone() {
        let (gone, mut pipe) = (Mutex::new(false), Broken(0));
        for _ in 0..3 {
            let error = write_unless_gone(&gone, &mut pipe, b"text").unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
        }
        assert_eq!(pipe.0, 1, "the pipe was tried once");
    }
}
