//! What the hardware takes by itself, that everything is compared to.

use std::time::{Duration, Instant};

use bench_calls::{FLAG_DISTANCE, FLAG_STOP, Mode, Plan};
use loader_core::device::Grid;
use loader_nv::CudaDevice;
use loader_nv::measure::Direction;
use rpc_bitmap::{Memory, Raw, System};

use super::{Bench, Workload, median, plan, row};
use crate::row::{Ratio, Served, Unit};
use crate::session::{Opened, Session, Trouble};

/// Polls before this thread lets others run: on the CPU device the other side may need its core.
const SPINS: u32 = 200;
/// Polls between two looks whether the kernel still runs.
const POLLS_PER_LOOK: u32 = 1 << 20;
/// Rounds of the first try.
const FIRST: u64 = 1000;

/// A flag there and back between one thread of the device and one of the host. Nothing is ordered
/// and nothing is carried: no call can be faster.
pub(super) fn floor(session: &mut Session, bench: &mut Bench) -> Result<(), Trouble> {
    let shared = session.device.allocate_shared(2 * FLAG_DISTANCE)?;
    // SAFETY: the buffer is page-aligned, has this size, and lives as long as its device, which the
    // session keeps. The kernel reaches it as atoms only, as this thread does.
    let flags = unsafe { Raw::<System>::new(shared.host.as_ptr(), 2 * FLAG_DISTANCE) };
    let mut plan = Plan {
        address: shared.device,
        ..plan(session, Mode::Floor, 1)
    };
    let yields = matches!(session.opened, Opened::Cpu(_));
    let (calls, times) = bench.repeat(FIRST, |calls| {
        plan.calls = calls;
        flags.store32(0, 0);
        flags.store32(FLAG_DISTANCE, 0);
        let kernel = session.prepare(&plan)?;
        session.device.launch(&kernel, Grid::ONE)?;
        // The first round waits for the kernel to start.
        play(session, bench, flags, 1, yields)?;
        let begun = Instant::now();
        for round in 2..=calls as u32 {
            play(session, bench, flags, round, yields)?;
        }
        let time = begun.elapsed().as_secs_f64();
        while !session.device.finished()? {
            std::thread::sleep(Duration::from_micros(100));
        }
        session.check()?;
        Ok(time)
    })?;
    let mut row = row(Workload::Floor, Served::default(), (1, 1), 4);
    row.calls = calls;
    let rounds = (calls - 1).max(1) as f64;
    row.values = times.iter().map(|time| time * 1e6 / rounds).collect();
    row.ratio = Some(Ratio {
        value: 1.0,
        to: Workload::Floor.name(),
    });
    bench.floor = Some(median(&row.values) * 1e-6);
    bench.output.row(&row)?;
    Ok(())
}

fn play(
    session: &mut Session,
    bench: &Bench,
    flags: Raw<System>,
    round: u32,
    yields: bool,
) -> Result<(), Trouble> {
    flags.store32(0, round);
    let mut polls = 0_u32;
    let mut begun = None;
    while flags.load32(FLAG_DISTANCE) != round {
        polls += 1;
        if yields && polls > SPINS {
            std::thread::yield_now();
        } else {
            std::hint::spin_loop();
        }
        // Seldom enough to cost nothing: a kernel that died answers no more.
        if polls.is_multiple_of(POLLS_PER_LOOK) {
            let late = begun.get_or_insert_with(Instant::now).elapsed() > bench.options.timeout;
            if session.device.finished()? && flags.load32(FLAG_DISTANCE) != round {
                session.check()?;
                let sentence = format!("the kernel ended before round {round}");
                return Err(Trouble::Wrong(sentence));
            }
            if late {
                flags.store32(0, FLAG_STOP);
                return Err(session.interrupt(bench.options.timeout, false));
            }
        }
    }
    Ok(())
}

/// Sizes of the copies.
const SIZES: [u64; 2] = [1 << 20, 64 << 20];

/// The copy engine's rate, each copy waited for; on the CPU device, the processor's.
pub(super) fn copy(session: &mut Session, bench: &mut Bench) -> Result<(), Trouble> {
    for bytes in SIZES {
        for direction in [Direction::ToHost, Direction::ToDevice] {
            let (calls, times) = match &session.opened {
                Opened::Cpu(_) => copy_memory(bench, bytes)?,
                Opened::Nvidia(device) => copy_engine(bench, device, direction, bytes)?,
            };
            let workload = match direction {
                Direction::ToHost => "copy-to-host",
                Direction::ToDevice => "copy-to-device",
            };
            let mut row = row(Workload::Copy, Served::default(), (1, 1), bytes);
            row.workload = workload;
            row.calls = calls;
            row.unit = Unit::BytesPerSecond;
            let total = (bytes * calls) as f64;
            row.values = times.iter().map(|time| total / time).collect();
            row.ratio = Some(Ratio {
                value: 1.0,
                to: workload,
            });
            if direction == Direction::ToHost {
                bench.copy.push((bytes, median(&row.values)));
            }
            bench.output.row(&row)?;
        }
    }
    Ok(())
}

fn copy_engine(
    bench: &Bench,
    device: &CudaDevice,
    direction: Direction,
    bytes: u64,
) -> Result<(u64, Vec<f64>), Trouble> {
    let copies = device.copies(bytes as usize)?;
    if !copies.check()? {
        let sentence = format!("{bytes} bytes did not come back from the device as they went");
        return Err(Trouble::Wrong(sentence));
    }
    bench.repeat(1, |calls| {
        Ok(copies.time(direction, calls as u32)?.as_secs_f64())
    })
}

fn copy_memory(bench: &Bench, bytes: u64) -> Result<(u64, Vec<f64>), Trouble> {
    let from = vec![0xA5_u8; bytes as usize];
    let mut to = vec![0; bytes as usize];
    let measured = bench.repeat(1, |calls| {
        let begun = Instant::now();
        for _ in 0..calls {
            std::hint::black_box(&mut to).copy_from_slice(std::hint::black_box(&from));
        }
        Ok(begun.elapsed().as_secs_f64())
    })?;
    if to != from {
        return Err(Trouble::Wrong("a copy in memory was wrong".to_owned()));
    }
    Ok(measured)
}
