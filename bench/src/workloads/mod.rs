//! What is measured.

mod beside;
mod bulk;
mod calls;
mod idle;
mod pairs;
mod references;
mod start;

use std::time::Duration;

use bench_calls::{Mode, Plan};
use clap::ValueEnum;
use loader_core::device::Grid;

use crate::cli::{Cli, Kind};
use crate::output::Output;
use crate::row::{Ratio, Row, Served, Statistics, Unit};
use crate::session::{Session, Trouble};

/// Something to measure. Names are stable: results of different days are compared by them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Workload {
    /// A bare flag there and back.
    Floor,
    /// The copy engine, to and from page-locked memory.
    Copy,
    /// From a process's start to the first line of `hello`, nothing cached.
    Start,
    /// A call with 8 bytes each way.
    Increment,
    /// The same over a port that a warp keeps.
    Kept,
    /// A call with a whole packet each way.
    Echo64,
    /// Increments by lanes that go their own ways, on 32 ports.
    Diverge,
    /// Calls that nobody answers.
    Noop,
    /// 1 MiB from the device's memory, looked at and forgotten.
    Send1m,
    /// 64 MiB likewise.
    Send64m,
    /// 8 KiB from a thread's stack likewise, for 1 MiB.
    Stack8k,
    /// 4 KiB there and back.
    Echo4k,
    /// The host's load while a kernel makes no call.
    Idle,
    /// The first call after a second without one.
    FirstCall,
    /// Counters on against off.
    Counters,
    /// Published statistics on against off.
    Statistics,
    /// Increments beside a stream against increments alone.
    StreamBeside,
    /// Increments beside a read that waits against increments alone.
    ReadBeside,
    /// Increments with one thread that looks and answers against the server as it is.
    Busy,
}

impl Workload {
    /// All, in the order in which they are measured: what others are compared to comes first, what
    /// shares a server lies together.
    pub(crate) const ALL: [Self; 19] = [
        Self::Floor,
        Self::Copy,
        Self::Start,
        Self::Increment,
        Self::Kept,
        Self::Echo64,
        Self::Noop,
        Self::Send1m,
        Self::Send64m,
        Self::Stack8k,
        Self::Echo4k,
        Self::StreamBeside,
        Self::ReadBeside,
        Self::FirstCall,
        Self::Idle,
        Self::Diverge,
        Self::Counters,
        Self::Statistics,
        Self::Busy,
    ];

    /// The name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Floor => "floor",
            Self::Copy => "copy",
            Self::Start => "start",
            Self::Increment => "increment",
            Self::Kept => "kept",
            Self::Echo64 => "echo64",
            Self::Diverge => "diverge",
            Self::Noop => "noop",
            Self::Send1m => "send1m",
            Self::Send64m => "send64m",
            Self::Stack8k => "stack8k",
            Self::Echo4k => "echo4k",
            Self::Idle => "idle",
            Self::FirstCall => "first-call",
            Self::Counters => "counters",
            Self::Statistics => "statistics",
            Self::StreamBeside => "stream-beside",
            Self::ReadBeside => "read-beside",
            Self::Busy => "busy",
        }
    }

    /// What its ratio needs.
    const fn reference(self) -> Option<Self> {
        match self {
            Self::Increment
            | Self::Kept
            | Self::Echo64
            | Self::Diverge
            | Self::Noop
            | Self::FirstCall => Some(Self::Floor),
            Self::Send1m | Self::Send64m | Self::Stack8k | Self::Echo4k => Some(Self::Copy),
            _ => None,
        }
    }

    /// Whether it is the same for all layouts, or lasts too long to be measured for each.
    const fn once(self) -> bool {
        matches!(
            self,
            Self::Floor | Self::Copy | Self::Start | Self::Idle | Self::FirstCall
        )
    }
}

/// How much is measured on a device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// A warp for each of an H200's multiprocessors; on CPUs a few for each core.
    pub(crate) crowd: u32,
    /// Eight times as many.
    pub(crate) many: u32,
    /// The most blocks of a grid.
    pub(crate) blocks: u32,
}

/// What workloads have in common.
pub(crate) struct Bench {
    pub(crate) options: Cli,
    pub(crate) output: Output,
    pub(crate) sizes: Sizes,
    /// Seconds of a bare flag there and back.
    floor: Option<f64>,
    /// Sizes, and bytes a second from the device.
    copy: Vec<(u64, f64)>,
}

/// Most calls of a warp: that a clock or a counter that does not move ends somewhere.
const MOST_CALLS: u64 = 1 << 32;

impl Bench {
    pub(crate) fn new(options: &Cli, output: Output) -> Self {
        let sizes = match options.device_kind {
            Kind::Cpu => Sizes {
                crowd: 16,
                many: 128,
                blocks: 16,
            },
            Kind::Nvidia => Sizes {
                crowd: 132,
                many: 1056,
                blocks: 132,
            },
        };
        Self {
            options: options.clone(),
            output,
            sizes,
            floor: None,
            copy: Vec::new(),
        }
    }

    /// Whether `workload` is to be run, with the first image or a further one.
    pub(crate) fn wants(&self, workload: Workload, first: bool) -> bool {
        if workload.once() && !first {
            return false;
        }
        let only = &self.options.only;
        let needed = |by: &Workload| by.reference() == Some(workload);
        only.is_empty() || only.contains(&workload) || only.iter().any(needed)
    }

    /// How often everything is measured.
    pub(crate) fn repetitions(&self) -> u32 {
        let own = if self.options.quick { 2 } else { 5 };
        self.options.repetitions.unwrap_or(own)
    }

    /// How long a repetition is to take: on a GPU, long enough that a launch is less than a
    /// hundredth of it.
    pub(crate) fn target(&self) -> Duration {
        Duration::from_millis(match (self.options.quick, self.options.device_kind) {
            (true, _) => 2,
            (false, Kind::Cpu) => 50,
            (false, Kind::Nvidia) => 100,
        })
    }

    /// Finds how many calls take the time that a repetition is to take, by which everything is
    /// warm, then measures: calls and seconds of each repetition.
    pub(crate) fn repeat(
        &self,
        first: u64,
        mut run: impl FnMut(u64) -> Result<f64, Trouble>,
    ) -> Result<(u64, Vec<f64>), Trouble> {
        let target = self.target().as_secs_f64();
        let mut calls = first.max(1);
        loop {
            let time = run(calls)?;
            if time >= target / 2.0 || calls >= MOST_CALLS {
                break;
            }
            let factor = (target / time.max(1e-9)).clamp(2.0, 32.0);
            calls = (calls as f64 * factor).ceil() as u64;
        }
        let mut times = Vec::new();
        for _ in 0..self.repetitions() {
            times.push(run(calls)?);
        }
        Ok((calls, times))
    }

    /// A time's ratio to the floor.
    pub(crate) fn floors(&self, seconds: f64) -> Option<Ratio> {
        let to = "floor";
        self.floor.map(|floor| Ratio {
            value: seconds / floor,
            to,
        })
    }

    /// A rate's ratio: calls in the time of the floor.
    pub(crate) fn per_floor(&self, rate: f64) -> Option<Ratio> {
        let to = "a floor";
        self.floor.map(|floor| Ratio {
            value: rate * floor,
            to,
        })
    }

    /// A byte rate's ratio to the copy engine's from the device, at the measured size next to
    /// `bytes`.
    pub(crate) fn copies(&self, rate: f64, bytes: u64) -> Option<Ratio> {
        let nearest = self
            .copy
            .iter()
            .min_by_key(|(size, _)| size.abs_diff(bytes));
        nearest.map(|(_, copy)| Ratio {
            value: rate / copy,
            to: "copy",
        })
    }
}

/// The kernel's plan for some lanes of each warp.
pub(crate) fn plan(session: &Session, mode: Mode, lanes: u32) -> Plan {
    Plan {
        mode,
        calls: 0,
        lanes: lanes.into(),
        width: session.width().into(),
        bytes: 0,
        address: 0,
    }
}

/// So many whole warps, spread over as many blocks as may be.
pub(crate) fn grid(bench: &Bench, session: &Session, warps: u32) -> Grid {
    let blocks = warps.min(bench.sizes.blocks);
    Grid {
        blocks: [blocks, 1, 1],
        threads: [warps / blocks * session.width(), 1, 1],
    }
}

/// The median of some values.
pub(crate) fn median(values: &[f64]) -> f64 {
    Statistics::of(values).median
}

/// A result with nothing in it yet but what it is of.
pub(crate) fn row(workload: Workload, served: Served, size: (u32, u32), bytes: u64) -> Row {
    Row {
        workload: workload.name(),
        served,
        warps: size.0,
        lanes: size.1,
        bytes,
        calls: 0,
        unit: Unit::Microseconds,
        values: Vec::new(),
        ratio: None,
        rate: None,
    }
}

/// Measures `workload`.
pub(crate) fn run(
    workload: Workload,
    session: &mut Session,
    bench: &mut Bench,
) -> Result<(), Trouble> {
    match workload {
        Workload::Floor => references::floor(session, bench),
        Workload::Copy => references::copy(session, bench),
        Workload::Start => start::start(bench),
        Workload::Increment => calls::increment(session, bench),
        Workload::Kept => calls::kept(session, bench),
        Workload::Echo64 => calls::echo64(session, bench),
        Workload::Diverge => calls::diverge(session, bench),
        Workload::Noop => calls::noop(session, bench),
        Workload::Send1m => bulk::send(session, bench, workload, 1 << 20),
        Workload::Send64m => bulk::send(session, bench, workload, 64 << 20),
        Workload::Stack8k => bulk::stack(session, bench),
        Workload::Echo4k => bulk::echo(session, bench),
        Workload::Idle => idle::idle(session, bench),
        Workload::FirstCall => idle::first_call(session, bench),
        Workload::Counters => pairs::counters(session, bench),
        Workload::Statistics => pairs::statistics(session, bench),
        Workload::StreamBeside => beside::stream(session, bench),
        Workload::ReadBeside => beside::read(session, bench),
        Workload::Busy => pairs::busy(session, bench),
    }
}
