//! One thing against another, in turns: so that what drifts drifts for both.

use bench_calls::{Mode, Plan};

use super::{Bench, Workload, grid, median, plan, row};
use crate::row::{Ratio, Unit};
use crate::session::{By, Session, Setup, Trouble};

/// Pairs of something on and off.
const PAIRS: u32 = 11;

pub(super) fn counters(session: &mut Session, bench: &mut Bench) -> Result<(), Trouble> {
    let size = (bench.sizes.crowd, session.width());
    on_and_off(session, bench, Workload::Counters, size, |on| (on, false))
}

pub(super) fn statistics(session: &mut Session, bench: &mut Bench) -> Result<(), Trouble> {
    let mut sizes = vec![1, bench.sizes.crowd, bench.sizes.many];
    if bench.options.quick {
        sizes.truncate(2);
    }
    for warps in sizes {
        let size = (warps, session.width());
        on_and_off(session, bench, Workload::Statistics, size, |on| (true, on))?;
    }
    Ok(())
}

/// Calls with something on against calls with it off: `choose` says whether there are counters and
/// statistics.
fn on_and_off(
    session: &mut Session,
    bench: &mut Bench,
    workload: Workload,
    size: (u32, u32),
    choose: impl Fn(bool) -> (bool, bool),
) -> Result<(), Trouble> {
    let grid = grid(bench, session, size.0);
    let mut plan = plan(session, Mode::Increment, size.1);
    // Each change of the server takes new memory: as many ports as a loader gives such a grid, and no
    // more.
    let setup = |on| Setup {
        ports: Some(size.0 * 8),
        counters: choose(on).0,
        statistics: choose(on).1,
        by: By::Many,
    };
    let served = session.serve(setup(true))?;
    let (calls, _) = bench.repeat(16, |calls| {
        plan.calls = calls;
        Ok(session.run(grid, &plan)?.as_secs_f64())
    })?;
    plan.calls = calls;
    let pairs = if bench.options.quick { 2 } else { PAIRS };
    let mut ratios = Vec::new();
    for pair in 0..pairs {
        let mut time = |on| -> Result<f64, Trouble> {
            session.serve(setup(on))?;
            // Wakes the server's threads, and warms memory that is new to all.
            let ahead = Plan {
                calls: calls / 2,
                ..plan
            };
            session.run(grid, &ahead)?;
            Ok(session.run(grid, &plan)?.as_secs_f64())
        };
        // Whoever comes second finds the machine as the first has left it: each in turn.
        let (on, off) = if pair % 2 == 0 {
            let on = time(true)?;
            (on, time(false)?)
        } else {
            let off = time(false)?;
            (time(true)?, off)
        };
        ratios.push(on / off);
    }
    let mut row = row(workload, served, size, 8);
    row.calls = calls;
    row.unit = Unit::Percent;
    row.values = ratios.iter().map(|ratio| ratio * 100.0).collect();
    row.ratio = Some(Ratio {
        value: median(&ratios),
        to: "off",
    });
    bench.output.row(&row)?;
    Ok(())
}

/// The server as loaders set it up against one thread that looks and answers, for ever: what such a
/// server's calls take, over what ours take.
pub(super) fn busy(session: &mut Session, bench: &mut Bench) -> Result<(), Trouble> {
    let width = session.width();
    let mut sizes = vec![(1, 1), (1, width), (bench.sizes.crowd, width)];
    sizes.dedup();
    for size in sizes {
        let grid = grid(bench, session, size.0);
        let mut plan = plan(session, Mode::Increment, size.1);
        let setup = |busy| Setup {
            ports: Some(size.0 * 8),
            counters: true,
            statistics: false,
            by: match (busy, size.0) {
                (true, _) => By::Busy,
                (false, 1) => By::One,
                (false, _) => By::Many,
            },
        };
        let served = session.serve(setup(false))?;
        let (calls, _) = bench.repeat(16, |calls| {
            plan.calls = calls;
            Ok(session.run(grid, &plan)?.as_secs_f64())
        })?;
        plan.calls = calls;
        let (mut own, mut ratios) = (Vec::new(), Vec::new());
        for pair in 0..bench.repetitions() {
            let mut time = |busy| -> Result<f64, Trouble> {
                session.serve(setup(busy))?;
                let ahead = Plan {
                    calls: calls / 2,
                    ..plan
                };
                session.run(grid, &ahead)?;
                Ok(session.run(grid, &plan)?.as_secs_f64())
            };
            let (ours, theirs) = if pair % 2 == 0 {
                let ours = time(false)?;
                (ours, time(true)?)
            } else {
                let theirs = time(true)?;
                (time(false)?, theirs)
            };
            own.push(ours * 1e6 / calls as f64);
            ratios.push(theirs / ours);
        }
        let mut row = row(Workload::Busy, served, size, 8);
        row.calls = calls;
        row.values = own;
        row.ratio = Some(Ratio {
            value: median(&ratios),
            to: "busy",
        });
        bench.output.row(&row)?;
    }
    Ok(())
}
