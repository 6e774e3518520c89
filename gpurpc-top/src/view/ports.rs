//! The grid of ports.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::layout::{NUMBERS, cells, ports_tab};
use super::text::{left, panel, put, right, span};
use crate::palette::{Palette, Role};
use crate::state::State;
use crate::state::ports::{Grid, MARKS, Mark};
use crate::units::{bytes, count, grouped, plural, time};

/// The tab: the grid with its legend, the selected port below it.
pub(super) fn render(state: &State, palette: Palette, framed: bool, area: Rect, buf: &mut Buffer) {
    let [grid_area, detail_area] = ports_tab(area, framed);
    let marks = &state.shown().ports.marks;
    let cells = cells(grid_area, framed);
    let grid = Grid::fit(marks.len(), cells.width.into(), cells.height.into());
    let inner = panel(buf, grid_area, &title(state, grid), framed, palette);
    draw(state, palette, grid, Some(state.port()), inner, buf);
    let legend = Rect {
        y: inner.y + inner.height.saturating_sub(1),
        height: inner.height.min(1),
        ..inner
    };
    put(buf, legend, 0, legend_line(state, palette));
    if detail_area.height > 0 {
        detail(state, palette, framed, detail_area, buf);
    }
}

/// What the first tab shows of the ports.
pub(super) fn strip(state: &State, palette: Palette, framed: bool, area: Rect, buf: &mut Buffer) {
    let marks = &state.shown().ports.marks;
    let (sides, ends) = if framed { (2, 2) } else { (0, 1) };
    let width = area.width.saturating_sub(sides + NUMBERS);
    let height = area.height.saturating_sub(ends + 1);
    let grid = Grid::fit(marks.len(), width.into(), height.into());
    let inner = panel(buf, area, &title(state, grid), framed, palette);
    draw(state, palette, grid, None, inner, buf);
    put(buf, inner, grid.rows, legend_line(state, palette));
}

/// Lines that a framed strip of `width` columns needs for one port in each cell.
pub(super) fn wanted(state: &State, width: u16) -> u16 {
    let ports = state.shown().ports.marks.len();
    let cells = width.saturating_sub(NUMBERS + 2);
    let rows = Grid::fit(ports, cells.into(), ports).rows;
    u16::try_from(rows + 3).unwrap_or(u16::MAX)
}

fn title(state: &State, grid: Grid) -> String {
    let ports = &state.shown().ports;
    let mut title = format!(
        "{}, {} open",
        plural(ports.marks.len() as u64, "port"),
        ports.open()
    );
    if grid.per_cell > 1 {
        title = format!("{title}, {} in a cell, the worst shows", grid.per_cell);
    }
    title
}

fn draw(
    state: &State,
    palette: Palette,
    grid: Grid,
    selected: Option<usize>,
    area: Rect,
    buf: &mut Buffer,
) {
    let marks = &state.shown().ports.marks;
    let mut cells = grid.cells(marks);
    let chosen = selected.map(|port| port / grid.per_cell);
    for y in 0..grid.rows {
        let first = y * grid.columns * grid.per_cell;
        let number = right(&first.to_string(), usize::from(NUMBERS) - 1);
        let mut spans = vec![span(number + " ", palette.style(Role::Dim))];
        // Neighbours that look alike are one span.
        let mut run: Option<(Mark, String)> = None;
        for x in 0..grid.columns {
            let Some(mark) = cells.next() else {
                break;
            };
            if chosen == Some(y * grid.columns + x) {
                spans.extend(
                    run.take()
                        .map(|(mark, text)| span(text, palette.mark_style(mark))),
                );
                let style = palette
                    .mark_style(mark)
                    .patch(palette.style(Role::Selected));
                spans.push(Span::styled(palette.mark(mark), style));
                continue;
            }
            match &mut run {
                Some((same, text)) if *same == mark => text.push_str(palette.mark(mark)),
                _ => {
                    let new = Some((mark, palette.mark(mark).to_owned()));
                    let old = std::mem::replace(&mut run, new);
                    spans.extend(old.map(|(mark, text)| span(text, palette.mark_style(mark))));
                }
            }
        }
        spans.extend(run.map(|(mark, text)| span(text, palette.mark_style(mark))));
        put(buf, area, y, Line::from(spans));
    }
}

fn legend_line(state: &State, palette: Palette) -> Line<'static> {
    let ports = &state.shown().ports;
    let mut spans = Vec::new();
    // Idle last: it is what can be spared where the line is cut off.
    for mark in MARKS.into_iter().rev() {
        let n = ports.count(mark);
        spans.push(Span::raw(" "));
        spans.push(Span::styled(palette.mark(mark), palette.mark_style(mark)));
        let role = if n == 0 { Role::Dim } else { Role::Text };
        let text = format!(" {} {} ", count(n as u64), mark.name());
        spans.push(span(text, palette.style(role)));
    }
    Line::from(spans)
}

fn detail(state: &State, palette: Palette, framed: bool, area: Rect, buf: &mut Buffer) {
    let number = state.port();
    let shown = state.shown();
    let inner = panel(buf, area, &format!("port {number}"), framed, palette);
    let (Some(port), Some(&mark)) = (
        shown.snapshot.ports.get(number),
        shown.ports.marks.get(number),
    ) else {
        put(
            buf,
            inner,
            0,
            span(" there are no ports", palette.style(Role::Dim)),
        );
        return;
    };
    let name = match port.opcode {
        None => "none yet".to_owned(),
        Some(opcode) => shown.name(opcode).map_or_else(
            || format!("{opcode:#x}"),
            |name| format!("{name} ({opcode:#x})"),
        ),
    };
    let since = time(shown.snapshot.time_ns.saturating_sub(port.since_ns));
    let mut what = mark.name().to_owned();
    if mark == Mark::Stuck {
        what = format!("stuck {}", Mark::plain(port.state).name());
    }
    let lanes = plural(port.mask.count_ones().into(), "lane");
    let line = |label: &str, value: String, style| {
        Line::from(vec![
            span(
                left(&format!(" {label}"), 10, palette),
                palette.style(Role::Dim),
            ),
            span(palette.text(value), style),
        ])
    };
    let text = palette.style(Role::Text);
    let strong = palette.style(Role::Value);
    let state_text = format!(
        "{} {what} for {since}: {}",
        palette.mark(mark),
        mark.explains()
    );
    let state_style = palette.mark_style(mark);
    put(buf, inner, 0, line("opcode", name, strong));
    // The glyph is not to be replaced.
    put(
        buf,
        inner,
        1,
        Line::from(vec![
            span(left(" state", 10, palette), palette.style(Role::Dim)),
            span(
                state_text.replace('µ', if palette.ascii { "u" } else { "µ" }),
                state_style,
            ),
        ]),
    );
    put(
        buf,
        inner,
        2,
        line("lanes", format!("{:#018x}, {lanes}", port.mask), text),
    );
    put(buf, inner, 3, line("calls", grouped(port.calls), text));
    let payload = format!("{} in, {} out", bytes(port.bytes_in), bytes(port.bytes_out));
    put(buf, inner, 4, line("payload", payload, text));
    let latency = match port.latency_ns {
        0 => "none measured".to_owned(),
        ns => time(ns),
    };
    put(
        buf,
        inner,
        5,
        line("latency", format!("{latency} (the last call)"), text),
    );
}
