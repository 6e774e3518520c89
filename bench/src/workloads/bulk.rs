//! Messages of many bytes.

use bench_calls::{Mode, Plan, STACK_BLOCK};
use loader_core::device::Grid;

use super::{Bench, Workload, grid, plan, row};
use crate::output::print;
use crate::row::{Served, Unit};
use crate::session::{Session, Trouble};

/// Seconds that a block may take before a row is left out: six of them are sent at least.
const PATIENCE: f64 = 4.0;
/// Bytes of a message by which that is guessed.
const PART: u64 = 64 << 10;

/// Fills `bytes` bytes of device memory with what messages consist of.
pub(super) fn fill(session: &mut Session, address: u64, bytes: u64) -> Result<(), Trouble> {
    let grid = Grid {
        blocks: [16, 1, 1],
        threads: [session.width(), 1, 1],
    };
    let plan = Plan {
        bytes,
        address,
        ..plan(session, Mode::Fill, session.width())
    };
    session.run(grid, &plan).map(drop)
}

/// Bytes, and how often: seconds become bytes a second.
struct Sent {
    served: Served,
    size: (u32, u32),
    bytes: u64,
    calls: u64,
    /// All bytes that went one way in a repetition.
    total: f64,
    times: Vec<f64>,
}

fn report(bench: &mut Bench, workload: Workload, sent: &Sent) -> Result<(), Trouble> {
    let mut row = row(workload, sent.served, sent.size, sent.bytes);
    row.calls = sent.calls;
    row.unit = Unit::BytesPerSecond;
    row.values = sent.times.iter().map(|time| sent.total / time).collect();
    let rate = super::median(&row.values);
    row.ratio = bench.copies(rate, sent.bytes);
    bench.output.row(&row)?;
    Ok(())
}

/// Says why a result is missing that is no failure.
fn leave_out(workload: Workload, session: &Session, reason: &str) {
    let (name, layout) = (workload.name(), session.layout().name());
    print(&format!("{name:<15} {layout:<8} left out: {reason}\n"));
}

pub(super) fn send(
    session: &mut Session,
    bench: &mut Bench,
    workload: Workload,
    mut bytes: u64,
) -> Result<(), Trouble> {
    if bench.options.quick {
        bytes /= 128;
    }
    let served = session.serve_default()?;
    let block = session.allocate(bytes)?;
    fill(session, block.address, bytes)?;
    let grid = grid(bench, session, 1);
    let mut plan = Plan {
        address: block.address,
        ..plan(session, Mode::Send, 1)
    };
    // A part first: where messages go in packets, the whole may take minutes.
    let part = if bench.options.quick { 4 << 10 } else { PART };
    (plan.bytes, plan.calls) = (part, 1);
    let seconds = session.run(grid, &plan)?.as_secs_f64() * (bytes / part) as f64;
    if seconds > PATIENCE {
        let reason = format!("a block would take about {seconds:.1} s");
        leave_out(workload, session, &reason);
        return Ok(());
    }
    plan.bytes = bytes;
    let (calls, times) = bench.repeat(1, |calls| {
        plan.calls = calls;
        Ok(session.run(grid, &plan)?.as_secs_f64())
    })?;
    let total = (bytes * calls) as f64;
    let size = (1, 1);
    report(
        bench,
        workload,
        &Sent {
            served,
            size,
            bytes,
            calls,
            total,
            times,
        },
    )
}

/// Blocks from the stack that make 1 MiB.
const STACK_BLOCKS: u64 = (1 << 20) / STACK_BLOCK as u64;

pub(super) fn stack(session: &mut Session, bench: &mut Bench) -> Result<(), Trouble> {
    let served = session.serve_default()?;
    let grid = grid(bench, session, 1);
    let mut plan = plan(session, Mode::Stack, 1);
    let blocks = if bench.options.quick { 4 } else { STACK_BLOCKS };
    let (calls, times) = bench.repeat(blocks, |calls| {
        plan.calls = calls;
        Ok(session.run(grid, &plan)?.as_secs_f64())
    })?;
    let bytes = STACK_BLOCK as u64;
    let total = (bytes * calls) as f64;
    let (workload, size) = (Workload::Stack8k, (1, 1));
    report(
        bench,
        workload,
        &Sent {
            served,
            size,
            bytes,
            calls,
            total,
            times,
        },
    )
}

/// Bytes that each lane echoes.
const ECHO: u64 = 4 << 10;

pub(super) fn echo(session: &mut Session, bench: &mut Bench) -> Result<(), Trouble> {
    let served = session.serve_default()?;
    let size = (bench.sizes.crowd, session.width());
    let lanes = u64::from(size.0) * u64::from(size.1);
    let memory = session.allocate(2 * lanes * ECHO)?;
    let grid = grid(bench, session, size.0);
    let mut plan = Plan {
        bytes: ECHO,
        address: memory.address,
        ..plan(session, Mode::Echo, size.1)
    };
    let (calls, times) = bench.repeat(1, |calls| {
        // So that nothing of the last repetition passes for this one's answer.
        fill(session, memory.address, 2 * lanes * ECHO)?;
        plan.calls = calls;
        Ok(session.run(grid, &plan)?.as_secs_f64())
    })?;
    let total = (lanes * ECHO * calls) as f64;
    let (workload, bytes) = (Workload::Echo4k, ECHO);
    report(
        bench,
        workload,
        &Sent {
            served,
            size,
            bytes,
            calls,
            total,
            times,
        },
    )
}
