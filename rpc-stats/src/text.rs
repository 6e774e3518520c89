//! Text of others, made harmless.

/// What a shell or a terminal cannot take for anything but text.
pub fn printable(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if is_unsafe(c) {
            safe.extend(c.escape_default());
        } else {
            safe.push(c);
        }
    }
    safe
}

/// Controls, and what changes the direction or the look of the text around it.
pub fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_spelled_out() {
        assert_eq!(printable("a\x1b[0m\u{202e}é"), "a\\u{1b}[0m\\u{202e}é");
        assert_eq!(printable("one\ntwo\u{9b}"), "one\\ntwo\\u{9b}");
    }
}
