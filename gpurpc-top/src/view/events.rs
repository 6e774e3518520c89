//! The last calls.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;
use rpc_stats::Event;

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
    let wide = inner.width >= 96;
    let headings = heading(wide);
    put(
        buf,
        inner,
        0,
        span(
            left(&headings, inner.width.into(), palette),
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
        let text = palette.text(line(state, event, wide, palette));
        put(
            buf,
            inner,
            n + 1,
            Line::from(span(left(&text, inner.width.into(), palette), style)),
        );
    }
}

fn heading(wide: bool) -> String {
    let mut text = format!(
        " {} {} {:<NAME$} {} {} {} {}",
        right("TIME", 11),
        right("PORT", 5),
        "OPCODE",
        right("LANES", 5),
        right("LATENCY", 8),
        right("WAIT", 8),
        right("STATUS", 9),
    );
    if wide {
        text = format!(
            "{text} {} {} {} {}",
            right("IN", 9),
            right("OUT", 9),
            right("POLLER", 6),
            right("SAMPLED", 7)
        );
    }
    text
}

fn line(state: &State, event: &Event, wide: bool, palette: Palette) -> String {
    let name = state
        .shown()
        .name(event.opcode)
        .map_or_else(|| format!("{:#x}", event.opcode), str::to_owned);
    let status = match event.status {
        0 => "ok".to_owned(),
        n => format!("error {n}"),
    };
    let micros = event.time_ns / 1000;
    let at = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    let mut text = format!(
        " {} {} {} {} {} {} {}",
        right(&at, 11),
        right(&event.port.to_string(), 5),
        left(&name, NAME, palette),
        right(&event.mask.count_ones().to_string(), 5),
        right(&time(event.latency_ns), 8),
        right(&time(event.wait_ns), 8),
        right(&status, 9),
    );
    if wide {
        let sampled = match event.sampled {
            0 | 1 => String::new(),
            n => format!("1 in {n}"),
        };
        text = format!(
            "{text} {} {} {} {}",
            right(&bytes(event.bytes_in), 9),
            right(&bytes(event.bytes_out), 9),
            right(&event.poller.to_string(), 6),
            right(&sampled, 7),
        );
    }
    text
}
