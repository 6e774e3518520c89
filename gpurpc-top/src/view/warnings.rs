//! What looks wrong.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::text::{panel, put, span, wrap};
use crate::palette::{Palette, Role};
use crate::state::State;

/// Columns before a sentence.
const INDENT: usize = 3;

/// Lines that a panel without a frame needs.
pub(super) fn height(state: &State, width: u16) -> u16 {
    let width = usize::from(width).saturating_sub(INDENT + 1);
    let lints = &state.shown().lints;
    let lines: usize = lints
        .iter()
        .map(|lint| wrap(&lint.sentence, width).len())
        .sum();
    u16::try_from(lines.max(1)).map_or(u16::MAX, |lines| lines.saturating_add(1))
}

pub(super) fn render(state: &State, palette: Palette, framed: bool, area: Rect, buf: &mut Buffer) {
    let area = panel(buf, area, "warnings", framed, palette);
    let width = usize::from(area.width).saturating_sub(INDENT + 1);
    let lints = &state.shown().lints;
    if lints.is_empty() && state.has_data() {
        put(buf, area, 0, span(" none", palette.style(Role::Good)));
    }
    let mut n = 0;
    for lint in lints {
        let role = if lint.kind.is_bad() {
            Role::Bad
        } else {
            Role::Warning
        };
        for (part, text) in wrap(&palette.text(lint.sentence.clone()), width)
            .into_iter()
            .enumerate()
        {
            let mark = if part == 0 { palette.bang() } else { " " };
            put(
                buf,
                area,
                n,
                Line::from(vec![
                    span(format!(" {mark} "), palette.style(role)),
                    span(text, palette.style(Role::Text)),
                ]),
            );
            n += 1;
        }
    }
}
