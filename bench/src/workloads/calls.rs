//! Small calls.

use std::time::{Duration, Instant};

use bench_calls::Mode;
use rpc_types::{LayoutKind, Opcode};

use super::{Bench, Workload, grid, median, plan, row};
use crate::cli::Layout;
use crate::row::{Served, Unit};
use crate::session::{By, Session, Setup, Trouble};

/// Calls of the first try.
const FIRST: u64 = 16;

/// Measures `mode` with so many warps and lanes: the time of a call.
fn per_call(
    session: &mut Session,
    bench: &mut Bench,
    (workload, mode): (Workload, Mode),
    (warps, lanes): (u32, u32),
    bytes: u64,
) -> Result<(), Trouble> {
    let served = if warps == 1 {
        session.serve_alone()?
    } else {
        session.serve_default()?
    };
    let grid = grid(bench, session, warps);
    let mut plan = plan(session, mode, lanes);
    let (calls, times) = bench.repeat(FIRST, |calls| {
        plan.calls = calls;
        Ok(session.run(grid, &plan)?.as_secs_f64())
    })?;
    let mut row = row(workload, served, (warps, lanes), bytes);
    row.calls = calls;
    row.values = times.iter().map(|time| time * 1e6 / calls as f64).collect();
    let call = median(&row.values) * 1e-6;
    row.ratio = bench.floors(call);
    row.rate = Some(f64::from(warps) / call);
    bench.output.row(&row)?;
    Ok(())
}

/// One lane and a whole warp, where that is not the same.
fn lanes(session: &Session) -> Vec<u32> {
    let mut lanes = vec![1, session.width()];
    lanes.dedup();
    lanes
}

pub(super) fn increment(session: &mut Session, bench: &mut Bench) -> Result<(), Trouble> {
    let what = (Workload::Increment, Mode::Increment);
    for warps in [1, bench.sizes.crowd, bench.sizes.many] {
        for lanes in lanes(session) {
            per_call(session, bench, what, (warps, lanes), 8)?;
        }
    }
    Ok(())
}

pub(super) fn kept(session: &mut Session, bench: &mut Bench) -> Result<(), Trouble> {
    for lanes in lanes(session) {
        per_call(session, bench, (Workload::Kept, Mode::Kept), (1, lanes), 8)?;
    }
    Ok(())
}

pub(super) fn echo64(session: &mut Session, bench: &mut Bench) -> Result<(), Trouble> {
    let what = (Workload::Echo64, Mode::Packets);
    let bytes = match session.layout() {
        Layout::Line => LayoutKind::Line.payload(),
        Layout::Compact => LayoutKind::Compact.payload(),
        Layout::Llvm => LayoutKind::Llvm.payload(),
    };
    for warps in [1, bench.sizes.crowd] {
        per_call(session, bench, what, (warps, session.width()), bytes as u64)?;
    }
    Ok(())
}

/// Ports that diverging warps share.
const FEW_PORTS: u32 = 32;

pub(super) fn diverge(session: &mut Session, bench: &mut Bench) -> Result<(), Trouble> {
    let size = (bench.sizes.many, session.width());
    let served = session.serve(Setup {
        ports: Some(FEW_PORTS),
        counters: true,
        statistics: false,
        by: By::Many,
    })?;
    let grid = grid(bench, session, size.0);
    let mut plan = plan(session, Mode::Diverge, size.1);
    let opened = |session: &Session| {
        let counters = session.counters();
        counters
            .of(Opcode::TEST_INCREMENT)
            .map_or(0, |own| own.calls)
    };
    let mut rates = Vec::new();
    let (calls, _) = bench.repeat(FIRST, |calls| {
        plan.calls = calls;
        let before = opened(session);
        let time = session.run(grid, &plan)?.as_secs_f64();
        rates.push((opened(session) - before) as f64 / time);
        Ok(time)
    })?;
    // The first ones were to find how many calls there should be.
    let rates = rates.split_off(rates.len() - bench.repetitions() as usize);
    rate_row(bench, Workload::Diverge, served, size, (8, calls, rates))
}

/// How long calls that nobody waits for may take to be served once the kernel has ended.
const SERVED: Duration = Duration::from_secs(5);

pub(super) fn noop(session: &mut Session, bench: &mut Bench) -> Result<(), Trouble> {
    let size = (bench.sizes.crowd, session.width());
    let served = session.serve_default()?;
    let grid = grid(bench, session, size.0);
    let mut plan = plan(session, Mode::Noop, size.1);
    let lanes = |session: &Session| {
        let counters = session.counters();
        counters.of(Opcode::NOOP).map_or(0, |own| own.lanes)
    };
    let (calls, times) = bench.repeat(FIRST, |calls| {
        plan.calls = calls;
        let due = lanes(session) + u64::from(size.0) * u64::from(size.1) * calls;
        let time = session.run(grid, &plan)?;
        // The last ones may still lie in their ports.
        let ended = Instant::now();
        while lanes(session) < due {
            if ended.elapsed() > SERVED {
                let missing = due - lanes(session);
                let sentence = format!("{missing} calls that nobody waited for were not served");
                return Err(Trouble::Wrong(sentence));
            }
            std::hint::spin_loop();
        }
        if lanes(session) > due {
            return Err(Trouble::Wrong(
                "more calls were served than made".to_owned(),
            ));
        }
        Ok((time + ended.elapsed()).as_secs_f64())
    })?;
    let all = calls as f64 * f64::from(size.0);
    let rates = times.iter().map(|time| all / time).collect();
    rate_row(bench, Workload::Noop, served, size, (0, calls, rates))
}

fn rate_row(
    bench: &mut Bench,
    workload: Workload,
    served: Served,
    size: (u32, u32),
    (bytes, calls, rates): (u64, u64, Vec<f64>),
) -> Result<(), Trouble> {
    let mut row = row(workload, served, size, bytes);
    row.calls = calls;
    row.unit = Unit::PerSecond;
    row.ratio = bench.per_floor(median(&rates));
    row.values = rates;
    bench.output.row(&row)?;
    Ok(())
}
