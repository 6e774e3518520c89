//! What the host does while the device asks nothing of it.

use std::time::Duration;

use bench_calls::{Mode, Plan};
use rustix::time::{ClockId, clock_gettime};

use super::{Bench, Workload, grid, median, plan, row};
use crate::row::{Ratio, Unit};
use crate::session::{Session, Trouble};

/// The processor time of this process, all threads of it, in seconds.
fn processor_time() -> f64 {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 * 1e-9
}

/// How long the kernel is silent.
const SILENCE: Duration = Duration::from_secs(10);

pub(super) fn idle(session: &mut Session, bench: &mut Bench) -> Result<(), Trouble> {
    let served = session.serve_default()?;
    let silence = if bench.options.quick {
        SILENCE / 50
    } else {
        SILENCE
    };
    let grid = grid(bench, session, 1);
    let plan = Plan {
        calls: silence.as_nanos() as u64,
        ..plan(session, Mode::Idle, 1)
    };
    let begun = processor_time();
    let time = session.run_for(grid, &plan, silence)?;
    let load = (processor_time() - begun) / time.as_secs_f64();
    if time < silence {
        let seconds = time.as_secs_f64();
        let sentence = format!("the kernel that was to be silent ended after {seconds} s");
        return Err(Trouble::Wrong(sentence));
    }
    let mut row = row(Workload::Idle, served, (1, 1), 0);
    row.unit = Unit::Percent;
    row.values = vec![load * 100.0];
    row.ratio = Some(Ratio {
        value: load,
        to: "a core",
    });
    bench.output.row(&row)?;
    Ok(())
}

/// How long there is no call before the one that is timed, and how many are.
const PAUSE: Duration = Duration::from_secs(1);
const CALLS: u64 = 21;

pub(super) fn first_call(session: &mut Session, bench: &mut Bench) -> Result<(), Trouble> {
    let served = session.serve_default()?;
    let (pause, calls) = if bench.options.quick {
        (PAUSE / 50, 3)
    } else {
        (PAUSE, CALLS)
    };
    let grid = grid(bench, session, 1);
    let plan = Plan {
        calls,
        bytes: pause.as_nanos() as u64,
        ..plan(session, Mode::First, 1)
    };
    session.samples.take();
    session.run_for(grid, &plan, pause * calls as u32)?;
    let times = session.samples.take();
    if times.len() as u64 != calls {
        let count = times.len();
        let sentence = format!("the device told {count} times of {calls} calls");
        return Err(Trouble::Wrong(sentence));
    }
    let mut row = row(Workload::FirstCall, served, (1, 1), 8);
    row.calls = 1;
    row.values = times.iter().map(|&time| time as f64 * 1e-3).collect();
    row.ratio = bench.floors(median(&row.values) * 1e-6);
    bench.output.row(&row)?;
    Ok(())
}
