//! Small calls beside something that takes long.

use std::thread;
use std::time::Duration;

use bench_calls::{Mode, Plan};

use super::bulk::fill;
use super::{Bench, Workload, grid, median, plan, row};
use crate::row::{Ratio, Unit};
use crate::session::{Session, Trouble};

/// Warps, where the device has so many: one does what takes long, the others call.
const WARPS: u32 = 32;
/// Bytes that the stream echoes at a time.
const STREAM: u64 = 4 << 20;

/// How long calls are counted.
fn time(bench: &Bench) -> Duration {
    Duration::from_millis(if bench.options.quick { 5 } else { 500 })
}

pub(super) fn stream(session: &mut Session, bench: &mut Bench) -> Result<(), Trouble> {
    let bytes = if bench.options.quick {
        STREAM / 64
    } else {
        STREAM
    };
    let memory = session.allocate(2 * bytes)?;
    let alone = Plan {
        address: memory.address,
        ..plan(session, Mode::Beside, session.width())
    };
    let beside = Plan { bytes, ..alone };
    // The parts are filled apart: a kernel's arguments have one place.
    let mut ready = |session: &mut Session| fill(session, memory.address, 2 * bytes);
    report(
        (session, bench),
        Workload::StreamBeside,
        (alone, beside),
        &mut ready,
    )
}

pub(super) fn read(session: &mut Session, bench: &mut Bench) -> Result<(), Trouble> {
    let alone = plan(session, Mode::Beside, session.width());
    let beside = Plan {
        mode: Mode::Waiting,
        ..alone
    };
    let time = time(bench);
    let mut ready = |session: &mut Session| {
        let input = session.serve_input()?;
        // The read waits for as long as calls are counted.
        thread::spawn(move || {
            thread::sleep(time);
            drop(input);
        });
        Ok(())
    };
    report(
        (session, bench),
        Workload::ReadBeside,
        (alone, beside),
        &mut ready,
    )
}

/// Calls in a second with a plan against those with another; before each run of the other one, `ready` is
/// called.
fn report(
    (session, bench): (&mut Session, &mut Bench),
    workload: Workload,
    (alone, beside): (Plan, Plan),
    ready: &mut dyn FnMut(&mut Session) -> Result<(), Trouble>,
) -> Result<(), Trouble> {
    let served = session.serve_default()?;
    let size = (bench.sizes.crowd.min(WARPS), session.width());
    let grid = grid(bench, session, size.0);
    let time = time(bench);
    let mut rate = |plan: &Plan, is_beside: bool| -> Result<f64, Trouble> {
        if is_beside {
            ready(session)?;
        }
        let plan = Plan {
            calls: time.as_nanos() as u64,
            ..*plan
        };
        session.samples.take();
        session.run_for(grid, &plan, time)?;
        let counts = session.samples.take();
        if counts.len() as u32 != size.0 - 1 {
            let (told, warps) = (counts.len(), size.0 - 1);
            let sentence = format!("{told} of {warps} warps have told how often they called");
            return Err(Trouble::Wrong(sentence));
        }
        Ok(counts.iter().sum::<u64>() as f64 / time.as_secs_f64())
    };
    // Warm, and pairs.
    rate(&alone, false)?;
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for _ in 0..bench.repetitions() {
        without.push(rate(&alone, false)?);
        with.push(rate(&beside, true)?);
    }
    let ratio = median(&with) / median(&without);
    let mut row = row(workload, served, size, beside.bytes);
    row.unit = Unit::PerSecond;
    row.values = with;
    row.ratio = Some(Ratio {
        value: ratio,
        to: "alone",
    });
    bench.output.row(&row)?;
    Ok(())
}
