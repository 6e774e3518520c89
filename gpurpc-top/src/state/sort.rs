//! The columns of the opcode table, and the order of its rows.

use std::cmp::Ordering;

use super::Row;

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// The opcode's name.
    Name,
    /// Calls in a second.
    Rate,
    /// Calls.
    Calls,
    /// Lanes.
    Lanes,
    /// Bytes received.
    In,
    /// Bytes sent.
    Out,
    /// The latency that half of all stay within.
    P50,
    /// The latency that 99 % stay within.
    P99,
    /// The longest latency.
    Max,
    /// How long requests had waited.
    Wait,
    /// Calls that failed.
    Errors,
    /// The share of the server's time.
    Share,
}

/// All columns as they stand.
pub const COLUMNS: [Column; 12] = [
    Column::Name,
    Column::Rate,
    Column::Calls,
    Column::Lanes,
    Column::In,
    Column::Out,
    Column::P50,
    Column::P99,
    Column::Max,
    Column::Wait,
    Column::Errors,
    Column::Share,
];

/// The same, those that are given up last where there is no room first.
const IMPORTANCE: [Column; 12] = [
    Column::Name,
    Column::Rate,
    Column::Calls,
    Column::P99,
    Column::Errors,
    Column::P50,
    Column::Share,
    Column::Lanes,
    Column::Max,
    Column::In,
    Column::Out,
    Column::Wait,
];

/// The least columns of a name.
const NAME: usize = 14;

/// Columns of the smallest usual screen.
const USUAL: usize = 80;
/// Longer names may be cut on any screen.
const LONG_NAME: usize = 24;

impl Column {
    /// Its heading.
    pub fn title(self) -> &'static str {
        match self {
            Self::Name => "OPCODE",
            Self::Rate => "CALLS/S",
            Self::Calls => "CALLS",
            Self::Lanes => "LANES",
            Self::In => "IN",
            Self::Out => "OUT",
            Self::P50 => "P50",
            Self::P99 => "P99",
            Self::Max => "MAX",
            Self::Wait => "WAIT",
            Self::Errors => "ERR",
            Self::Share => "SHARE",
        }
    }

    /// What is in it.
    pub fn explains(self) -> &'static str {
        match self {
            Self::Name => "name of the procedure, of all that nobody handles: unknown",
            Self::Rate => "port openings in a second, over the last second",
            Self::Calls => "port openings since the start",
            Self::Lanes => "lanes that took part, over all calls",
            Self::In => "payload from the device",
            Self::Out => "payload to the device",
            Self::P50 => "half of the calls took at most so long, request seen to reply given",
            Self::P99 => "the same for 99 % of them",
            Self::Max => "the longest call",
            Self::Wait => "99 % of the requests had waited at most so long to be seen",
            Self::Errors => "calls answered with an error, or given up",
            Self::Share => "of the time that the server spent on calls",
        }
    }

    /// Its width, less for the name, which takes what is left.
    pub fn width(self) -> usize {
        match self {
            Self::Name => NAME,
            Self::Errors => 5,
            Self::Share => 6,
            Self::Calls | Self::Lanes | Self::Rate | Self::In | Self::Out => 8,
            Self::P50 | Self::P99 | Self::Max | Self::Wait => 7,
        }
    }

    /// The columns for a table of `width`, the one by which is sorted among them. Where there is more
    /// room than on the smallest usual screen, names of `longest` are not cut for the sake of a column.
    pub fn fit(width: usize, sorted: Self, longest: usize) -> Vec<Self> {
        let mut left = width;
        let mut chosen = Vec::new();
        let name = if width > USUAL {
            longest.clamp(Self::Name.width(), LONG_NAME)
        } else {
            Self::Name.width()
        };
        let wanted = [Self::Name, sorted].into_iter().chain(IMPORTANCE);
        for column in wanted {
            let own = if column == Self::Name {
                name
            } else {
                column.width()
            };
            let takes = own + 1;
            if !chosen.contains(&column) && (takes <= left || chosen.is_empty()) {
                left = left.saturating_sub(takes);
                chosen.push(column);
            }
        }
        COLUMNS.into_iter().filter(|c| chosen.contains(c)).collect()
    }

    /// The next one, or with `back` the one before.
    #[must_use]
    pub fn step(self, back: bool) -> Self {
        let at = COLUMNS.iter().position(|&c| c == self).unwrap_or(0);
        let step = if back { COLUMNS.len() - 1 } else { 1 };
        COLUMNS[(at + step) % COLUMNS.len()]
    }

    fn compare(self, a: &Row, b: &Row) -> Ordering {
        match self {
            // From A on, where numbers begin with the largest.
            Self::Name => b.name.cmp(&a.name),
            Self::Rate => total(a.rate, b.rate),
            Self::Calls => a.calls.cmp(&b.calls),
            Self::Lanes => a.lanes.cmp(&b.lanes),
            Self::In => a.bytes_in.cmp(&b.bytes_in),
            Self::Out => a.bytes_out.cmp(&b.bytes_out),
            Self::P50 => a.p50_ns.cmp(&b.p50_ns),
            Self::P99 => a.p99_ns.cmp(&b.p99_ns),
            Self::Max => a.max_ns.cmp(&b.max_ns),
            Self::Wait => a.wait_p99_ns.cmp(&b.wait_p99_ns),
            Self::Errors => a.errors.cmp(&b.errors),
            Self::Share => a.server_ns.cmp(&b.server_ns),
        }
    }
}

fn total(a: Option<f64>, b: Option<f64>) -> Ordering {
    a.unwrap_or(-1.0).total_cmp(&b.unwrap_or(-1.0))
}

/// The order of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sort {
    /// By what.
    pub column: Column,
    /// Turned round: the smallest first.
    pub inverted: bool,
}

impl Default for Sort {
    fn default() -> Self {
        Self {
            column: Column::Calls,
            inverted: false,
        }
    }
}

impl Sort {
    /// Puts `rows` in order; what is equal stays in the order of the opcodes' registration.
    pub fn apply(self, rows: &mut [Row]) {
        rows.sort_by_key(|row| row.index);
        rows.sort_by(|a, b| {
            let order = self.column.compare(a, b);
            if self.inverted {
                order
            } else {
                order.reverse()
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(index: usize, name: &str, calls: u64) -> Row {
        Row {
            index,
            name: name.to_owned(),
            calls,
            ..Row::default()
        }
    }

    #[test]
    fn ties_are_stable_whatever_the_order_was() {
        let mut rows = vec![row(2, "c", 5), row(0, "a", 5), row(1, "b", 9)];
        Sort::default().apply(&mut rows);
        let names = |rows: &[Row]| rows.iter().map(|r| r.name.clone()).collect::<String>();
        assert_eq!(names(&rows), "bac");
        let inverted = Sort {
            inverted: true,
            ..Sort::default()
        };
        inverted.apply(&mut rows);
        assert_eq!(names(&rows), "acb");
        for column in COLUMNS {
            Sort {
                column,
                inverted: false,
            }
            .apply(&mut rows);
        }
        let by_name = Sort {
            column: Column::Name,
            inverted: false,
        };
        by_name.apply(&mut rows);
        assert_eq!(names(&rows), "abc");
    }

    #[test]
    fn columns_go_round() {
        let mut column = Column::Name;
        for _ in 0..COLUMNS.len() {
            assert_eq!(column.step(false).step(true), column);
            column = column.step(false);
        }
        assert_eq!(column, Column::Name);
    }

    #[test]
    fn the_sorted_column_is_always_there() {
        for width in 0..220 {
            for sorted in COLUMNS {
                let fit = Column::fit(width, sorted, 0);
                assert!(fit.contains(&Column::Name));
                let takes: usize = fit.iter().map(|c| c.width() + 1).sum();
                assert!(takes <= width || fit.len() == 1, "{width}: {fit:?}");
            }
        }
        assert_eq!(Column::fit(200, Column::Name, 40).len(), COLUMNS.len());
        // A name that is usual is whole on a screen that is a little larger.
        let taken =
            |columns: &[Column]| -> usize { columns[1..].iter().map(|c| c.width() + 1).sum() };
        let fit = Column::fit(100, Column::Calls, "write_to_stdout".len());
        assert!(100 - taken(&fit) > "write_to_stdout".len());
    }
}
