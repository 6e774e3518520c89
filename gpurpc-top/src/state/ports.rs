//! What the grid of ports shows.

use rpc_stats::{PortState, PortStats, Snapshot};

/// What a cell of the grid says, the most urgent last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mark {
    /// No exchange is open.
    #[default]
    Idle,
    /// The host waits for the device's next step.
    MidExchange,
    /// A handler works.
    InHandler,
    /// A request was posted that nobody has taken.
    Waiting,
    /// One of the last three for too long.
    Stuck,
}

/// All marks, in the order of the legend.
pub const MARKS: [Mark; 5] = [
    Mark::Idle,
    Mark::Waiting,
    Mark::InHandler,
    Mark::MidExchange,
    Mark::Stuck,
];

impl Mark {
    /// The mark of `port` at `now_ns`.
    pub fn of(port: &PortStats, now_ns: u64, stuck_ns: u64) -> Self {
        match port.state {
            _ if port.is_stuck(now_ns, stuck_ns) => Self::Stuck,
            state => Self::plain(state),
        }
    }

    /// The mark of a state that has not lasted long.
    pub fn plain(state: PortState) -> Self {
        match state {
            PortState::Idle => Self::Idle,
            PortState::Waiting => Self::Waiting,
            PortState::InHandler => Self::InHandler,
            PortState::MidExchange => Self::MidExchange,
        }
    }

    /// Its name in the legend.
    pub fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Waiting => "waiting",
            Self::InHandler => "in handler",
            Self::MidExchange => "mid-exchange",
            Self::Stuck => "stuck",
        }
    }

    /// What it says.
    pub fn explains(self) -> &'static str {
        match self {
            Self::Idle => "free, or being filled by the device",
            Self::Waiting => "a request was posted, nobody has taken it",
            Self::InHandler => "its handler works, or waits for the host",
            Self::MidExchange => "the host waits for the device's next step",
            Self::Stuck => "one of the last three for longer than --stuck",
        }
    }
}

/// The marks of all ports, and how many there are of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ports {
    /// One for each port.
    pub marks: Vec<Mark>,
    counts: [usize; MARKS.len()],
}

impl Ports {
    /// Those of `snapshot`.
    pub fn new(snapshot: &Snapshot, stuck_ns: u64) -> Self {
        let mark = |port| Mark::of(port, snapshot.time_ns, stuck_ns);
        let marks: Vec<_> = snapshot.ports.iter().map(mark).collect();
        let mut counts = [0; MARKS.len()];
        for &mark in &marks {
            counts[mark as usize] += 1;
        }
        Self { marks, counts }
    }

    /// How many have `mark`.
    pub fn count(&self, mark: Mark) -> usize {
        self.counts[mark as usize]
    }

    /// How many have an exchange open.
    pub fn open(&self) -> usize {
        self.marks.len() - self.count(Mark::Idle)
    }
}

/// How ports are laid out in cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Cells of a row.
    pub columns: usize,
    /// Rows that have ports.
    pub rows: usize,
    /// Ports of a cell: a power of 2.
    pub per_cell: usize,
}

impl Grid {
    /// The grid of `ports` in `width` times `height` cells: columns are a power of 2, for then the
    /// numbers at the rows are round, and a cell has one port if there is room for that. What does
    /// not fit even so is not shown; nothing is, without room.
    pub fn fit(ports: usize, width: usize, height: usize) -> Self {
        if width == 0 || height == 0 || ports == 0 {
            return Self {
                columns: 1,
                rows: 0,
                per_cell: 1,
            };
        }
        let columns = (1 << width.ilog2()).min(128).min(ports.next_power_of_two());
        let per_cell = ports.div_ceil(columns * height).next_power_of_two();
        Self {
            columns,
            rows: ports.div_ceil(columns * per_cell),
            per_cell,
        }
    }

    /// The most urgent mark of each cell.
    pub fn cells(self, marks: &[Mark]) -> impl Iterator<Item = Mark> + '_ {
        let cells = marks.chunks(self.per_cell);
        cells.map(|cell| cell.iter().copied().max().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_hold_all_ports() {
        for ports in [0, 1, 2, 63, 64, 65, 256, 4096, 16384, 65536] {
            for (width, height) in [(0, 5), (5, 0), (1, 1), (3, 2), (74, 12), (190, 50)] {
                let grid = Grid::fit(ports, width, height);
                assert!(grid.columns <= width.max(1));
                assert!(grid.rows <= height, "{ports} in {width}x{height}: {grid:?}");
                if width * height > 0 {
                    assert!(grid.columns * grid.rows * grid.per_cell >= ports);
                }
            }
        }
        let grid = Grid::fit(64, 74, 12);
        assert_eq!((grid.columns, grid.rows, grid.per_cell), (64, 1, 1));
        assert_eq!(Grid::fit(4096, 74, 12).per_cell, 8);
        assert_eq!(Grid::fit(4096, 190, 50).per_cell, 1);
    }

    #[test]
    fn a_cell_shows_its_worst_port() {
        let mut marks = vec![Mark::Idle; 10];
        marks[5] = Mark::Stuck;
        marks[8] = Mark::InHandler;
        let grid = Grid {
            columns: 4,
            rows: 1,
            per_cell: 4,
        };
        let cells: Vec<_> = grid.cells(&marks).collect();
        assert_eq!(cells, [Mark::Idle, Mark::Stuck, Mark::InHandler]);
    }
}
