//! The opcode table, with ports and warnings below it.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use ratatui::text::Line;

use super::text::{left, panel, put, right, span};
use super::{events, latency, ports, warnings};
use crate::palette::{Palette, Role};
use crate::state::sort::Column;
use crate::state::{Row, State};
use crate::units::{bytes, count, rate, time};

/// The least lines of what is below the table.
const BELOW: u16 = 7;
/// Lines below the table that latency and events have room in, too.
const TALL: u16 = 24;
/// The most columns between two of the table.
const GAP: usize = 4;
/// The most columns of a name.
const NAME: usize = 40;

pub(super) fn render(state: &State, palette: Palette, framed: bool, area: Rect, buf: &mut Buffer) {
    let frame = if framed { 2 } else { 0 };
    let wanted = state.rows().count().max(1) as u16 + 1 + frame;
    let below = if area.height >= BELOW + 4 { BELOW } else { 0 };
    let most = area.height - below;
    let height = if below == 0 {
        most
    } else {
        wanted.clamp(4, most.max(4))
    };
    let upper = Rect { height, ..area };
    let lower = Rect {
        y: area.y + height,
        height: area.height - height,
        ..area
    };
    let inner = if framed {
        panel(buf, upper, "opcodes", true, palette)
    } else {
        upper
    };
    table(state, palette, inner, buf);
    if below == 0 {
        return;
    }
    if framed {
        let tall = lower.height >= TALL;
        let wanted = ports::wanted(state, area.width / 2).max(state.shown().lints.len() as u16 + 2);
        let height = if tall {
            wanted.clamp(BELOW, lower.height / 2)
        } else {
            lower.height
        };
        let [left, right] = halves(Rect { height, ..lower });
        ports::strip(state, palette, true, left, buf);
        warnings::render(state, palette, true, right, buf);
        if tall {
            let rest = Rect {
                y: lower.y + height,
                height: lower.height - height,
                ..lower
            };
            let [left, right] = halves(rest);
            latency::one(state, palette, left, buf);
            events::render(state, palette, true, right, buf);
        }
    } else {
        let lines = warnings::height(state, area.width).min(lower.height / 2);
        let upper = lower.height - lines;
        ports::strip(
            state,
            palette,
            false,
            Rect {
                height: upper,
                ..lower
            },
            buf,
        );
        let rest = Rect {
            y: lower.y + upper,
            height: lines,
            ..lower
        };
        warnings::render(state, palette, false, rest, buf);
    }
}

/// The left and the right half of an area.
fn halves(area: Rect) -> [Rect; 2] {
    let half = area.width / 2;
    let left = Rect {
        width: half,
        ..area
    };
    let right = Rect {
        x: area.x + half,
        width: area.width - half,
        ..area
    };
    [left, right]
}

fn table(state: &State, palette: Palette, area: Rect, buf: &mut Buffer) {
    let width = usize::from(area.width);
    let sort = state.sort();
    let longest = state.rows().map(|row| row.name.len()).max().unwrap_or(0);
    let columns = Column::fit(width, sort.column, longest);
    let others: usize = columns[1..].iter().map(|c| c.width() + 1).sum();
    let spare = width.saturating_sub(others + 1 + NAME);
    let gap = (1 + spare / columns.len()).min(GAP);
    let taken = others + (columns.len() - 1) * (gap - 1);
    let name = width.saturating_sub(taken + 2).min(NAME);
    let gap = |column| if column == Column::Name { 1 } else { gap };
    let mut heading = Vec::new();
    for &column in &columns {
        let (title, style) = if column == sort.column {
            let title = format!("{}{}", palette.arrow(!sort.inverted), column.title());
            let style = palette
                .style(Role::Title)
                .add_modifier(Modifier::UNDERLINED);
            (title, style)
        } else {
            (column.title().to_owned(), palette.style(Role::Heading))
        };
        heading.push(span(" ".repeat(gap(column)), palette.style(Role::Heading)));
        heading.push(span(cell(column, &title, name, palette), style));
    }
    put(buf, area, 0, Line::from(heading));
    let rows: Vec<_> = state.rows().collect();
    if rows.is_empty() {
        let text = if state.has_data() {
            " no calls yet"
        } else {
            // With `--stats off` they never come.
            " no statistics: the loader has published none yet"
        };
        put(buf, area, 1, span(text, palette.style(Role::Dim)));
        return;
    }
    let room = usize::from(area.height).saturating_sub(1);
    let selected = state.row().map(|row| row.index);
    let at = rows
        .iter()
        .position(|row| Some(row.index) == selected)
        .unwrap_or(0);
    let first = (at + 1).saturating_sub(room);
    for (n, row) in rows[first..].iter().take(room).enumerate() {
        let chosen = Some(row.index) == selected;
        let mut spans = Vec::new();
        for &column in &columns {
            let text = palette.text(content(column, row));
            let mut style = palette.style(role(state, column, row));
            if chosen {
                style = style.patch(palette.style(Role::Selected));
            }
            let between = if chosen { Role::Selected } else { Role::Text };
            spans.push(span(" ".repeat(gap(column)), palette.style(between)));
            spans.push(span(cell(column, &text, name, palette), style));
        }
        put(buf, area, n + 1, Line::from(spans));
    }
    let hidden = rows.len().saturating_sub(first + room);
    if hidden > 0 && room > 1 {
        let text = format!(" {} {hidden} more ", palette.ellipsis());
        super::text::put_right(buf, area, room, span(text, palette.style(Role::Key)));
    }
}

fn cell(column: Column, text: &str, name: usize, palette: Palette) -> String {
    match column {
        Column::Name => left(text, name, palette),
        _ => right(text, column.width()),
    }
}

pub(super) fn content(column: Column, row: &Row) -> String {
    let called = |text: String| if row.calls > 0 { text } else { "-".to_owned() };
    let known = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), time);
    match column {
        Column::Name => row.name.clone(),
        Column::Rate => row.rate.map_or_else(|| "-".to_owned(), rate),
        Column::Calls => count(row.calls),
        Column::Lanes => count(row.lanes),
        Column::In => called(bytes(row.bytes_in)),
        Column::Out => called(bytes(row.bytes_out)),
        Column::P50 => known(row.p50_ns),
        Column::P99 => known(row.p99_ns),
        Column::Max => known(row.p99_ns.map(|_| row.max_ns)),
        Column::Wait => known(row.wait_p99_ns),
        Column::Errors => count(row.errors),
        Column::Share => row
            .share
            .map_or_else(|| "-".to_owned(), |share| format!("{:.1}%", share * 100.0)),
    }
}

fn role(state: &State, column: Column, row: &Row) -> Role {
    match column {
        Column::Name if row.key.is_none() => Role::Bad,
        Column::Name => Role::Value,
        Column::Errors if row.errors > 0 => Role::Bad,
        Column::P99 if row.p99_ns.is_some_and(|ns| ns > state.settings().slow_ns) => Role::Warning,
        _ if row.calls == 0 => Role::Dim,
        _ => Role::Text,
    }
}
