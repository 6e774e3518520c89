//! What there is room for in a small terminal: the run in a line, then the opcodes.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::banner;
use super::text::{left, put, right, span};
use crate::palette::{Palette, Role};
use crate::state::State;
use crate::state::ports::Mark;
use crate::units::{clock, count, rate, time};

pub(super) fn render(state: &State, palette: Palette, area: Rect, buf: &mut Buffer) {
    let width = usize::from(area.width);
    let shown = state.shown();
    let calls = shown
        .throughput
        .map_or_else(|| "-".to_owned(), |through| rate(through.calls));
    let mut spans = vec![
        span(
            clock(state.elapsed_ns() / 1_000_000_000),
            palette.style(Role::Title),
        ),
        span(format!(" {calls}/s"), palette.style(Role::Value)),
        span(
            format!(" {} calls", count(shown.calls)),
            palette.style(Role::Text),
        ),
    ];
    if state.paused().is_some() {
        spans.insert(0, span("PAUSED ", palette.style(Role::Current)));
    }
    if shown.errors > 0 {
        spans.push(span(
            format!(" {} err", count(shown.errors)),
            palette.style(Role::Bad),
        ));
    }
    let stuck = shown.ports.count(Mark::Stuck);
    if stuck > 0 {
        spans.push(span(format!(" {stuck} stuck"), palette.style(Role::Bad)));
    }
    let dropped = shown.snapshot.dropped_events;
    if dropped > 0 {
        spans.push(span(
            format!(" {} drop", count(dropped)),
            palette.style(Role::Warning),
        ));
    }
    put(buf, area, 0, Line::from(spans));
    // What has to be said takes the last line, or the only one.
    let message = banner::message(state);
    let mut room = usize::from(area.height);
    if let Some((role, text)) = message {
        room = room.saturating_sub(1);
        let style = palette
            .style(role)
            .add_modifier(ratatui::style::Modifier::REVERSED);
        put(buf, area, room, span(left(&text, width, palette), style));
    }
    let numbers = if width >= 40 { 25 } else { 16 };
    let name = width.saturating_sub(numbers);
    for (n, row) in state.rows().enumerate() {
        if n + 1 >= room {
            break;
        }
        let called = row.rate.map_or_else(|| "-".to_owned(), rate);
        let mut text = format!(
            "{}{}/s{}",
            left(&row.name, name, palette),
            right(&called, 7),
            right(&count(row.calls), 7)
        );
        if width >= 40 {
            let p99 = row.p99_ns.map_or_else(|| "-".to_owned(), time);
            text = format!("{text} {}", right(&p99, 8));
        }
        let role = if row.key.is_none() || row.errors > 0 {
            Role::Bad
        } else {
            Role::Text
        };
        put(
            buf,
            area,
            n + 1,
            span(palette.text(text), palette.style(role)),
        );
    }
}
