//! What is known of a run at one time.

use crate::Histogram;

/// A run, as its loader last published it. Times are nanoseconds of one clock that starts with the
/// service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Which run it is: the same in all its snapshots.
    pub run: RunInfo,
    /// 1 for the first snapshot of a run, one more for each later one.
    pub sequence: u64,
    /// When it was taken.
    pub time_ns: u64,
    /// How the run ended, in its last snapshot.
    pub end: Option<RunEnd>,
    /// One for each handler in the order they were registered, then one for all opcodes without.
    pub opcodes: Vec<OpcodeStats>,
    /// One for each port.
    pub ports: Vec<PortStats>,
    /// One for each poller thread.
    pub pollers: Vec<PollerStats>,
    /// The last calls, oldest first; a sample of them under load.
    pub events: Vec<Event>,
    /// Calls that passed without an event because the recorder was behind; the counters have them.
    pub dropped_events: u64,
}

/// What is run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunInfo {
    /// The loader's process.
    pub pid: u32,
    /// What the loader calls itself.
    pub loader: String,
    /// The program's arguments, the image first.
    pub command: Vec<String>,
    /// The device's name.
    pub device: String,
    /// The name of the ports' layout.
    pub layout: String,
    /// Lanes of a warp.
    pub lanes: u32,
    /// Blocks of the grid in x, y and z.
    pub blocks: [u32; 3],
    /// Threads of a block in x, y and z.
    pub threads: [u32; 3],
    /// When the service was started: milliseconds since 1970.
    pub started_unix_ms: u64,
    /// The rank of this loader among several, under a launcher that gives one.
    pub rank: Option<u32>,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunEnd {
    /// The loader's exit code.
    pub code: u8,
    /// Exchanges that were given up unfinished.
    pub cancelled: u64,
}

/// What was asked of one opcode's handler.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpcodeStats {
    /// The opcode; `None` for all those together that have no handler.
    pub opcode: Option<u32>,
    /// Its name.
    pub name: String,
    /// Port openings.
    pub calls: u64,
    /// Lanes of all calls.
    pub lanes: u64,
    /// Payload of the active lanes that the host received.
    pub bytes_in: u64,
    /// Payload of the active lanes that the host sent.
    pub bytes_out: u64,
    /// Calls that ended with a status other than success, or were given up.
    pub errors: u64,
    /// Time from request seen to reply given, all calls together. An estimate where calls are
    /// sampled.
    pub server_ns: u64,
    /// From request seen to reply given.
    pub latency: Histogram,
    /// From the poller's look before to the request seen: at most so long a request had waited.
    pub wait: Histogram,
}

/// What the host knows of a port's exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PortState {
    /// None is open: the port is free, or being filled by the device.
    #[default]
    Idle,
    /// A request was posted and nobody has taken it.
    Waiting,
    /// Its handler works, or waits for something on the host.
    InHandler,
    /// The host waits for the device's next step.
    MidExchange,
}

/// A port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortStats {
    /// How far its exchange is.
    pub state: PortState,
    /// Since when that has been seen; the time of the snapshot that first showed it.
    pub since_ns: u64,
    /// The opcode of the open exchange, else of the last one; `None` before the first.
    pub opcode: Option<u32>,
    /// The lanes of the open exchange, else of the last one, a bit each.
    pub mask: u64,
    /// Openings.
    pub calls: u64,
    /// Payload that the host received by it.
    pub bytes_in: u64,
    /// Payload that the host sent by it.
    pub bytes_out: u64,
    /// From request seen to reply given, of the last call that was measured; 0 before the first.
    pub latency_ns: u64,
}

impl PortStats {
    /// Whether its exchange has been open for longer than `limit_ns` at `now_ns`, in one state.
    pub fn is_stuck(&self, now_ns: u64, limit_ns: u64) -> bool {
        self.state != PortState::Idle && now_ns.saturating_sub(self.since_ns) > limit_ns
    }
}

/// What a poller thread does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PollerState {
    /// Looks at its ports.
    #[default]
    Looking,
    /// Is in a handler.
    InHandler,
    /// Sleeps until another poller finds something for it.
    Parked,
}

/// A poller thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PollerStats {
    /// What it does.
    pub state: PollerState,
    /// How often it has looked over its ports.
    pub scans: u64,
    /// Calls it has served.
    pub calls: u64,
    /// Its longest time between two readings of its clock since the snapshot before, in ns: some looks
    /// at its ports.
    pub longest_gap_ns: u64,
    /// Calls without an event because its ring was full.
    pub dropped_events: u64,
}

/// A call that has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// When it ended.
    pub time_ns: u64,
    /// The poller that served it.
    pub poller: u32,
    /// The port it came by.
    pub port: u32,
    /// What it asked for.
    pub opcode: u32,
    /// The lanes that took part, a bit each.
    pub mask: u64,
    /// From request seen to reply given.
    pub latency_ns: u64,
    /// From the poller's look before to the request seen.
    pub wait_ns: u64,
    /// Payload that the host received.
    pub bytes_in: u64,
    /// Payload that the host sent.
    pub bytes_out: u64,
    /// What the client was told: 0 is success.
    pub status: u32,
    /// How many calls it stands for: more than 1 under load.
    pub sampled: u32,
}
