//! What the text of PTX says of its kernels: the driver tells neither their names nor what they take.

use std::collections::BTreeMap;

/// The kernels of `text` with the bytes of their parameters; `None` for one whose parameters cannot
/// be read.
pub(crate) fn kernels(text: &str) -> BTreeMap<String, Option<u32>> {
    let mut kernels = BTreeMap::new();
    let mut tokens = Tokens { rest: text };
    while let Some(token) = tokens.next() {
        if token != ".entry" {
            continue;
        }
        let Some(name) = tokens.next().filter(|name| is_name(name)) else {
            continue;
        };
        // A declaration ends with a semicolon; its definition says the same.
        let size = match tokens.next() {
            Some("(") => parameters(&mut tokens),
            _ => Some(0),
        };
        kernels.insert(name.to_owned(), size);
    }
    kernels
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '$' | '%'))
}

/// The bytes of the parameters up to the closing parenthesis.
fn parameters(tokens: &mut Tokens<'_>) -> Option<u32> {
    let mut end = 0_u32;
    let mut one = Vec::new();
    loop {
        let token = tokens.next()?;
        if token != "," && token != ")" {
            one.push(token);
            continue;
        }
        if !one.is_empty() {
            let (size, alignment) = parameter(&one)?;
            end = end.checked_next_multiple_of(alignment)?.checked_add(size)?;
            one.clear();
        }
        if token == ")" {
            return Some(end);
        }
    }
}

/// Size and alignment of `.param .u64 .ptr .global .align 8 name`, `.param .align 4 .b8 name[12]`.
fn parameter(tokens: &[&str]) -> Option<(u32, u32)> {
    let mut tokens = tokens.iter().copied();
    (tokens.next()? == ".param").then_some(())?;
    let mut alignment = None;
    let element = loop {
        match tokens.next()? {
            ".align" => alignment = Some(tokens.next()?.parse().ok()?),
            // Behind the type stands only what the pointer points to, then the name.
            token => break size_of_type(token)?,
        }
    };
    let mut count = 1;
    while let Some(token) = tokens.next() {
        if token == "[" {
            count = tokens.next()?.parse().ok()?;
        }
    }
    let alignment = alignment.unwrap_or(element);
    Some((element.checked_mul(count)?, alignment)).filter(|_| alignment.is_power_of_two())
}

fn size_of_type(token: &str) -> Option<u32> {
    let name = token.strip_prefix('.')?;
    let bits = name.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    match bits {
        "8" => Some(1),
        "16" => Some(2),
        "32" | "16x2" => Some(4),
        "64" => Some(8),
        "128" => Some(16),
        _ => None,
    }
}

/// Words, directives and signs of PTX, without what stands in comments and in quotation marks.
struct Tokens<'t> {
    rest: &'t str,
}

impl<'t> Iterator for Tokens<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        loop {
            self.rest = self.rest.trim_start();
            let first = self.rest.chars().next()?;
            if let Some(comment) = self.rest.strip_prefix("//") {
                self.rest = comment.split_once('\n').map_or("", |(_, after)| after);
            } else if let Some(comment) = self.rest.strip_prefix("/*") {
                self.rest = comment.split_once("*/").map_or("", |(_, after)| after);
            } else if let Some(quoted) = self.rest.strip_prefix('"') {
                self.rest = quoted.split_once('"').map_or("", |(_, after)| after);
            } else {
                let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%');
                let start = usize::from(first == '.');
                let length = match self.rest[start..].find(|c| !part(c)) {
                    Some(0) if start == 0 => first.len_utf8(),
                    Some(length) => start + length,
                    None => self.rest.len(),
                };
                let (token, rest) = self.rest.split_at(length);
                self.rest = rest;
                return Some(token);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As clang 22 writes them, and nvcc.
    const TEXT: &str = "
        .version 8.0 // .entry no(
        .file 1 \"x.entry quoted(\"
        /* .entry neither( */
        .visible .const .align 8 .u64 __fini_array_object_three_1_102 = three;
        .visible .entry _begin(
            .param .u32 _begin_param_0,
            .param .u64 .ptr .align 1 _begin_param_1,
            .param .u64 .ptr .align 1 _begin_param_2
        )
        { ret; }
        .visible .entry _start(.param .u32 a, .param .u64 b, .param .u64 c, .param .u64 d){ret;}
        .visible .entry _end() // @_end
        .maxntid 1 { ret; }
        .entry bare { ret; }
        .weak .entry nvptx$device$fini() { ret; }
        .visible .entry wide(.param .b8 one, .param .align 16 .b8 many[20], .param .f16x2 x,
            .param .b128 y[2])
        .visible .entry odd(.param .texref t)
        .visible .func two() { ret; }";

    #[test]
    fn kernels_are_found_with_what_they_take() {
        let found = kernels(TEXT);
        let found: Vec<_> = found.iter().map(|(name, size)| (&**name, *size)).collect();
        assert_eq!(
            found,
            [
                ("_begin", Some(24)),
                ("_end", Some(0)),
                ("_start", Some(32)),
                ("bare", Some(0)),
                ("nvptx$device$fini", Some(0)),
                ("odd", None),
                ("wide", Some(80)),
            ]
        );
    }

    #[test]
    fn what_is_cut_off_is_not_taken_for_whole() {
        for end in 0..TEXT.len() {
            if TEXT.is_char_boundary(end) {
                let _ = kernels(&TEXT[..end]);
            }
        }
        assert_eq!(kernels(".entry x(.param .u32 a,")["x"], None);
        assert_eq!(kernels(".entry x(.param .align 3 .b8 a[4])")["x"], None);
        assert_eq!(kernels(".entry x(.param .b8 a[99999999999])")["x"], None);
        assert!(kernels(".entry").is_empty() && kernels(".entry \u{e4}()").is_empty());
    }
}
