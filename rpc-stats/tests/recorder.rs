//! A service with a recorder, and what a reader gets of it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use rpc_bitmap::{Device, Heap, System};
use rpc_port::procedure::{Increment, Noop};
use rpc_port::{Client, HostWarp, Line, Procedure, Transport};
use rpc_server::{Flow, NoMemory, Options, Report, Service, Table};
use rpc_stats::{
    Liveness, Observer, PortState, Reader, Recorder, RunEnd, RunInfo, Snapshot, Source, Writer,
};
use rpc_types::{Geometry, LayoutKind, Opcode};

const LONG: Duration = Duration::from_secs(100);

struct Rig {
    service: Service,
    recorder: Option<Recorder>,
    transport: Line<Heap<System>>,
    private: Heap<Device>,
    path: PathBuf,
    said: Arc<Mutex<Vec<String>>>,
}

impl Rig {
    fn new(name: &str, ports: u32, pollers: usize, table: Table) -> Self {
        let geometry = Geometry::new(LayoutKind::Line, ports, 1).unwrap();
        let transport = Line::new(Heap::new(geometry.shared_size()), geometry);
        let options = Options {
            pollers,
            report: Report::new(|_| ()),
            ..Options::default()
        };
        let (observer, events) = Observer::new(ports, options.pollers_for(ports));
        let observer = Arc::new(observer);
        let service = Service::start(
            transport.clone(),
            table,
            Arc::new(NoMemory),
            options,
            Arc::clone(&observer),
        )
        .unwrap();
        let source = Source {
            observer,
            events,
            probe: service.probe(),
        };
        let file = format!("rpc-stats-{name}-{}.stats", std::process::id());
        let path = std::env::temp_dir().join(file);
        let run = RunInfo {
            loader: name.to_owned(),
            ..RunInfo::default()
        };
        let writer = Writer::create_at(&path, &Snapshot::default(), false).unwrap();
        let said = Arc::new(Mutex::new(Vec::new()));
        let told = Arc::clone(&said);
        let report = move |error: &dyn std::error::Error| {
            told.lock().unwrap().push(error.to_string());
        };
        let recorder = Recorder::start(writer, run, Some(source), report).unwrap();
        Self {
            service,
            recorder: Some(recorder),
            transport,
            private: Heap::new(geometry.private_size()),
            path,
            said,
        }
    }

    fn client(&self, hint: u32) -> Client<Line<Heap<System>>, Heap<Device>, HostWarp> {
        let warp = HostWarp { hint };
        Client::new(self.transport.clone(), self.private.clone(), warp)
    }

    fn reader(&self) -> Reader {
        Reader::open(&self.path).unwrap()
    }

    /// Ends it: its last snapshot.
    fn end(mut self, code: u8) -> Snapshot {
        let mut reader = self.reader();
        let cancelled = self.service.drain(LONG).cancelled;
        let end = RunEnd { code, cancelled };
        assert!(self.recorder.take().unwrap().finish(end, LONG));
        assert!(!self.path.exists());
        assert_eq!(reader.liveness(), Liveness::Dead);
        let last = reader.read().unwrap().unwrap();
        assert_eq!(last.end, Some(end));
        assert!(self.said.lock().unwrap().is_empty());
        last
    }
}

fn table() -> Table {
    let mut table = Table::new();
    table.procedure::<Noop>(|_, _| Ok(rpc_port::procedure::Empty));
    table.procedure::<Increment>(|_, n| Ok(n + 1));
    table
}

/// Waits for a snapshot of which `f` is true.
fn await_snapshot(reader: &mut Reader, mut f: impl FnMut(&Snapshot) -> bool) -> Snapshot {
    let started = Instant::now();
    loop {
        if let Some(snapshot) = reader.read().unwrap()
            && f(&snapshot)
        {
            return snapshot;
        }
        assert!(started.elapsed() < LONG, "it does not come");
        thread::sleep(Duration::from_millis(5));
    }
}

/// What must be true of every last snapshot.
fn check(last: &Snapshot, calls: u64) {
    let sum = |of: fn(&rpc_stats::OpcodeStats) -> u64| last.opcodes.iter().map(of).sum::<u64>();
    let ports = |of: fn(&rpc_stats::PortStats) -> u64| last.ports.iter().map(of).sum::<u64>();
    assert_eq!(sum(|opcode| opcode.calls), calls);
    assert_eq!(ports(|port| port.calls), calls);
    assert_eq!(last.pollers.iter().map(|p| p.calls).sum::<u64>(), calls);
    assert_eq!(ports(|port| port.bytes_in), sum(|opcode| opcode.bytes_in));
    assert_eq!(ports(|port| port.bytes_out), sum(|opcode| opcode.bytes_out));
    // Each call has an event, or one that stands for it, or is known to have none.
    let measured = sum(|opcode| opcode.latency.count());
    assert_eq!(measured + last.dropped_events, calls);
    assert_eq!(sum(|opcode| opcode.wait.count()), measured);
    assert!(last.ports.iter().all(|port| port.state == PortState::Idle));
    assert!(last.events.is_sorted_by_key(|event| event.time_ns));
    assert!(last.events.len() <= 256);
}

#[test]
fn a_run_shorter_than_a_snapshot_is_there_as_a_whole() {
    let rig = Rig::new("short", 256, 2, table());
    for n in 0..37 {
        assert_eq!(rig.client(n).call::<Increment>(&7), Ok(8));
    }
    let last = rig.end(3);
    check(&last, 37);
    let increment = &last.opcodes[1];
    assert_eq!(increment.opcode, Some(Increment::OPCODE.0));
    assert_eq!(increment.name, Increment::NAME);
    assert_eq!((increment.calls, increment.lanes), (37, 37));
    assert_eq!((increment.bytes_in, increment.bytes_out), (37 * 8, 37 * 8));
    assert_eq!(increment.errors, 0);
    assert_eq!(last.run.loader, "short");
    assert_eq!(last.events.len(), 37);
    let longest = last.events.iter().map(|event| event.latency_ns).max();
    assert_eq!(longest, Some(increment.latency.max_ns()));
    let all = last
        .events
        .iter()
        .map(|event| event.latency_ns)
        .sum::<u64>();
    assert_eq!(all, increment.server_ns);
    assert!(last.events.iter().all(|event| event.sampled == 1));
}

#[test]
fn nothing_called_is_a_run_too() {
    let rig = Rig::new("none", 1, 4, table());
    let last = rig.end(0);
    check(&last, 0);
    assert_eq!((last.ports.len(), last.pollers.len()), (1, 1));
    assert_eq!(last.opcodes.len(), 3);
    assert_eq!(last.opcodes[2].opcode, None);
}

#[test]
fn a_single_port_and_many() {
    for ports in [1, 3, 16384] {
        let rig = Rig::new(&format!("ports-{ports}"), ports, 2, table());
        thread::scope(|scope| {
            for hint in 0..8 {
                let client = rig.client(hint * ports / 8);
                scope.spawn(move || {
                    for n in 0..200 {
                        assert_eq!(client.call::<Increment>(&n), Ok(n + 1));
                    }
                });
            }
        });
        assert!(rig.client(0).call::<Unknown>(&1).is_err());
        let last = rig.end(0);
        check(&last, 1601);
        assert_eq!(last.ports.len(), ports as usize);
        let unknown = &last.opcodes[2];
        assert_eq!((unknown.calls, unknown.errors), (1, 1));
    }
}

struct Unknown;

impl Procedure for Unknown {
    const OPCODE: Opcode = Opcode::user(99);
    const NAME: &'static str = "unknown to the host";
    type Request = u64;
    type Reply = u64;
}

/// More calls than the rings hold between two snapshots: none is lost from any number.
#[test]
fn numbers_are_exact_whatever_becomes_of_the_events() {
    const CALLS: u64 = 100_000;
    let rig = Rig::new("exact", 64, 1, table());
    thread::scope(|scope| {
        for hint in 0..4 {
            let client = rig.client(hint);
            scope.spawn(move || {
                for _ in 0..CALLS / 4 {
                    // Nobody waits for these.
                    client.notify::<Noop>(&rpc_port::procedure::Empty).unwrap();
                }
            });
        }
    });
    let last = rig.end(0);
    check(&last, CALLS);
}

#[test]
fn readers_that_come_and_go_change_nothing() {
    let rig = Rig::new("attach", 64, 2, table());
    let over = AtomicBool::new(false);
    let mut seen = 0;
    thread::scope(|scope| {
        let client = rig.client(0);
        let over = &over;
        scope.spawn(move || {
            for n in 0..20_000 {
                assert_eq!(client.call::<Increment>(&n), Ok(n + 1));
            }
            over.store(true, Ordering::Relaxed);
        });
        for _ in 0..100 {
            let mut reader = rig.reader();
            seen = await_snapshot(&mut reader, |snapshot| {
                let calls = snapshot.opcodes.get(1).map_or(0, |opcode| opcode.calls);
                assert!(calls >= seen);
                true
            })
            .opcodes
            .get(1)
            .map_or(0, |opcode| opcode.calls);
            assert_eq!(reader.liveness(), Liveness::Alive);
        }
    });
    assert!(over.load(Ordering::Relaxed));
    check(&rig.end(0), 20_000);
}

#[test]
fn what_a_port_does_is_seen() {
    let mut table = table();
    let (release, gate) = mpsc::channel::<()>();
    let gate = Arc::new(Mutex::new(gate));
    let held = Arc::clone(&gate);
    table.conversation(Opcode::user(1), "blocks", move |mut conversation| {
        let gate = Arc::clone(&held);
        async move {
            conversation.recv::<u64>().await?;
            conversation
                .blocking(move || gate.lock().unwrap().recv().is_ok())
                .await;
            conversation.send(|_| 0_u64).await?;
            conversation.recv::<u64>().await?;
            Ok(Flow::Continue)
        }
    });
    let (open, procedure) = mpsc::channel::<()>();
    let procedure = Mutex::new(procedure);
    table.procedure::<Unknown>(move |_, n| {
        let _ = procedure.lock().unwrap().recv();
        Ok(n)
    });
    let rig = Rig::new("states", 8, 1, table);
    let mut reader = rig.reader();
    let state = |snapshot: &Snapshot, state| {
        let numbered = snapshot.ports.iter().enumerate();
        let mut found = numbered.filter(|(_, port)| port.state == state);
        found.next().map(|(index, port)| (index, *port))
    };
    let client = rig.client(0);
    let mut port = client.open(Opcode::user(1)).unwrap().dynamic();
    port.send(8, |_, packet| packet.set(&1_u64)).unwrap();
    let seen = await_snapshot(&mut reader, |s| state(s, PortState::InHandler).is_some());
    let (index, stats) = state(&seen, PortState::InHandler).unwrap();
    assert_eq!(
        (stats.opcode, stats.mask, stats.calls),
        (Some(Opcode::user(1).0), 1, 1)
    );
    let later = await_snapshot(&mut reader, |s| s.sequence > seen.sequence + 1);
    assert_eq!(
        later.ports[index].since_ns, stats.since_ns,
        "the same all the while"
    );
    assert!(later.ports[index].is_stuck(stats.since_ns + 2_000_000_000, 1_000_000_000));
    release.send(()).unwrap();
    port.recv(8, |_, _| ()).unwrap();
    let seen = await_snapshot(&mut reader, |s| state(s, PortState::MidExchange).is_some());
    assert_eq!(state(&seen, PortState::MidExchange).unwrap().0, index);
    port.send(8, |_, packet| packet.set(&1_u64)).unwrap();
    drop(port);
    await_snapshot(&mut reader, |s| state(s, PortState::MidExchange).is_none());

    // A poller in a handler: what comes by its other ports waits.
    thread::scope(|scope| {
        let (first, second) = (rig.client(1), rig.client(2));
        scope.spawn(move || assert_eq!(first.call::<Unknown>(&5), Ok(5)));
        let seen = await_snapshot(&mut reader, |s| state(s, PortState::InHandler).is_some());
        assert_eq!(seen.pollers[0].state, rpc_stats::PollerState::InHandler);
        scope.spawn(move || assert_eq!(second.call::<Increment>(&5), Ok(6)));
        let seen = await_snapshot(&mut reader, |s| state(s, PortState::Waiting).is_some());
        let (_, waits) = state(&seen, PortState::Waiting).unwrap();
        assert_eq!(waits.opcode, Some(Increment::OPCODE.0));
        open.send(()).unwrap();
    });
    let last = rig.end(0);
    check(&last, 3);
    assert!(last.opcodes.iter().any(|opcode| opcode.name == "blocks"));
}

/// Idle, it says a few times a second that it is there.
#[test]
fn a_loader_that_does_nothing_lives() {
    let rig = Rig::new("idle", 64, 2, table());
    let mut reader = rig.reader();
    let first = await_snapshot(&mut reader, |_| true);
    let later = await_snapshot(&mut reader, |snapshot| {
        snapshot.time_ns > first.time_ns + 2_500_000_000
    });
    // 16 in the first second, then 4 each.
    assert!((first.sequence + 3..first.sequence + 40).contains(&later.sequence));
    rig.end(0);
}

#[test]
fn a_recorder_that_is_dropped_takes_its_file_along() {
    let rig = Rig::new("dropped", 64, 2, table());
    let path = rig.path.clone();
    let mut reader = rig.reader();
    drop(rig);
    assert!(!path.exists());
    assert_eq!(reader.liveness(), Liveness::Dead);
    assert_eq!(reader.read().unwrap().unwrap().end, None);
}
