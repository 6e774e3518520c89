//! The last calls.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;
use rpc_stats::Event;
use unicode_width::UnicodeWidthStr;

use super::text::{left, panel, put, right, span};
use crate::palette::{Palette, Role};
use crate::state::State;
use crate::units::{bytes, grouped, time};

const NAME: usize = 18;

pub(super) fn render(state: &State, palette: Palette, framed: bool, area: Rect, buf: &mut Buffer) {
    let (events, end) = state.events();
    let mode = match state.event() {
        None => "following".to_owned(),
        Some(number) => format!("at {} of {}", grouped(number + 1), grouped(end)),
    };
    let title = format!("last calls, {mode}");
    let inner = panel(buf, area, &title, framed, palette);
    let width = inner.width.into();
    let headings = whole(&heading(), width);
    put(
        buf,
        inner,
        0,
        span(
            left(&headings, width, palette),
            palette.style(Role::Heading),
        ),
    );
    let room = u64::from(inner.height.saturating_sub(1));
    if end == events.begin() {
        put(
            buf,
            inner,
            1,
            span(" no calls yet", palette.style(Role::Dim)),
        );
        return;
    }
    let last = state.event().map_or(end, |number| {
        // Kept in view, the newest below it as far as there is room.
        (number + 1).max((events.begin() + room).min(end))
    });
    let first = last.saturating_sub(room).max(events.begin());
    for (n, (number, event)) in events.range(first, last).enumerate() {
        let style = match event.status {
            0 => palette.style(Role::Text),
            _ => palette.style(Role::Bad),
        };
        let style = if state.event() == Some(number) {
            style.patch(palette.style(Role::Selected))
        } else {
            style
        };
        let text = palette.text(whole(&line(state, event, palette), width));
        put(
            buf,
            inner,
            n + 1,
            Line::from(span(left(&text, width, palette), style)),
        );
    }
}

/// As many cells as there is room for, from the first on: a number that is cut is another number.
fn whole(cells: &[String; 11], width: usize) -> String {
    let mut text = String::new();
    for (n, cell) in cells.iter().enumerate() {
        if n > 0 && text.width() + 1 + cell.width() > width {
            break;
        }
        text.push(' ');
        text.push_str(cell);
    }
    text
}

fn heading() -> [String; 11] {
    [
        right("TIME", 11),
        right("PORT", 5),
        format!("{:<NAME$}", "OPCODE"),
        right("LANES", 5),
        right("LATENCY", 8),
        right("WAIT", 8),
        right("STATUS", 9),
        right("IN", 9),
        right("OUT", 9),
        right("POLLER", 6),
        right("SAMPLED", 7),
    ]
}

fn line(state: &State, event: &Event, palette: Palette) -> [String; 11] {
    let name = state
        .shown()
        .name(event.opcode)
        .map_or_else(|| format!("{:#x}", event.opcode), str::to_owned);
    let status = match event.status {
        0 => "ok".to_owned(),
        n => format!("error {n}"),
    };
    let sampled = match event.sampled {
        0 | 1 => String::new(),
        n => format!("1 in {n}"),
    };
    let micros = event.time_ns / 1000;
    let at = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    [
        right(&at, 11),
        right(&event.port.to_string(), 5),
        left(&name, NAME, palette),
        right(&event.mask.count_ones().to_string(), 5),
        right(&time(event.latency_ns), 8),
        right(&time(event.wait_ns), 8),
        right(&status, 9),
        right(&bytes(event.bytes_in), 9),
        right(&bytes(event.bytes_out), 9),
        right(&event.poller.to_string(), 6),
        right(&sampled, 7),
    ]
}
