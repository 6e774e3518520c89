//! The lines at the top: what is run, on what, how much it asks.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use super::text::{left, put, put_right, span};
use crate::palette::{Palette, Role};
use crate::state::{State, TABS};
use crate::units::{bytes, clock, count, grouped, plural, printable, rate};

/// Columns of the chart.
const CHART: u16 = 60;

pub(super) fn render(state: &State, palette: Palette, framed: bool, area: Rect, buf: &mut Buffer) {
    let title = palette.style(Role::Title);
    let dim = palette.style(Role::Dim);
    let clock = status(state, palette);
    let room = usize::from(area.width).saturating_sub(clock.width() + 15);
    let command = &state.shown().command;
    put(
        buf,
        area,
        0,
        Line::from(vec![
            span(" gpurpc-top", title),
            span("  ", dim),
            span(left(command, room, palette), palette.style(Role::Value)),
        ]),
    );
    put_right(buf, area, 0, clock);
    let mut text = area;
    if framed && area.width >= 2 * CHART + 20 {
        text.width -= CHART + 2;
        chart(
            state,
            palette,
            Rect {
                x: area.x + text.width,
                y: area.y + 1,
                width: CHART + 1,
                height: area.height.saturating_sub(1),
            },
            buf,
        );
    }
    put(
        buf,
        text,
        1,
        span(palette.text(machine(state, palette)), dim),
    );
    put(buf, text, 2, numbers(state, palette));
}

/// The time, and what is special about it.
fn status(state: &State, palette: Palette) -> Line<'static> {
    let seconds = state.elapsed_ns() / 1_000_000_000;
    let (word, role) = match state.ended() {
        Some(ended) if ended.good => ("ended after", Role::Good),
        Some(_) => ("ended after", Role::Bad),
        None if state.is_over() => ("gone after", Role::Bad),
        None if state.silent().is_some() => ("silent since", Role::Warning),
        None if state.has_data() => ("running", Role::Good),
        None => ("starting", Role::Dim),
    };
    let mut spans = Vec::new();
    if let Some(paused) = state.paused() {
        let text = format!(" PAUSED {} ", clock(paused.as_secs()));
        spans.push(span(text, palette.style(Role::Current)));
        spans.push(Span::raw("  "));
    }
    spans.push(span(word, palette.style(role)));
    spans.push(span(
        format!(" {} ", clock(seconds)),
        palette.style(Role::Value),
    ));
    Line::from(spans)
}

fn product(size: [u32; 3]) -> u64 {
    size.iter().fold(1, |all, &n| all.saturating_mul(n.into()))
}

fn machine(state: &State, palette: Palette) -> String {
    let run = &state.shown().snapshot.run;
    if !state.has_data() {
        return " no statistics yet".to_owned();
    }
    let dot = palette.dot();
    let (blocks, threads) = (product(run.blocks), product(run.threads));
    let mut text = format!(
        " {} {dot} {} × {} {dot} {}, {} {dot} pid {}",
        printable(&run.device),
        plural(blocks, "block"),
        plural(threads, "thread"),
        printable(&run.layout),
        plural(state.shown().ports.marks.len() as u64, "port"),
        run.pid,
    );
    if let Some(rank) = run.rank {
        text = format!("{text} {dot} rank {rank}");
    }
    text
}

fn numbers(state: &State, palette: Palette) -> Line<'static> {
    let shown = state.shown();
    let value = palette.style(Role::Value);
    let dim = palette.style(Role::Dim);
    let alarm = |n: u64, role| if n > 0 { palette.style(role) } else { value };
    let through = shown.throughput;
    let or_dash = |of: &dyn Fn(crate::state::rates::Throughput) -> String| {
        through.map_or_else(|| "-".to_owned(), of)
    };
    let dropped = shown.snapshot.dropped_events;
    let mut spans = Vec::new();
    let mut add = |text: String, style, unit: &str| {
        spans.push(Span::raw(if spans.is_empty() { " " } else { "  " }));
        spans.push(span(text, style));
        spans.push(span(unit.to_owned(), dim));
    };
    add(or_dash(&|t| rate(t.calls)), value, " calls/s");
    add(count(shown.calls), value, " calls");
    add(count(shown.lanes), value, " lanes");
    let unit = if shown.errors == 1 {
        " error"
    } else {
        " errors"
    };
    add(count(shown.errors), alarm(shown.errors, Role::Bad), unit);
    add(count(dropped), alarm(dropped, Role::Warning), " dropped");
    add(or_dash(&|t| bytes(t.bytes_in as u64)), value, "/s in");
    add(or_dash(&|t| bytes(t.bytes_out as u64)), value, "/s out");
    Line::from(spans)
}

/// Calls in each of the last seconds.
fn chart(state: &State, palette: Palette, area: Rect, buf: &mut Buffer) {
    let history = &state.shown().history;
    let width = usize::from(CHART) - 12;
    let last = &history[history.len().saturating_sub(width)..];
    let most = last.iter().copied().max().unwrap_or(0).max(1);
    let heights = [8, 0];
    for (n, base) in heights.into_iter().enumerate() {
        // In sixteenths of the two lines.
        let cells: String = last
            .iter()
            .map(|&calls| {
                let level = (u128::from(calls) * 16).div_ceil(u128::from(most)) as usize;
                palette.column(level.saturating_sub(base))
            })
            .collect();
        let pad = " ".repeat(width - last.len());
        let label = match n {
            0 => format!(" {} max", rate_of(most)),
            _ => " calls/s".to_owned(),
        };
        put(
            buf,
            area,
            n,
            Line::from(vec![
                Span::raw(pad),
                span(cells, palette.style(Role::Bar)),
                span(label, palette.style(Role::Dim)),
            ]),
        );
    }
}

#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
fn rate_of(calls: u64) -> String {
    rate(calls as f64)
}

pub(super) fn tabs(state: &State, palette: Palette, area: Rect, buf: &mut Buffer) {
    let mut spans = Vec::new();
    for (number, tab) in TABS.into_iter().enumerate() {
        let style = if tab == state.tab() && state.help().is_none() {
            palette.style(Role::Current)
        } else {
            palette.style(Role::Text)
        };
        spans.push(span(" ", palette.style(Role::Text)));
        spans.push(span(format!(" {} {} ", number + 1, tab.title()), style));
    }
    put(buf, area, 0, Line::from(spans));
    let lints = &state.shown().lints;
    if !lints.is_empty() {
        let bad = lints.iter().any(|lint| lint.kind.is_bad());
        let role = if bad { Role::Bad } else { Role::Warning };
        let words = match lints.len() {
            1 => "1 warning".to_owned(),
            n => format!("{} warnings", grouped(n as u64)),
        };
        let text = format!("{} {words} ", palette.bang());
        let line = Line::from(span(text, palette.style(role)));
        if usize::from(area.width) > 58 + line.width() {
            put_right(buf, area, 0, line);
        }
    }
    debug_assert!(
        TABS.iter()
            .map(|tab| tab.title().width() + 5)
            .sum::<usize>()
            <= 58
    );
}
