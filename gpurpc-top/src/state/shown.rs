//! One snapshot, ready to be drawn.

use std::sync::Arc;

use rpc_stats::{OpcodeStats, Snapshot};

use super::Settings;
use super::lints::{Lint, lints};
use super::ports::Ports;
use super::rates::{Rates, Throughput, sum};
use super::sort::Sort;
use crate::units::printable;

/// A row of the opcode table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Which of the snapshot's opcodes: the row's identity.
    pub index: usize,
    /// The opcode; `None` for all that nobody handles.
    pub key: Option<u32>,
    /// Its name, with nothing in it that moves a cursor.
    pub name: String,
    /// Calls in a second, from two snapshots on.
    pub rate: Option<f64>,
    /// Calls.
    pub calls: u64,
    /// Lanes of all calls.
    pub lanes: u64,
    /// Payload received.
    pub bytes_in: u64,
    /// Payload sent.
    pub bytes_out: u64,
    /// The median latency.
    pub p50_ns: Option<u64>,
    /// The latency that 99 % stay within.
    pub p99_ns: Option<u64>,
    /// The longest latency.
    pub max_ns: u64,
    /// What 99 % of the requests had waited at most.
    pub wait_p99_ns: Option<u64>,
    /// Calls that failed.
    pub errors: u64,
    /// The server's time.
    pub server_ns: u64,
    /// The share of all the server's time, from 0 to 1.
    pub share: Option<f64>,
}

impl Row {
    fn new(index: usize, opcode: &OpcodeStats, rates: &Rates, all_ns: u64) -> Self {
        #[expect(
            clippy::cast_precision_loss,
            reason = "a share is shown with two digits"
        )]
        let share = (all_ns > 0).then(|| opcode.server_ns as f64 / all_ns as f64);
        Self {
            index,
            key: opcode.opcode,
            name: printable(&opcode.name),
            rate: rates.of(index),
            calls: opcode.calls,
            lanes: opcode.lanes,
            bytes_in: opcode.bytes_in,
            bytes_out: opcode.bytes_out,
            p50_ns: opcode.latency.percentile_ns(0.5),
            p99_ns: opcode.latency.percentile_ns(0.99),
            max_ns: opcode.latency.max_ns(),
            wait_p99_ns: opcode.wait.percentile_ns(0.99),
            errors: opcode.errors,
            server_ns: opcode.server_ns,
            share,
        }
    }
}

/// One snapshot, ready to be drawn.
#[derive(Clone, Debug, Default)]
pub struct Shown {
    /// The snapshot.
    pub snapshot: Arc<Snapshot>,
    /// Its opcodes, sorted.
    pub rows: Vec<Row>,
    /// Its ports.
    pub ports: Ports,
    /// What is wrong.
    pub lints: Vec<Lint>,
    /// Calls of all opcodes.
    pub calls: u64,
    /// Lanes of all opcodes.
    pub lanes: u64,
    /// Failed calls of all opcodes.
    pub errors: u64,
    /// What there is in a second, from two snapshots on.
    pub throughput: Option<Throughput>,
    /// Calls in each of the last seconds, the newest last.
    pub history: Vec<u64>,
    /// Image and arguments as one line.
    pub command: String,
}

impl Shown {
    /// Makes it: `rates` and `exhausted` are of the snapshots up to this one.
    pub fn new(
        snapshot: Arc<Snapshot>,
        rates: &Rates,
        exhausted: u32,
        settings: &Settings,
        sort: Sort,
    ) -> Self {
        let opcodes = &snapshot.opcodes;
        let all_ns = sum(opcodes.iter().map(|o| o.server_ns));
        let mut rows: Vec<_> = (opcodes.iter().enumerate())
            .map(|(index, opcode)| Row::new(index, opcode, rates, all_ns))
            .collect();
        let ports = Ports::new(&snapshot, settings.stuck_ns);
        let lints = lints(&snapshot, &rows, &ports, exhausted, settings);
        sort.apply(&mut rows);
        Self {
            lints,
            ports,
            calls: sum(opcodes.iter().map(|o| o.calls)),
            lanes: sum(opcodes.iter().map(|o| o.lanes)),
            errors: sum(opcodes.iter().map(|o| o.errors)),
            throughput: rates.total(),
            history: rates.history().collect(),
            command: command(&snapshot.run.command),
            rows,
            snapshot,
        }
    }

    /// Whether the same would be drawn of both, as far as it does not come from the snapshot itself.
    pub fn looks_like(&self, other: &Self) -> bool {
        self.throughput == other.throughput
            && self.history == other.history
            && self.lints == other.lints
            && self.ports == other.ports
    }

    /// The name of an opcode.
    pub fn name(&self, opcode: u32) -> Option<&str> {
        let row = self.rows.iter().find(|row| row.key == Some(opcode))?;
        Some(&row.name)
    }
}

/// The image's file name, then its arguments.
fn command(command: &[String]) -> String {
    let Some((image, arguments)) = command.split_first() else {
        return String::new();
    };
    let name = image.rsplit('/').next().filter(|name| !name.is_empty());
    let words = [name.unwrap_or(image)].into_iter();
    let line = words.chain(arguments.iter().map(String::as_str));
    printable(&line.collect::<Vec<_>>().join(" "))
}
