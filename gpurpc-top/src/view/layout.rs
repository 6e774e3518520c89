//! Where things are, by the terminal's size alone.

use ratatui::layout::Rect;

use crate::state::ports::Grid;

/// How much is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A line for the run and, if there is room, one for each opcode.
    Line,
    /// No frames, the most important columns.
    Compact,
    /// Everything.
    Full,
}

/// The mode for a terminal of this size.
pub fn mode(width: u16, height: u16) -> Mode {
    match (width, height) {
        (..60, _) | (_, ..10) => Mode::Line,
        (60..100, _) | (_, 10..20) => Mode::Compact,
        _ => Mode::Full,
    }
}

/// The parts of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Areas {
    /// Program, device, totals.
    pub header: Rect,
    /// A rule, or what has to be said.
    pub banner: Rect,
    /// The tabs.
    pub tabs: Rect,
    /// The tab that is open.
    pub body: Rect,
    /// Keys.
    pub footer: Rect,
}

/// Lines of the header.
const HEADER: u16 = 3;

/// The parts of `area`, in modes other than [`Mode::Line`].
pub fn areas(area: Rect) -> Areas {
    let line = |y: u16, height: u16| Rect {
        y: area.y + y.min(area.height),
        height: height.min(area.height.saturating_sub(y)),
        ..area
    };
    let rest = area.height.saturating_sub(HEADER + 3);
    Areas {
        header: line(0, HEADER),
        tabs: line(HEADER, 1),
        banner: line(HEADER + 1, 1),
        body: line(HEADER + 2, rest),
        footer: line(HEADER + 2 + rest, 1),
    }
}

/// Rows that a page up or down moves by.
pub fn page((width, height): (u16, u16)) -> usize {
    let body = areas(Rect::new(0, 0, width, height)).body;
    usize::from(body.height.saturating_sub(3)).max(1)
}

/// Lines below the grid of the ports' tab.
pub(crate) const DETAIL: u16 = 6;
/// Columns of the numbers before a row of the grid.
pub(crate) const NUMBERS: u16 = 7;

/// The grid of the ports' tab and what stands below it.
pub(crate) fn ports_tab(body: Rect, framed: bool) -> [Rect; 2] {
    let detail = DETAIL + if framed { 2 } else { 1 };
    let detail = if body.height >= detail + 4 { detail } else { 0 };
    let grid = Rect {
        height: body.height - detail,
        ..body
    };
    let below = Rect {
        y: body.y + grid.height,
        height: detail,
        ..body
    };
    [grid, below]
}

/// The cells of the ports' tab, without their frame and numbers.
pub(crate) fn cells(grid: Rect, framed: bool) -> Rect {
    let (side, ends) = if framed { (1, 2) } else { (0, 1) };
    let side_both = side * 2;
    // The legend takes a line.
    Rect {
        x: grid.x + (side + NUMBERS).min(grid.width),
        y: grid.y + 1.min(grid.height),
        width: grid.width.saturating_sub(side_both + NUMBERS),
        height: grid.height.saturating_sub(ends + 1),
    }
}

/// How the ports' tab lays out `ports`.
pub fn ports_grid((width, height): (u16, u16), ports: usize) -> Grid {
    let body = areas(Rect::new(0, 0, width, height)).body;
    let framed = mode(width, height) == Mode::Full;
    let cells = cells(ports_tab(body, framed)[0], framed);
    Grid::fit(ports, cells.width.into(), cells.height.into())
}
