//! What the program prints.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::text::{clip, panel, put, skip, span};
use crate::palette::{Palette, Role};
use crate::state::output::Stream;
use crate::state::{State, Watching};
use crate::units::{bytes, grouped};

pub(super) fn render(state: &State, palette: Palette, framed: bool, area: Rect, buf: &mut Buffer) {
    let (output, end) = state.output();
    let mut title = "output".to_owned();
    if !state.follows_output() {
        title = format!(
            "{title}, up to line {} of {}",
            grouped(end),
            grouped(output.end())
        );
    }
    if output.dropped_bytes() > 0 {
        title = format!("{title}, {} dropped", bytes(output.dropped_bytes()));
    }
    let inner = panel(buf, area, &title, framed, palette);
    if output.end() == 0 {
        let text = match state.watching() {
            Watching::Attached => " the output is where the loader was started",
            _ => " nothing was printed yet",
        };
        put(buf, inner, 0, span(text, palette.style(Role::Dim)));
        return;
    }
    let room = u64::from(inner.height);
    let first = end.saturating_sub(room).max(output.begin());
    let width = usize::from(inner.width).saturating_sub(2);
    let count = end.saturating_sub(first) as usize;
    for (n, line) in output.lines_from(first).take(count).enumerate() {
        let (mark, role) = match line.stream {
            Stream::Out => ("  ", Role::Text),
            Stream::Err => ("! ", Role::Warning),
        };
        let moved = skip(&line.text, state.shift());
        let (text, _) = clip(&moved, width);
        let style = if role == Role::Text {
            palette.style(role)
        } else {
            // Bold text is hard to read in many lines.
            palette
                .style(role)
                .remove_modifier(ratatui::style::Modifier::BOLD)
        };
        put(
            buf,
            inner,
            n,
            Line::from(vec![
                span(mark, palette.style(role)),
                span(text.to_owned(), style),
            ]),
        );
    }
}
