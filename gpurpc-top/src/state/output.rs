//! What the program has printed: a bounded number of bytes, every one of them made harmless.

use std::collections::VecDeque;
use std::fmt::Write;

use rpc_stats::is_unsafe;
use unicode_width::UnicodeWidthChar;

/// Bytes that are kept.
pub const KEPT: usize = 4 << 20;
/// A line longer than this is broken.
const LONGEST: usize = 16 << 10;
/// What a line costs besides its text.
const OVERHEAD: usize = 32;
/// Columns between tabulators.
const TAB: usize = 8;

/// Which of its outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// A line without its end: escapes are spelled out, tabulators are spaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputLine {
    /// Where it was printed to.
    pub stream: Stream,
    /// What can be shown as it is.
    pub text: String,
}

/// A line that has no end yet.
#[derive(Default)]
struct Partial {
    bytes: Vec<u8>,
}

/// The last lines of both outputs.
#[derive(Default)]
pub struct Output {
    lines: VecDeque<OutputLine>,
    size: usize,
    partial: [Partial; 2],
    /// Lines that were there before the first one that is kept.
    gone: u64,
    dropped_bytes: u64,
}

impl Output {
    /// Takes what was printed.
    pub fn push(&mut self, stream: Stream, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some(at) = rest.iter().position(|&b| b == b'\n') {
            self.extend(stream, &rest[..at]);
            self.finish(stream);
            rest = &rest[at + 1..];
        }
        self.extend(stream, rest);
    }

    /// Counts bytes that nobody had room for.
    pub fn lose(&mut self, bytes: u64) {
        self.dropped_bytes += bytes;
    }

    /// Ends what has no end yet: nothing more will come.
    pub fn close(&mut self) {
        for stream in [Stream::Out, Stream::Err] {
            if !self.partial[stream as usize].bytes.is_empty() {
                self.finish(stream);
            }
        }
    }

    fn extend(&mut self, stream: Stream, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let partial = &mut self.partial[stream as usize].bytes;
            let room = LONGEST - partial.len().min(LONGEST);
            let (now, later) = bytes.split_at(bytes.len().min(room));
            partial.extend_from_slice(now);
            if partial.len() >= LONGEST {
                self.finish(stream);
            }
            bytes = later;
        }
    }

    fn finish(&mut self, stream: Stream) {
        let bytes = std::mem::take(&mut self.partial[stream as usize].bytes);
        let text = harmless(bytes.strip_suffix(b"\r").unwrap_or(&bytes));
        self.size += text.len() + OVERHEAD;
        self.lines.push_back(OutputLine { stream, text });
        while self.size > KEPT {
            let Some(line) = self.lines.pop_front() else {
                break;
            };
            self.size -= line.text.len() + OVERHEAD;
            self.dropped_bytes += line.text.len() as u64 + 1;
            self.gone += 1;
        }
    }

    /// Lines so far, those that are no longer kept too.
    pub fn end(&self) -> u64 {
        self.gone + self.lines.len() as u64
    }

    /// The number of the first line that is kept.
    pub fn begin(&self) -> u64 {
        self.gone
    }

    /// The lines from number `first` on.
    pub fn lines_from(&self, first: u64) -> impl DoubleEndedIterator<Item = &OutputLine> {
        let skip = first.saturating_sub(self.gone).min(self.lines.len() as u64);
        self.lines.range(skip as usize..)
    }

    /// Bytes that are no longer kept.
    pub fn dropped_bytes(&self) -> u64 {
        self.dropped_bytes
    }
}

/// `bytes` as text that moves no cursor and changes no colour.
pub fn harmless(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    let mut column = 0;
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\t' => {
                    let spaces = TAB - column % TAB;
                    text.extend(std::iter::repeat_n(' ', spaces));
                    column += spaces;
                }
                _ if is_unsafe(c) => {
                    let before = text.len();
                    if c.is_ascii() {
                        let _ = write!(text, "\\x{:02x}", c as u32);
                    } else {
                        text.extend(c.escape_unicode());
                    }
                    column += text.len() - before;
                }
                _ => {
                    text.push(c);
                    column += c.width().unwrap_or(0);
                }
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
            column += 4;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_are_spelled_out() {
        assert_eq!(harmless(b"a\tb"), "a       b");
        assert_eq!(harmless("日本\tb".as_bytes()), "日本    b");
        assert_eq!(harmless(b"\x1b[2Jx\x07"), "\\x1b[2Jx\\x07");
        assert_eq!(harmless(b"\xff\xfeok\xe2\x82"), "\\xff\\xfeok\\xe2\\x82");
        assert_eq!(
            harmless("a\u{202e}b\u{9b}".as_bytes()),
            "a\\u{202e}b\\u{9b}"
        );
    }

    fn texts(output: &Output) -> Vec<&str> {
        output
            .lines_from(0)
            .map(|line| line.text.as_str())
            .collect()
    }

    #[test]
    fn lines_are_put_together() {
        let mut output = Output::default();
        output.push(Stream::Out, b"one\r\ntw");
        output.push(Stream::Err, b"err\n");
        output.push(Stream::Out, "o \u{e9}".as_bytes().split_at(3).0);
        output.push(Stream::Out, "o \u{e9}".as_bytes().split_at(3).1);
        assert_eq!(texts(&output), ["one", "err"]);
        output.close();
        assert_eq!(texts(&output), ["one", "err", "two \u{e9}"]);
        assert_eq!(output.lines_from(1).next().unwrap().stream, Stream::Err);
        assert_eq!(output.end(), 3);
        assert_eq!(output.lines_from(99).count(), 0);
    }

    #[test]
    fn the_ring_is_bounded_and_counts() {
        let mut output = Output::default();
        let line = [vec![b'x'; 999], vec![b'\n']].concat();
        for _ in 0..10_000 {
            output.push(Stream::Out, &line);
        }
        assert!(output.size <= KEPT);
        assert_eq!(output.end(), 10_000);
        assert_eq!(output.begin(), output.dropped_bytes() / 1000);
        assert!(output.begin() > 0);
        // A line without an end is broken, not kept for ever.
        let mut output = Output::default();
        for _ in 0..10_000 {
            output.push(Stream::Err, &[b'y'; 1000]);
        }
        assert!(output.size <= KEPT && output.partial[1].bytes.len() < LONGEST);
    }
}
