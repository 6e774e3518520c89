//! What results are to be on the GPU that gpurpc is measured on, an H200 with its layout `Line`.

use crate::row::{Row, Statistics, Unit};

/// Which of a result's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    /// The ratio.
    Ratio,
    /// The median.
    Median,
    /// The calls of all warps in a second.
    Rate,
}

/// No worse than this.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

use Bound::{AtLeast, AtMost};
use Of::{Median, Rate, Ratio};

/// Byte rates of LLVM's RPC on the same machine, in bytes a second, for streams of one lane and of all.
const LLVM: [f64; 2] = [4.3e6, 21e6];

/// Workload, warps, lanes, and what it is to be.
type Goal = (&'static str, u32, u32, Of, Bound);

/// All goals.
const GOALS: [Goal; 19] = [
    ("start", 1, 1, Ratio, AtMost(1.5)),
    ("increment", 1, 1, Ratio, AtMost(1.4)),
    ("kept", 1, 1, Ratio, AtMost(1.25)),
    ("increment", 1, 32, Ratio, AtMost(1.5)),
    ("echo64", 1, 32, Ratio, AtMost(2.4)),
    ("increment", 132, 1, Ratio, AtMost(2.0)),
    ("increment", 132, 32, Ratio, AtMost(4.5)),
    ("echo64", 132, 32, Ratio, AtMost(8.0)),
    ("increment", 1056, 32, Rate, AtLeast(12e6)),
    ("diverge", 1056, 32, Median, AtLeast(2e6)),
    ("noop", 132, 32, Median, AtLeast(10e6)),
    ("send1m", 1, 1, Ratio, AtLeast(0.6)),
    ("send64m", 1, 1, Ratio, AtLeast(0.85)),
    ("stack8k", 1, 1, Median, AtLeast(20.0 * LLVM[0])),
    ("echo4k", 132, 32, Median, AtLeast(20.0 * LLVM[1])),
    ("idle", 1, 1, Median, AtMost(3.0)),
    ("first-call", 1, 1, Median, AtMost(250.0)),
    ("counters", 132, 32, Ratio, AtMost(1.03)),
    ("statistics", 132, 32, Ratio, AtMost(1.03)),
];

/// A result beside its goal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Judged {
    /// The goal, as people read it.
    pub(crate) text: String,
    /// Whether it is met.
    pub(crate) met: bool,
}

/// The goal of `row`, if it has one.
pub(crate) fn judge(row: &Row) -> Option<Judged> {
    // The goals are for the layout that images have unless they ask for another; the floors have none.
    if !matches!(row.served.layout, "" | "line") {
        return None;
    }
    let is_of = |goal: &&Goal| (goal.0, goal.1, goal.2) == (row.workload, row.warps, row.lanes);
    let &(.., of, bound) = GOALS.iter().find(is_of)?;
    let (factor, unit) = match of {
        Ratio => (1.0, ""),
        Rate => Unit::PerSecond.shown(),
        Median => row.unit.shown(),
    };
    let value = match of {
        Ratio => row.ratio?.value,
        Rate => row.rate?,
        Median => Statistics::of(&row.values).median,
    };
    let (sign, limit, met) = match bound {
        AtMost(limit) => ("<=", limit, value <= limit),
        AtLeast(limit) => (">=", limit, value >= limit),
    };
    let text = format!("{sign} {} {unit}", limit * factor);
    Some(Judged {
        text: text.trim_end().to_owned(),
        met,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::tests::row;

    #[test]
    fn every_goal_is_of_a_workload() {
        use crate::workloads::Workload;
        for goal in GOALS {
            let own = |workload: &Workload| workload.name() == goal.0;
            assert!(Workload::ALL.iter().any(own), "{goal:?}");
        }
    }

    #[test]
    fn results_are_judged_by_the_number_of_the_goal() {
        let judged = |change: &dyn Fn(&mut Row)| {
            let mut row = row(&[2.0], Unit::Microseconds);
            change(&mut row);
            judge(&row).map(|judged| (judged.text, judged.met))
        };
        // 132 warps of 32 lanes at 1.5 times the floor.
        assert_eq!(judged(&|_| ()), Some(("<= 4.5".to_owned(), true)));
        for other in ["compact", "llvm"] {
            assert_eq!(judged(&|row| row.served.layout = other), None);
        }
        assert_eq!(judged(&|row| row.warps = 16), None);
        let many = |rate| move |row: &mut Row| (row.warps, row.rate) = (1056, Some(rate));
        assert_eq!(judged(&many(1e6)), Some((">= 12 M/s".to_owned(), false)));
        assert_eq!(judged(&many(12e6)), Some((">= 12 M/s".to_owned(), true)));
        let echo = |row: &mut Row| {
            (row.workload, row.unit, row.values) = ("echo4k", Unit::BytesPerSecond, vec![1e9]);
        };
        assert_eq!(judged(&echo), Some((">= 420 MB/s".to_owned(), true)));
        let first = |row: &mut Row| {
            (row.workload, row.warps, row.lanes) = ("first-call", 1, 1);
            row.values = vec![251.0];
        };
        assert_eq!(judged(&first), Some(("<= 250 us".to_owned(), false)));
    }
}
