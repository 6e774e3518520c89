//! What looks wrong, in one sentence each.

use rpc_stats::Snapshot;

use super::ports::{Mark, Ports};
use super::{Row, Settings};
use crate::units::{clock, plural, time};

/// What kind of thing is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LintKind {
    /// An exchange does not go on.
    StuckPort,
    /// No port is left.
    PortsExhausted,
    /// Nobody handles an opcode.
    UnknownOpcode,
    /// A handler takes long.
    SlowHandler,
    /// A poller does not look at its ports.
    PollerStarved,
    /// Events were lost.
    EventsDropped,
}

impl LintKind {
    /// Its name for other programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::StuckPort => "stuck_port",
            Self::PortsExhausted => "ports_exhausted",
            Self::UnknownOpcode => "unknown_opcode",
            Self::SlowHandler => "slow_handler",
            Self::PollerStarved => "poller_starved",
            Self::EventsDropped => "events_dropped",
        }
    }

    /// Whether something is broken, not only worth a look.
    pub fn is_bad(self) -> bool {
        matches!(self, Self::StuckPort | Self::PortsExhausted)
    }
}

/// Something that looks wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lint {
    /// What kind.
    pub kind: LintKind,
    /// What is wrong, with which, and what to do.
    pub sentence: String,
}

/// What is wrong with a run, the worst first. `exhausted`: for how many snapshots in a row all
/// ports have been in use.
pub fn lints(
    snapshot: &Snapshot,
    rows: &[Row],
    ports: &Ports,
    exhausted: u32,
    settings: &Settings,
) -> Vec<Lint> {
    let found = [
        stuck(snapshot, rows, ports),
        exhaustion(snapshot, ports, exhausted),
        unknown(rows),
        slow(rows, settings.slow_ns),
        starved(snapshot, settings.starved_ns),
        dropped(snapshot),
    ];
    found.into_iter().flatten().collect()
}

fn stuck(snapshot: &Snapshot, rows: &[Row], ports: &Ports) -> Option<Lint> {
    let is_stuck = |&(number, _): &(usize, _)| ports.marks.get(number) == Some(&Mark::Stuck);
    let stuck = snapshot.ports.iter().enumerate().filter(is_stuck);
    let (number, port) = stuck.min_by_key(|(_, port)| port.since_ns)?;
    let name = name(rows, port.opcode);
    let since = clock(snapshot.time_ns.saturating_sub(port.since_ns) / 1_000_000_000);
    let state = Mark::plain(port.state).name();
    let others = match ports.count(Mark::Stuck) {
        1 => String::new(),
        n => format!(", and {} more", n - 1),
    };
    Some(Lint {
        kind: LintKind::StuckPort,
        sentence: format!("port {number} ({name}) has been {state} for {since}{others}"),
    })
}

fn exhaustion(snapshot: &Snapshot, ports: &Ports, exhausted: u32) -> Option<Lint> {
    if exhausted < 2 || snapshot.end.is_some() {
        return None;
    }
    let all = match ports.marks.len() {
        1 => "the only port is".to_owned(),
        n => format!("all {n} ports are"),
    };
    Some(Lint {
        kind: LintKind::PortsExhausted,
        sentence: format!("{all} in use, further calls wait for one: try more --ports"),
    })
}

fn unknown(rows: &[Row]) -> Option<Lint> {
    let row = rows.iter().find(|row| row.key.is_none() && row.calls > 0)?;
    Some(Lint {
        kind: LintKind::UnknownOpcode,
        sentence: format!(
            "{} of opcodes that nobody handles: the loader lacks a handler",
            plural(row.calls, "call")
        ),
    })
}

fn slow(rows: &[Row], slow_ns: u64) -> Option<Lint> {
    let slow = |row: &&Row| row.p99_ns.is_some_and(|ns| ns > slow_ns);
    let row = rows.iter().filter(slow).max_by_key(|row| row.p99_ns)?;
    let others = match rows.iter().filter(slow).count() {
        1 => String::new(),
        2 => "; 1 more is slow".to_owned(),
        n => format!("; {} more are slow", n - 1),
    };
    Some(Lint {
        kind: LintKind::SlowHandler,
        sentence: format!(
            "{} is slow: p99 {}, longest {}{others}",
            row.name,
            time(row.p99_ns.unwrap_or(0)),
            time(row.max_ns)
        ),
    })
}

fn starved(snapshot: &Snapshot, starved_ns: u64) -> Option<Lint> {
    let pollers = snapshot.pollers.iter().enumerate();
    let (number, poller) = pollers.max_by_key(|(_, poller)| poller.longest_gap_ns)?;
    if poller.longest_gap_ns <= starved_ns || snapshot.end.is_some() {
        return None;
    }
    Some(Lint {
        kind: LintKind::PollerStarved,
        sentence: format!(
            "poller {number} has not looked at its ports for {}: a handler keeps it, or the cores \
             are busy",
            time(poller.longest_gap_ns)
        ),
    })
}

fn dropped(snapshot: &Snapshot) -> Option<Lint> {
    (snapshot.dropped_events > 0).then(|| Lint {
        kind: LintKind::EventsDropped,
        sentence: format!(
            "{} dropped under load: latencies are of a sample, counters are exact",
            plural(snapshot.dropped_events, "event")
        ),
    })
}

fn name(rows: &[Row], opcode: Option<u32>) -> String {
    let row = rows
        .iter()
        .find(|row| row.key.is_some() && row.key == opcode);
    match (row, opcode) {
        (Some(row), _) => row.name.clone(),
        (None, Some(opcode)) => format!("{opcode:#x}"),
        (None, None) => "no opcode".to_owned(),
    }
}
