//! What a terminal sends for keys.
//!
//! It is read here and not by crossterm, whose reader loses what is typed while the size changes:
//! its notification is edge-triggered and given up for the resize.

use std::str;

use gpurpc_top::keys::Key;

const ESC: u8 = 0x1B;

/// What the first bytes are.
enum First {
    /// A key, or something that is none, of so many bytes.
    Whole(Option<Key>, usize),
    /// The beginning of one.
    Partial,
}

/// Takes keys from the front of `bytes`. What may be the beginning of a key is left there, unless
/// nothing more is to come.
pub(crate) fn keys(bytes: &mut Vec<u8>, all: bool) -> Vec<Key> {
    let mut keys = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        match first(&bytes[at..]) {
            First::Whole(key, length) => {
                keys.extend(key);
                at += length;
            }
            First::Partial if all => {
                keys.extend((bytes[at] == ESC).then_some(Key::Esc));
                at += 1;
            }
            First::Partial => break,
        }
    }
    bytes.drain(..at);
    keys
}

fn first(bytes: &[u8]) -> First {
    match *bytes {
        [] | [ESC] | [ESC, b'[' | b'O'] => First::Partial,
        [ESC, b'O', last, ..] => First::Whole(letter(last), 3),
        [ESC, b'[', ref rest @ ..] => sequence(rest),
        // A second one begins anew.
        [ESC, ..] => First::Whole(Some(Key::Esc), 1),
        [b'\r' | b'\n', ..] => First::Whole(Some(Key::Enter), 1),
        [b'\t', ..] => First::Whole(Some(Key::Tab), 1),
        [byte @ 1..=0x1A, ..] => First::Whole(Some(Key::Ctrl((byte + b'a' - 1).into())), 1),
        [byte @ 0x20..=0x7E, ..] => First::Whole(Some(Key::Char(byte.into())), 1),
        [0..=0x7F, ..] => First::Whole(None, 1),
        _ => character(bytes),
    }
}

/// Behind `ESC [`: parameters, then a byte that says which key.
fn sequence(rest: &[u8]) -> First {
    let Some(end) = rest.iter().position(|byte| (0x40..=0x7E).contains(byte)) else {
        // None is as long as that.
        let none = First::Whole(None, rest.len() + 2);
        return if rest.len() < 32 {
            First::Partial
        } else {
            none
        };
    };
    let number = rest[..end].split(|&byte| byte == b';').next();
    let key = match (rest[end], number) {
        (b'~', Some(b"1" | b"7")) => Some(Key::Home),
        (b'~', Some(b"4" | b"8")) => Some(Key::End),
        (b'~', Some(b"5")) => Some(Key::PageUp),
        (b'~', Some(b"6")) => Some(Key::PageDown),
        (last, _) => letter(last),
    };
    First::Whole(key, end + 3)
}

fn letter(last: u8) -> Option<Key> {
    Some(match last {
        b'A' => Key::Up,
        b'B' => Key::Down,
        b'C' => Key::Right,
        b'D' => Key::Left,
        b'H' => Key::Home,
        b'F' => Key::End,
        b'Z' => Key::BackTab,
        b'M' => Key::Enter,
        _ => return None,
    })
}

/// A character that is not ASCII.
fn character(bytes: &[u8]) -> First {
    let start = &bytes[..bytes.len().min(4)];
    let valid = match str::from_utf8(start) {
        Ok(text) => text,
        Err(error) if error.valid_up_to() > 0 => {
            str::from_utf8(&start[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(error) if error.error_len().is_none() => return First::Partial,
        Err(_) => return First::Whole(None, 1),
    };
    let c = valid.chars().next();
    First::Whole(c.map(Key::Char), c.map_or(1, char::len_utf8))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &[u8]) -> Vec<Key> {
        keys(&mut text.to_vec(), true)
    }

    #[test]
    fn keys_are_told_apart() {
        assert_eq!(
            all(b"q\x03\x1a"),
            [Key::Char('q'), Key::Ctrl('c'), Key::Ctrl('z')]
        );
        assert_eq!(
            all(b"\x1b[A\x1bOB\x1b[1;5C\x1b[D"),
            [Key::Up, Key::Down, Key::Right, Key::Left]
        );
        assert_eq!(
            all(b"\x1b[5~\x1b[6~\x1b[H\x1b[4~\x1b[Z"),
            [
                Key::PageUp,
                Key::PageDown,
                Key::Home,
                Key::End,
                Key::BackTab
            ]
        );
        assert_eq!(all(b"\x1b"), [Key::Esc]);
        assert_eq!(all(b"\x1b\x1b[A"), [Key::Esc, Key::Up]);
        assert_eq!(all(b"\x1b1"), [Key::Esc, Key::Char('1')]);
        assert_eq!(all("é日".as_bytes()), [Key::Char('é'), Key::Char('日')]);
        assert_eq!(all(b"\xffx\x00\x1b[200~"), [Key::Char('x')]);
        assert_eq!(all(b"\r\t"), [Key::Enter, Key::Tab]);
    }

    #[test]
    fn what_is_cut_is_waited_for() {
        let mut bytes = b"a\x1b[".to_vec();
        assert_eq!(keys(&mut bytes, false), [Key::Char('a')]);
        bytes.push(b'A');
        assert_eq!(keys(&mut bytes, false), [Key::Up]);
        assert!(bytes.is_empty());
        let mut bytes = "日".as_bytes()[..2].to_vec();
        assert_eq!(keys(&mut bytes, false), []);
        // Whatever comes, it ends.
        let mut bytes = [b"\x1b[".as_slice(), &[b'1'; 100]].concat();
        keys(&mut bytes, false);
        assert!(bytes.len() < 100);
    }
}
