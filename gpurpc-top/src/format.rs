//! A snapshot for other programs: JSON and CSV, with the unit in each key. The schema of a record is
//! in `schema/record-v1.json`.

use std::io::{self, Write};
use std::time::Duration;

use rpc_stats::{RunEnd, Snapshot};
use serde::Serialize;

use crate::source::{Health, Look};
use crate::state::ports::Mark;
use crate::state::{Row, Settings, State, Watching};

/// The version of the records.
pub const VERSION: u32 = 1;

/// A run at one time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Record {
    /// [`VERSION`].
    pub v: u32,
    /// The loader's process.
    pub pid: u32,
    /// What the loader calls itself.
    pub loader: String,
    /// The program's arguments, the image first.
    pub command: Vec<String>,
    /// The device.
    pub device: String,
    /// The layout of the ports.
    pub layout: String,
    /// Lanes of a warp.
    pub warp_lanes: u32,
    /// Blocks of the grid in x, y and z.
    pub blocks: [u32; 3],
    /// Threads of a block in x, y and z.
    pub threads: [u32; 3],
    /// The rank among several loaders.
    pub rank: Option<u32>,
    /// When the service was started: milliseconds since 1970.
    pub started_unix_ms: u64,
    /// Since then.
    pub elapsed_ns: u64,
    /// The exit code, once the run has ended.
    pub exit_code: Option<u8>,
    /// Exchanges that were given up at the end, once the run has ended.
    pub cancelled: Option<u64>,
    /// Calls without an event.
    pub dropped_events: u64,
    /// What was called.
    pub opcodes: Vec<OpcodeRecord>,
    /// How many ports are in which state.
    pub ports: PortsRecord,
    /// What looks wrong.
    pub warnings: Vec<WarningRecord>,
}

/// An opcode that was called.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OpcodeRecord {
    /// The opcode; none for all that nobody handles.
    pub opcode: Option<u32>,
    /// Its name.
    pub name: String,
    /// Port openings.
    pub calls: u64,
    /// The same in a second, over the last second, from two snapshots on.
    pub calls_per_s: Option<f64>,
    /// Lanes of all calls.
    pub lanes: u64,
    /// Payload that came from the device.
    pub bytes_in: u64,
    /// Payload that went to it.
    pub bytes_out: u64,
    /// Calls that failed.
    pub errors: u64,
    /// The server's time for it.
    pub server_ns: u64,
    /// Latency percentiles, request seen to reply given.
    pub p50_ns: Option<u64>,
    /// 99 % stay within.
    pub p99_ns: Option<u64>,
    /// The longest.
    pub max_ns: Option<u64>,
    /// 99 % of the requests had waited at most so long.
    pub wait_p99_ns: Option<u64>,
}

/// How many ports are in which state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PortsRecord {
    /// All.
    pub total: usize,
    /// Of these: no exchange is open.
    pub idle: usize,
    /// A request was posted that nobody has taken.
    pub waiting: usize,
    /// A handler works.
    pub in_handler: usize,
    /// The host waits for the device.
    pub mid_exchange: usize,
    /// One of the last three for too long.
    pub stuck: usize,
}

/// What looks wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WarningRecord {
    /// What kind of thing.
    pub kind: &'static str,
    /// What is said of it.
    pub sentence: String,
}

/// Makes records of snapshots that follow one another.
pub struct Recorder(State);

impl Recorder {
    /// None yet.
    pub fn new(settings: Settings) -> Self {
        Self(State::new(settings, Watching::Child))
    }

    /// Takes a snapshot.
    pub fn observe(&mut self, snapshot: Snapshot) {
        let look = Look {
            snapshot: Some(snapshot),
            health: Health::Alive,
        };
        self.0.observe(Duration::ZERO, look);
    }

    /// The record of the latest snapshot, with rates from those before it.
    pub fn record(&self) -> Record {
        record(&self.0)
    }
}

fn record(state: &State) -> Record {
    let shown = state.shown();
    let snapshot = &shown.snapshot;
    let run = &snapshot.run;
    let mut rows: Vec<_> = shown.rows.iter().filter(|row| row.calls > 0).collect();
    rows.sort_by_key(|row| row.index);
    let count = |mark| shown.ports.count(mark);
    Record {
        v: VERSION,
        pid: run.pid,
        loader: run.loader.clone(),
        command: run.command.clone(),
        device: run.device.clone(),
        layout: run.layout.clone(),
        warp_lanes: run.lanes,
        blocks: run.blocks,
        threads: run.threads,
        rank: run.rank,
        started_unix_ms: run.started_unix_ms,
        elapsed_ns: snapshot.time_ns,
        exit_code: snapshot.end.map(|end: RunEnd| end.code),
        cancelled: snapshot.end.map(|end| end.cancelled),
        dropped_events: snapshot.dropped_events,
        opcodes: rows.into_iter().map(|row| opcode(snapshot, row)).collect(),
        ports: PortsRecord {
            total: shown.ports.marks.len(),
            idle: count(Mark::Idle),
            waiting: count(Mark::Waiting),
            in_handler: count(Mark::InHandler),
            mid_exchange: count(Mark::MidExchange),
            stuck: count(Mark::Stuck),
        },
        warnings: shown
            .lints
            .iter()
            .map(|lint| WarningRecord {
                kind: lint.kind.name(),
                sentence: lint.sentence.clone(),
            })
            .collect(),
    }
}

fn opcode(snapshot: &Snapshot, row: &Row) -> OpcodeRecord {
    let name = snapshot.opcodes.get(row.index).map(|opcode| &opcode.name);
    OpcodeRecord {
        opcode: row.key,
        name: name.cloned().unwrap_or_default(),
        calls: row.calls,
        calls_per_s: row.rate,
        lanes: row.lanes,
        bytes_in: row.bytes_in,
        bytes_out: row.bytes_out,
        errors: row.errors,
        server_ns: row.server_ns,
        p50_ns: row.p50_ns,
        p99_ns: row.p99_ns,
        max_ns: row.p99_ns.map(|_| row.max_ns),
        wait_p99_ns: row.wait_p99_ns,
    }
}

/// The columns of [`csv`].
pub const CSV_HEADING: &str = "v,pid,elapsed_ns,exit_code,dropped_events,opcode,name,calls,\
    calls_per_s,lanes,bytes_in,bytes_out,errors,server_ns,p50_ns,p99_ns,max_ns,wait_p99_ns\n";

/// A line for each opcode of `record`.
///
/// # Errors
/// When `out` cannot be written.
pub fn csv(record: &Record, out: &mut dyn Write) -> io::Result<()> {
    fn cell<T: ToString>(value: Option<T>) -> String {
        value.map_or_else(String::new, |value| value.to_string())
    }
    for opcode in &record.opcodes {
        let name = quoted(&opcode.name);
        let cells = [
            record.v.to_string(),
            record.pid.to_string(),
            record.elapsed_ns.to_string(),
            cell(record.exit_code),
            record.dropped_events.to_string(),
            cell(opcode.opcode),
            name,
            opcode.calls.to_string(),
            cell(opcode.calls_per_s),
            opcode.lanes.to_string(),
            opcode.bytes_in.to_string(),
            opcode.bytes_out.to_string(),
            opcode.errors.to_string(),
            opcode.server_ns.to_string(),
            cell(opcode.p50_ns),
            cell(opcode.p99_ns),
            cell(opcode.max_ns),
            cell(opcode.wait_p99_ns),
        ];
        out.write_all((cells.join(",") + "\n").as_bytes())?;
    }
    Ok(())
}

/// A cell, in quotes if something in it means something in CSV.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
