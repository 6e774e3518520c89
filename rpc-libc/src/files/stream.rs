//! A stream as C has it: a file, what was read ahead, what is to be written, and what was pushed back.

use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal, Read, Seek, SeekFrom, Write};
use std::mem;

use rpc_server::Reservation;

use super::mode::{self, Mode};
use super::room::Room;

/// Bytes that are read ahead, and the most that wait to be written.
pub(super) const BUFFER: usize = 16 << 10;
/// The most that a long read takes at once: no more memory than there are bytes.
const PIECE: usize = 256 << 10;
/// How many characters can be pushed back in a row.
const PUSHED: usize = 64;

/// Where a position is counted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whence {
    Start,
    Current,
    End,
}

/// What a read has brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Came {
    Bytes,
    End,
    Error,
}

/// An open file with C's buffers and indicators.
#[derive(Debug)]
pub(super) struct Stream {
    file: File,
    mode: Mode,
    /// Lines go out at once.
    terminal: bool,
    /// Read from the file; the first `taken` bytes were handed out.
    ahead: Vec<u8>,
    taken: usize,
    /// Pushed back, the last one comes first.
    pushed: Vec<u8>,
    /// To be written. Never together with bytes that were read ahead.
    behind: Vec<u8>,
    pub(super) eof: bool,
    pub(super) error: bool,
}

impl Stream {
    /// A stream over a file that was just opened. May block.
    pub(super) fn new(mut file: File, mode: Mode) -> Self {
        if mode.appends() && !mode.reads() {
            // Where a pipe ends is nowhere.
            let _ = file.seek(SeekFrom::End(0));
        }
        Self {
            terminal: file.is_terminal(),
            file,
            mode,
            ahead: Vec::new(),
            taken: 0,
            pushed: Vec::new(),
            behind: Vec::new(),
            eof: false,
            error: false,
        }
    }

    /// Whether reads and writes may have to wait for somebody outside.
    pub(super) fn may_wait(&self) -> bool {
        self.file
            .metadata()
            .is_ok_and(|metadata| mode::may_wait(&metadata))
    }

    /// What was read ahead and not handed out.
    fn left(&self) -> &[u8] {
        &self.ahead[self.taken..]
    }

    /// Bytes that can be read without the file.
    pub(super) fn held(&self) -> u64 {
        (self.pushed.len() + self.left().len()) as u64
    }

    /// Whether a line of less than `count` bytes can be read without the file.
    pub(super) fn holds_line(&self, count: u64) -> bool {
        let line = |bytes: &[u8]| bytes.contains(&b'\n');
        self.held() >= count.saturating_sub(1) || line(&self.pushed) || line(self.left())
    }

    /// Whether `bytes` more can be written without the file.
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        !self.terminal && self.held() == 0 && self.behind.len() + bytes <= BUFFER
    }

    /// Whether something waits to be written.
    pub(super) fn is_behind(&self) -> bool {
        !self.behind.is_empty()
    }

    /// Makes it ready to be read: `false` if it cannot be.
    fn begin_read(&mut self) -> bool {
        if !self.mode.reads() {
            self.error = true;
            return false;
        }
        self.flush()
    }

    /// Reads ahead. The end stays the end until someone clears it, also where a file grows.
    fn fill(&mut self) -> Came {
        if self.eof {
            return Came::End;
        }
        self.taken = 0;
        self.ahead.resize(BUFFER, 0);
        let count = retry(|| self.file.read(&mut self.ahead));
        self.ahead.truncate(*count.as_ref().unwrap_or(&0));
        self.came(&count)
    }

    /// Sets the indicators after a read.
    fn came(&mut self, count: &io::Result<usize>) -> Came {
        match count {
            Ok(0) => {
                self.eof = true;
                Came::End
            }
            Ok(_) => Came::Bytes,
            Err(_) => {
                self.error = true;
                Came::Error
            }
        }
    }

    /// Takes what was pushed back or read ahead, at most `most` bytes.
    fn take(&mut self, most: usize, into: &mut Vec<u8>) {
        let end = into.len() + most;
        while into.len() < end
            && let Some(byte) = self.pushed.pop()
        {
            into.push(byte);
        }
        let count = self.left().len().min(end - into.len());
        into.extend_from_slice(&self.ahead[self.taken..self.taken + count]);
        self.taken += count;
    }

    /// As `fread`: up to `size` bytes, fewer at the end or after an error. It is one that there is
    /// no more `room` to hold them.
    pub(super) fn read(&mut self, size: u64, room: &mut Reservation) -> Vec<u8> {
        let mut room = Room::new(room);
        let mut bytes = Vec::new();
        if size == 0 || !self.begin_read() {
            return bytes;
        }
        loop {
            let left = size - bytes.len() as u64;
            let most = left.min(self.held()) as usize;
            if most > 0 {
                let most = room.up_to(most);
                if most == 0 {
                    self.error = true;
                    return bytes;
                }
                self.take(most, &mut bytes);
                room.fill(most);
                continue;
            }
            if left == 0 || self.eof {
                return bytes;
            }
            if left < BUFFER as u64 {
                if self.fill() != Came::Bytes {
                    return bytes;
                }
                continue;
            }
            let start = bytes.len();
            let piece = room.up_to(left.min(PIECE as u64) as usize);
            if piece == 0 || bytes.try_reserve(piece).is_err() {
                self.error = true;
                return bytes;
            }
            bytes.resize(start + piece, 0);
            let count = retry(|| self.file.read(&mut bytes[start..]));
            bytes.truncate(start + *count.as_ref().unwrap_or(&0));
            room.fill(bytes.len() - start);
            if self.came(&count) != Came::Bytes {
                return bytes;
            }
        }
    }

    /// As `fgets`: a line of less than `count` bytes with its newline and a NUL; `None` where C has
    /// a null pointer. Without `room` for more it ends early, and not before its first byte.
    pub(super) fn line(&mut self, count: u64, room: &mut Reservation) -> Option<Vec<u8>> {
        let mut room = Room::new(room);
        let most = count.checked_sub(1)?;
        let mut line = Vec::new();
        if most > 0 && !self.begin_read() {
            return None;
        }
        while (line.len() as u64) < most && line.last() != Some(&b'\n') {
            if self.held() == 0 {
                match self.fill() {
                    Came::Bytes => {}
                    Came::End if !line.is_empty() => break,
                    Came::End | Came::Error => return None,
                }
            }
            // A newline may be among what was pushed back: one by one.
            let next = if self.pushed.is_empty() {
                let left = self.left();
                let line = left.iter().position(|byte| *byte == b'\n');
                line.map_or(left.len(), |place| place + 1)
            } else {
                1
            };
            let next = (most - line.len() as u64).min(next as u64) as usize;
            let next = room.up_to(next);
            if next == 0 {
                self.error = true;
                if line.is_empty() {
                    return None;
                }
                break;
            }
            self.take(next, &mut line);
            room.fill(next);
        }
        line.push(0);
        Some(line)
    }

    /// Whether it is for writing; else it is an error to try that.
    pub(super) fn begin_write(&mut self) -> bool {
        self.error |= !self.mode.writes();
        self.mode.writes()
    }

    /// As `fwrite`: how many of the bytes were taken.
    pub(super) fn write(&mut self, bytes: &[u8]) -> u64 {
        if bytes.is_empty() {
            return 0;
        }
        if !self.begin_write() {
            return 0;
        }
        if !self.end_read() {
            self.error = true;
            return 0;
        }
        if self.behind.len() + bytes.len() > BUFFER && !self.flush() {
            return 0;
        }
        if bytes.len() > BUFFER {
            return self.write_through(bytes);
        }
        self.behind.extend_from_slice(bytes);
        if self.terminal && bytes.contains(&b'\n') && !self.flush() {
            return 0;
        }
        bytes.len() as u64
    }

    fn write_through(&mut self, bytes: &[u8]) -> u64 {
        let mut written = 0;
        while written < bytes.len() {
            match retry(|| self.file.write(&bytes[written..])) {
                Ok(count) if count > 0 => written += count,
                _ => {
                    self.error = true;
                    break;
                }
            }
        }
        written as u64
    }

    /// Writes out what waits: `false`, and it is lost, if that fails.
    pub(super) fn flush(&mut self) -> bool {
        if self.behind.is_empty() {
            return true;
        }
        let behind = mem::take(&mut self.behind);
        let written = self.write_through(&behind) == behind.len() as u64;
        self.behind = behind;
        self.behind.clear();
        written
    }

    /// As `fclose`: whether all that was written has come to the file, as far as its system says.
    pub(super) fn close(mut self) -> bool {
        let flushed = self.flush();
        // It is closed in any case, and some file systems say only here that there was no room.
        nix::unistd::close(self.file).is_ok() && flushed
    }

    /// Forgets what was read ahead or pushed back: the file stands where its reader does.
    pub(super) fn end_read(&mut self) -> bool {
        if self.held() == 0 {
            return true;
        }
        let position = match self.position() {
            Ok(position) => position,
            // A terminal, or a socket: reading and writing have nothing to do with each other.
            Err(error) if is_no_file(&error) => return true,
            Err(_) => return false,
        };
        let moved = self.file.seek(SeekFrom::Start(position)).is_ok();
        if moved {
            self.forget();
        }
        moved
    }

    fn forget(&mut self) {
        self.pushed.clear();
        self.ahead.clear();
        self.taken = 0;
    }

    /// Where the next byte is read or written.
    fn position(&mut self) -> io::Result<u64> {
        let file = self.file.stream_position()?;
        // What was pushed back at the start of a file stands nowhere.
        Ok((file + self.behind.len() as u64).saturating_sub(self.held()))
    }

    /// As `ftell`.
    pub(super) fn tell(&mut self) -> Option<u64> {
        // Where appended text comes to stand the file alone knows.
        if self.mode.appends() && !self.flush() {
            return None;
        }
        self.position().ok()
    }

    /// As `fseek`: whether it went there.
    pub(super) fn seek(&mut self, offset: i64, whence: Whence) -> bool {
        if !self.flush() {
            return false;
        }
        let target = match whence {
            Whence::Start => u64::try_from(offset).ok().map(SeekFrom::Start),
            Whence::Current => (self.position().ok())
                .and_then(|position| position.checked_add_signed(offset))
                .map(SeekFrom::Start),
            Whence::End => Some(SeekFrom::End(offset)),
        };
        let moved = target.is_some_and(|target| self.file.seek(target).is_ok());
        if moved {
            self.forget();
            self.eof = false;
        }
        moved
    }

    /// As `ungetc`: whether `byte` comes next.
    pub(super) fn unget(&mut self, byte: u8) -> bool {
        if !self.mode.reads() || self.pushed.len() >= PUSHED || !self.flush() {
            return false;
        }
        self.pushed.push(byte);
        self.eof = false;
        true
    }

    /// As `clearerr`.
    pub(super) fn clear(&mut self) {
        (self.eof, self.error) = (false, false);
    }
}

/// Once more where a signal came between.
fn retry(mut f: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match f() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// Whether it has no positions: a pipe, a terminal.
fn is_no_file(error: &io::Error) -> bool {
    error.kind() == ErrorKind::NotSeekable
}
