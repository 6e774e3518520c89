//! The help: made of the table of keys, the columns and the marks.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::text::{left, panel, put, span};
use crate::keys::BINDINGS;
use crate::palette::{Palette, Role};
use crate::state::State;
use crate::state::ports::MARKS;
use crate::state::sort::COLUMNS;

const LABEL: usize = 17;

/// Lines of the help.
pub fn lines() -> usize {
    // A heading and an empty line for each part but the first.
    BINDINGS.len() + COLUMNS.len() + MARKS.len() + 4
}

fn all(palette: Palette) -> Vec<Line<'static>> {
    let line = |label: &str, text: &str| {
        Line::from(vec![
            span(
                left(&format!(" {label}"), LABEL, palette),
                palette.style(Role::Key),
            ),
            span(palette.text(text.to_owned()), palette.style(Role::Text)),
        ])
    };
    let heading = |text: &str| Line::from(span(format!(" {text}"), palette.style(Role::Title)));
    let keys = BINDINGS
        .iter()
        .map(|binding| line(binding.shown, binding.help));
    let columns = COLUMNS
        .iter()
        .map(|column| line(column.title(), column.explains()));
    let marks = MARKS.iter().map(|&mark| {
        let label = format!(" {} {}", palette.mark(mark), mark.name());
        Line::from(vec![
            span(left(&label, LABEL, palette), palette.mark_style(mark)),
            span(mark.explains().to_owned(), palette.style(Role::Text)),
        ])
    });
    let gap = || std::iter::once(Line::default());
    keys.chain(gap())
        .chain([heading("Columns")])
        .chain(columns)
        .chain(gap())
        .chain([heading("Ports")])
        .chain(marks)
        .collect()
}

pub(super) fn render(state: &State, palette: Palette, framed: bool, area: Rect, buf: &mut Buffer) {
    let all = all(palette);
    debug_assert_eq!(all.len(), lines());
    let ends = if framed { 2 } else { 1 };
    let room = usize::from(area.height).saturating_sub(ends).max(1);
    let first = state
        .help()
        .unwrap_or(0)
        .min(all.len().saturating_sub(room));
    let title = if all.len() > room {
        format!(
            "help, {} to {} of {}",
            first + 1,
            (first + room).min(all.len()),
            all.len()
        )
    } else {
        "help".to_owned()
    };
    let inner = panel(buf, area, &title, framed, palette);
    for (n, line) in all.into_iter().skip(first).enumerate() {
        put(buf, inner, n, line);
    }
}
