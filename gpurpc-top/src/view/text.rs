//! Text in a given number of columns.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Borders, Widget};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::palette::{Palette, Role};

/// The part of `text` that `width` columns hold, and how many it takes.
pub(crate) fn clip(text: &str, width: usize) -> (&str, usize) {
    let mut taken = 0;
    for (at, c) in text.char_indices() {
        let w = c.width().unwrap_or(0);
        if taken + w > width {
            return (&text[..at], taken);
        }
        taken += w;
    }
    (text, taken)
}

/// `text` from column `skip` on: a wide character that begins before it leaves a space.
pub(crate) fn skip(text: &str, skip: usize) -> String {
    let (before, taken) = clip(text, skip);
    let mut rest = text[before.len()..].chars();
    if taken < skip && rest.next().is_some() {
        return format!(" {}", rest.as_str());
    }
    rest.as_str().to_owned()
}

/// `text` in exactly `width` columns, to the left; what is cut off leaves a mark.
pub(crate) fn left(text: &str, width: usize, palette: Palette) -> String {
    let full = text.width();
    if full <= width {
        return format!("{text}{}", " ".repeat(width - full));
    }
    let (part, taken) = clip(text, width.saturating_sub(1));
    let mark = if width > 0 { palette.ellipsis() } else { "" };
    format!(
        "{part}{mark}{}",
        " ".repeat(width.saturating_sub(taken + 1))
    )
}

/// `text` in at least `width` columns, to the right.
pub(crate) fn right(text: &str, width: usize) -> String {
    format!("{}{text}", " ".repeat(width.saturating_sub(text.width())))
}

/// Line number `n` of `area`, if it has that many.
pub(crate) fn row(area: Rect, n: usize) -> Option<Rect> {
    let n = u16::try_from(n).ok().filter(|&n| n < area.height)?;
    Some(Rect {
        y: area.y + n,
        height: 1,
        ..area
    })
}

/// Draws `line` as line number `n` of `area`, if there is such a one.
pub(crate) fn put<'l>(buf: &mut Buffer, area: Rect, n: usize, line: impl Into<Line<'l>>) {
    if let Some(row) = row(area, n) {
        line.into().render(row, buf);
    }
}

/// The same, ending at the right edge.
pub(crate) fn put_right<'l>(buf: &mut Buffer, area: Rect, n: usize, line: impl Into<Line<'l>>) {
    put(buf, area, n, line.into().right_aligned());
}

/// A panel with a title: framed, or below a rule. Gives what is inside.
pub(crate) fn panel(
    buf: &mut Buffer,
    area: Rect,
    title: &str,
    framed: bool,
    palette: Palette,
) -> Rect {
    let borders = if framed { Borders::ALL } else { Borders::TOP };
    let title = Span::styled(format!(" {title} "), palette.style(Role::Title));
    let block = Block::new()
        .borders(borders)
        .border_type(BorderType::Rounded)
        .border_set(palette.border())
        .border_style(palette.style(Role::Dim))
        .title(title);
    let inner = block.inner(area);
    block.render(area, buf);
    inner
}

/// A span.
pub(crate) fn span(text: impl Into<String>, style: Style) -> Span<'static> {
    Span::styled(text.into(), style)
}

/// `sentence` in lines of at most `width` columns, broken between words where that is possible.
pub(crate) fn wrap(sentence: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in sentence.split(' ') {
        let line = lines.last().map_or(0, |line| line.width());
        if line > 0 && line + 1 + word.width() > width {
            lines.push(String::new());
        } else if line > 0
            && let Some(line) = lines.last_mut()
        {
            line.push(' ');
        }
        if let Some(line) = lines.last_mut() {
            line.push_str(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_counted_not_characters() {
        let palette = Palette::default();
        assert_eq!(left("abc", 5, palette), "abc  ");
        assert_eq!(left("abcdef", 4, palette), "abc…");
        assert_eq!(left("日本語", 4, palette), "日… ");
        assert_eq!(left("abc", 0, palette), "");
        assert_eq!(right("12", 5), "   12");
        assert_eq!(skip("日本", 1), " 本");
        assert_eq!(skip("abc", 2), "c");
        assert_eq!(skip("abc", 9), "");
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
    }
}
