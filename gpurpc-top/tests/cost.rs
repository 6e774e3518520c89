//! What watching costs the machine. Not part of a usual test run, for it takes two minutes and says
//! something in release only:
//! `cargo test --release -p gpurpc-top --test cost -- --ignored --nocapture`.

#[path = "common/mod.rs"]
mod common;
#[path = "common/pty.rs"]
#[allow(dead_code, unreachable_pub, reason = "other tests need the rest")]
mod pty;

use std::time::{Duration, Instant};

use common::snapshot;
use pty::Pty;
use rpc_stats::Writer;
use rustix::process::Pid;

const PORTS: usize = 4096;
const LENGTH: Duration = Duration::from_secs(20);
/// How often a loader publishes.
const PUBLISH: Duration = Duration::from_millis(50);

/// The processor's time of a process.
fn used(pid: Pid) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap();
    let fields: Vec<_> = stat
        .rsplit(')')
        .next()
        .unwrap()
        .split_whitespace()
        .collect();
    let ticks: u64 = [11, 12]
        .map(|n| fields[n].parse::<u64>().unwrap())
        .iter()
        .sum();
    Duration::from_millis(ticks * 10)
}

/// The share of a core that watching takes, in percent.
fn share(size: (u16, u16), changing: bool) -> f64 {
    let mut first = snapshot(PORTS, 0);
    first.run.pid = std::process::id();
    let mut writer = Writer::create(&first, false).unwrap();
    let pid = std::process::id().to_string();
    let mut pty = Pty::run(&["attach", &pid], size, |_| ());
    pty.shows("test_increment");
    let started = Instant::now();
    let before = used(pty.pid());
    let mut tick = 0;
    while started.elapsed() < LENGTH {
        tick += 1;
        let mut next = if changing {
            snapshot(PORTS, tick)
        } else {
            first.clone()
        };
        next.run = first.run.clone();
        // No port becomes stuck by and by.
        for port in &mut next.ports {
            port.since_ns = port.since_ns.max(first.time_ns);
            if changing {
                port.calls += tick;
            } else {
                port.state = rpc_stats::PortState::Idle;
            }
        }
        next.time_ns = first.time_ns + started.elapsed().as_nanos() as u64;
        writer.publish(&next).unwrap();
        std::thread::sleep((PUBLISH * tick as u32).saturating_sub(started.elapsed()));
    }
    let used = used(pty.pid()).saturating_sub(before);
    pty.type_in("q");
    assert_eq!(pty.end().code(), Some(0));
    used.as_secs_f64() / started.elapsed().as_secs_f64() * 100.0
}

#[test]
#[ignore = "takes two minutes, and means something in release only"]
fn watching_costs_little() {
    for size in [(80, 24), (200, 60)] {
        for (changing, most) in [(true, 3.0), (false, 1.0)] {
            let share = share(size, changing);
            println!("{size:?}, {PORTS} ports, changing: {changing}: {share:.2} % of a core");
            assert!(share < most, "{share:.2} % of a core, more than {most}");
        }
    }
}
