//! Selecting and scrolling.

use super::{State, Tab};
use crate::keys::Command;
use crate::view::layout;

/// Columns that the output moves at a time.
const SHIFT: usize = 8;
/// Nobody looks so far to the right.
const FAR: usize = 16 << 10;

/// Moves `at` of `count` things by `command`; `row` is what up and down move by.
fn step(at: usize, count: usize, row: usize, page: usize, command: Command) -> usize {
    let last = count.saturating_sub(1);
    let moved = match command {
        Command::Up => at.checked_sub(row).unwrap_or(at),
        Command::Down if at + row <= last => at + row,
        Command::Left => at.saturating_sub(1),
        Command::Right => at + 1,
        Command::PageUp => at.saturating_sub(page),
        Command::PageDown => at + page,
        Command::First => 0,
        Command::Last => last,
        _ => at,
    };
    moved.min(last)
}

impl State {
    pub(super) fn go(&mut self, command: Command) {
        let page = layout::page(self.size);
        if let Some(line) = self.help {
            let lines = crate::view::help::lines();
            self.help = Some(step(line, lines, 1, page, command));
            return;
        }
        match self.tab {
            Tab::Opcodes | Tab::Latency => {
                let slots: Vec<_> = self.rows().map(|row| row.index).collect();
                let at = slots.iter().position(|&slot| Some(slot) == self.slot);
                let to = at.map_or(0, |at| step(at, slots.len(), 1, page, command));
                self.slot = slots.get(to).copied();
            }
            Tab::Ports => {
                let ports = self.shown.ports.marks.len();
                let grid = layout::ports_grid(self.size, ports);
                let cells = ports.div_ceil(grid.per_cell);
                let cell = self.port() / grid.per_cell;
                let whole = grid.columns * grid.rows.max(1);
                let to = step(cell, cells, grid.columns, whole, command);
                self.port = to * grid.per_cell;
            }
            Tab::Events => {
                let (events, end) = self.events();
                let (begin, end) = (events.begin(), end);
                if let Some(to) = scroll(self.event, begin, end.saturating_sub(1), page, command) {
                    self.event = to;
                }
            }
            Tab::Output => match command {
                Command::Left => self.shift = self.shift.saturating_sub(SHIFT),
                Command::Right => self.shift = (self.shift + SHIFT).min(FAR),
                _ => {
                    if command == Command::First {
                        self.shift = 0;
                    }
                    let newest = self.frozen.map_or(self.output.end(), |frozen| frozen.lines);
                    let top = (self.output.begin() + page as u64).min(newest);
                    if let Some(to) = scroll(self.line, top, newest, page, command) {
                        self.line = to;
                    }
                }
            },
        }
    }
}

/// Where a list that grows at its end is scrolled to, from `at` or, if it followed, from `last`.
/// Going to the last follows again.
#[expect(
    clippy::option_option,
    reason = "no move, or one to a number or to following"
)]
fn scroll(
    at: Option<u64>,
    first: u64,
    last: u64,
    page: usize,
    command: Command,
) -> Option<Option<u64>> {
    let from = at.unwrap_or(last);
    let to = match command {
        Command::Up => from.saturating_sub(1),
        Command::Down => from.saturating_add(1),
        Command::PageUp => from.saturating_sub(page as u64),
        Command::PageDown => from.saturating_add(page as u64),
        Command::First => first,
        Command::Last => return Some(None),
        _ => return None,
    };
    Some((to < last).then_some(to.max(first)))
}
