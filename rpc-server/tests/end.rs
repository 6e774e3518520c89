//! How a run ends, and what an idle service does.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use common::{LIMIT, Layout, Plan, eventually, on_both_layouts, on_llvm_layouts, say};
use rpc_port::procedure::{Empty, Increment, Noop};
use rpc_port::transport::Request;
use rpc_port::{Error, Procedure};
use rpc_server::{End, EndCause, ExchangeState, Flow, Stream};
use rpc_types::{Opcode, Packet, Status};

on_both_layouts!(
    exits,
    panics,
    aborts,
    first_end_counts,
    drain_serves_and_cancels,
    drain_is_bounded,
    what_is_written_at_the_end,
    drop_lets_clients_go,
    stop_device,
    idle_scans_little,
    wakes_from_idle,
    parked_pollers_look,
    watcher_held_up,
    poller_fault,
    reports_come_first,
);
on_llvm_layouts!(
    exits,
    panics,
    aborts,
    first_end_counts,
    drain_serves_and_cancels,
    drain_is_bounded,
    drop_lets_clients_go,
    stop_device,
    idle_scans_little,
    wakes_from_idle,
    parked_pollers_look,
    watcher_held_up,
);

fn exits<T: Layout>() {
    let rig = Plan::new(4).start::<T>();
    assert_eq!(rig.service.wait(Duration::from_millis(1)), None);
    rig.team(4, |lane, client| {
        let mut port = client.open(Opcode::EXIT).unwrap().dynamic();
        port.send(0, |_, _| ()).unwrap();
        port.recv(0, |_, _| ()).unwrap();
        port.send(4, |_, packet| packet.set(&(42 + lane as i32)))
            .unwrap();
    });
    let end = End {
        code: 42,
        cause: EndCause::Exit,
    };
    assert_eq!(rig.service.wait(LIMIT), Some(end), "the lowest lane's code");
    assert_eq!(rig.service.ended(), Some(end));
    // The service goes on until it is drained.
    assert_eq!(rig.client(2).call::<Increment>(&1), Ok(2));
    assert!(rig.service.reported(Duration::MAX));
    assert_eq!(rig.service.drain(Duration::MAX).cancelled, 0);
}

fn panics<T: Layout>() {
    let rig = Plan::new(4).start::<T>();
    let client = rig.client(0);
    let mut port = client.open_reserved(Opcode::PANIC).unwrap().dynamic();
    port.send_n(|_| b"panicked at src/main.rs:3:5").unwrap();
    port.recv(8, |_, _| ()).unwrap();
    eventually("the end", || rig.service.ended() == Some(End::PANIC));
    assert_eq!(
        rig.output.text(Stream::Stderr),
        "panicked at src/main.rs:3:5\n"
    );
    assert_eq!(End::PANIC.code, 101);
}

fn aborts<T: Layout>() {
    let rig = Plan::new(4).start::<T>();
    let client = rig.client(0);
    let mut port = client.open(Opcode::ABORT).unwrap().dynamic();
    port.send_and_recv(0, |_, _| (), 0, |_, _| ()).unwrap();
    eventually("the end", || rig.service.ended() == Some(End::ABORT));
}

struct Quit;

impl Procedure for Quit {
    const OPCODE: Opcode = Opcode::user(1);
    const NAME: &'static str = "quit";
    type Request = i32;
    type Reply = Empty;
}

fn first_end_counts<T: Layout>() {
    let mut plan = Plan::new(4);
    plan.table.procedure::<Quit>(|call, code| {
        call.end_run(End::exit(code));
        Ok(Empty)
    });
    let rig = plan.start::<T>();
    for code in [7, 8, 9] {
        assert_eq!(rig.client(0).call::<Quit>(&code), Ok(Empty));
    }
    assert_eq!(rig.service.ended(), Some(End::exit(7)));
}

fn drain_serves_and_cancels<T: Layout>() {
    let rig = Plan::new(40).start::<T>();
    // Half a message.
    let client = rig.client(0);
    let mut half = client.open(Opcode::TEST_STREAM).unwrap().dynamic();
    half.send(64, |_, packet| packet.set(&1000_u64)).unwrap();
    eventually("the wait for the rest", || {
        let open = rig.service.open_exchanges();
        open.len() == 1 && open[0].state == ExchangeState::MidExchange
    });
    let open = rig.service.open_exchanges()[0];
    assert_eq!(
        (open.port, open.opcode, open.mask),
        (0, Opcode::TEST_STREAM, 1)
    );
    let words = open.to_string();
    assert_eq!(
        words,
        "port 0 (test_stream, lanes 0x1) waits for the device's next step"
    );
    // Requests that are complete, on ports of both pollers, just before.
    for hint in 1..33 {
        let client = rig.client(hint);
        let text = format!("{hint}\n");
        let mut port = client.open(Opcode::WRITE_TO_STDOUT).unwrap().dynamic();
        port.send_n(|_| text.as_bytes()).unwrap();
        drop(port);
        rig.client(hint + 1).notify::<Noop>(&Empty).unwrap();
    }
    let drained = rig.service.drain(LIMIT);
    assert_eq!((drained.cancelled, drained.late), (1, false));
    assert_eq!(rig.stdout().lines().count(), 32);
    assert_eq!(
        rig.service.counters().of(Opcode::NOOP).map(|c| c.calls),
        Some(32)
    );
    assert_eq!(
        rig.service
            .counters()
            .of(Opcode::TEST_STREAM)
            .map(|c| c.errors),
        Some(1)
    );
    // Nobody serves any more; the stop word lets a client find out.
    rig.service.stop_device();
    assert_eq!(
        half.recv(0, |_, _| ())
            .and_then(|()| half.send(0, |_, _| ()))
            .and_then(|()| half.recv(0, |_, _| ())),
        Err(Error::Stopped)
    );
}

/// A handler that blocks its poller keeps nobody longer than the limit.
fn drain_is_bounded<T: Layout>() {
    let mut plan = Plan::new(4);
    plan.options.pollers = 1;
    let go = Arc::new(AtomicBool::new(false));
    let gate = Arc::clone(&go);
    plan.table
        .conversation(Opcode::user(1), "blocks", move |_| {
            let gate = Arc::clone(&gate);
            async move {
                while !gate.load(Relaxed) {
                    thread::sleep(Duration::from_millis(1));
                }
                Ok(Flow::Continue)
            }
        });
    let rig = plan.start::<T>();
    let client = rig.client(0);
    let mut port = client.open(Opcode::user(1)).unwrap().dynamic();
    port.send(0, |_, _| ()).unwrap();
    eventually("the handler", || {
        rig.service
            .open_exchanges()
            .iter()
            .any(|e| e.state == ExchangeState::InHandler)
    });
    assert!(rig.service.drain(Duration::from_millis(50)).late);
    go.store(true, Relaxed);
    assert!(rig.service.stop());
}

/// Where nobody reads what one has to write, the others write all the same.
fn what_is_written_at_the_end<T: Layout>() {
    let mut plan = Plan::new(4);
    let (go, gate) = std::sync::mpsc::channel::<()>();
    let gate = std::sync::Mutex::new(gate);
    plan.table.at_drain(move || {
        let _ = gate.lock().unwrap().recv();
    });
    let written = Arc::new(AtomicBool::new(false));
    let other = Arc::clone(&written);
    plan.table.at_drain(move || other.store(true, Relaxed));
    let rig = plan.start::<T>();
    assert!(rig.service.drain(Duration::from_millis(50)).late);
    eventually("the other one", || written.load(Relaxed));
    drop(go);
    assert!(rig.service.stop());
}

/// No end leaves out what was reported before, however it comes.
fn reports_come_first<T: Layout>() {
    for drains in [false, true] {
        let plan = Plan::new(4);
        let reader = Arc::clone(&plan.reader);
        let rig = plan.start::<T>();
        let reading = reader.lock().unwrap();
        let told = say(&rig.client(0), Opcode::user(77), b"");
        assert_eq!(told, Err(Error::Status(Status::UNHANDLED)));
        let service = rig.service;
        let ended = thread::spawn(move || {
            if drains {
                !service.drain(LIMIT).late
            } else {
                service.stop()
            }
        });
        thread::sleep(Duration::from_millis(100));
        drop(reading);
        assert!(ended.join().unwrap());
        assert_eq!(rig.reports.lock().unwrap().len(), 1, "drains: {drains}");
    }
}

fn drop_lets_clients_go<T: Layout>() {
    let mut plan = Plan::new(4);
    plan.table
        .conversation(Opcode::user(1), "never", |_| std::future::pending());
    let rig = plan.start::<T>();
    let clients = [rig.client(0), rig.client(1), rig.client(2)];
    thread::scope(|scope| {
        for client in &clients {
            scope.spawn(|| {
                let mut port = client.open(Opcode::user(1)).unwrap().dynamic();
                let told = port.send_and_recv(0, |_, _| (), 0, |_, _| ()).unwrap_err();
                let ended = [Error::Stopped, Error::Status(Status::CANCELLED)];
                assert!(ended.contains(&told), "{told:?}");
            });
        }
        eventually("the handlers", || rig.service.open_exchanges().len() == 3);
        drop(rig.service);
    });
}

fn stop_device<T: Layout>() {
    let rig = Plan::new(1).start::<T>();
    let clients = [rig.client(0), rig.client(0)];
    let held = clients[0].open(Opcode::NOOP).unwrap();
    thread::scope(|scope| {
        // The only port is taken: it waits, and finds the stop word.
        let waiting = scope.spawn(|| clients[1].open(Opcode::NOOP).map(drop));
        rig.service.stop_device();
        assert_eq!(waiting.join().unwrap(), Err(Error::Stopped));
    });
    drop(held);
}

/// Counts passes, not time: an idle service makes some thousands a second at most.
fn idle_scans_little<T: Layout>() {
    let mut plan = Plan::new(1000);
    plan.options.pollers = 4;
    let rig = plan.start::<T>();
    let time = Duration::from_millis(300);
    for _ in 0..2 {
        assert_eq!(rig.client(3).call::<Increment>(&1), Ok(2));
        // It is hot for a while after a call.
        thread::sleep(Duration::from_millis(50));
        let before = (rig.service.counters().scans, Instant::now());
        thread::sleep(time);
        let scans = rig.service.counters().scans - before.0;
        let most = before.1.elapsed().as_micros() as u64 / 100;
        assert!(scans > 0 && scans < most, "{scans} passes");
    }
}

/// Parked pollers are woken for ports all over the place.
fn wakes_from_idle<T: Layout>() {
    let mut plan = Plan::new(2000);
    plan.options.pollers = 4;
    let rig = plan.start::<T>();
    for hint in [0, 9, 17, 25, 40, 1999, 1001, 8] {
        thread::sleep(Duration::from_millis(3));
        assert_eq!(rig.client(hint).call::<Increment>(&1), Ok(2));
        say(&rig.client(hint), Opcode::WRITE_TO_STDOUT, b"x").unwrap();
    }
}

/// A client that does not leave word of its requests is served all the same, a little later.
fn parked_pollers_look<T: Layout>() {
    let mut plan = Plan::new(200);
    plan.options.pollers = 4;
    let rig = plan.start::<T>();
    // Long enough for all but the watcher to be parked.
    thread::sleep(Duration::from_millis(100));
    for port in [0, 4, 8, 12, 199] {
        let mut packet = Packet::ZERO;
        packet.set(&1_u64);
        let opening = Some(Increment::OPCODE);
        rig.transport.put(port, 0, &packet, 8, opening);
        let request = Request {
            sequence: 1,
            opcode: Increment::OPCODE,
            mask: 1,
            opening: true,
            bytes: 8,
            in_packets: true,
            by_lane: false,
            ordered: true,
        };
        rig.transport.publish_request(port, &request);
        eventually("a reply", || rig.transport.poll_reply(port, 0, 1).is_some());
    }
}

/// An observer that panics is a fault of the server: the device is told to end, and so is the run.
fn poller_fault<T: Layout>() {
    struct Faulty;
    impl rpc_server::Observe for Faulty {
        fn call_begun(&self, _: &rpc_server::CallInfo) {
            panic!("a faulty observer");
        }
    }
    let rig = Plan::new(4).start_observed::<T>(Faulty);
    let told = rig.client(0).call::<Increment>(&1);
    assert_eq!(told, Err(Error::Status(Status::SERVER_ERROR)));
    assert_eq!(rig.service.wait(LIMIT), Some(End::SERVER_FAULT));
    assert_eq!(End::SERVER_FAULT.code, 125);
    eventually("the report", || {
        rig.reports().iter().any(|r| r.contains("bug"))
    });
    assert!(rig.service.drain(LIMIT).late);
}

/// The poller that looks after the parked ones is inside a handler: another takes its place.
fn watcher_held_up<T: Layout>() {
    let mut plan = Plan::new(40);
    plan.options.pollers = 3;
    let go = Arc::new(AtomicBool::new(false));
    let gate = Arc::clone(&go);
    plan.table.procedure::<Quit>(move |_, _| {
        while !gate.load(Relaxed) {
            thread::sleep(Duration::from_millis(1));
        }
        Ok(Empty)
    });
    let rig = plan.start::<T>();
    rig.client(0).notify::<Quit>(&0).unwrap();
    // Long enough for the others to be parked, and to wake by themselves twice.
    thread::sleep(Duration::from_millis(100));
    let open = rig.service.open_exchanges();
    assert_eq!(open.len(), 1);
    assert_eq!(
        (open[0].name, open[0].state),
        (Some("quit"), ExchangeState::InHandler)
    );
    for hint in [8, 16, 32] {
        assert_eq!(rig.client(hint).call::<Increment>(&1), Ok(2));
        thread::sleep(Duration::from_millis(5));
    }
    go.store(true, Relaxed);
    eventually("the handler's end", || {
        rig.service.open_exchanges().is_empty()
    });
    assert_eq!(rig.client(0).call::<Increment>(&1), Ok(2));
}
