//! Clients and handlers that do wrong.

mod common;

use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use common::{LIMIT, Layout, Plan, Whole, eventually, on_both_layouts, say};
use rpc_bitmap::{Memory, System};
use rpc_port::procedure::{Echo, Increment};
use rpc_port::{Error, Line, Procedure, Transport};
use rpc_server::{
    CallInfo, Conversation, End, ExchangeState, Failure, Flow, Observe, Outcome, Stream,
};
use rpc_types::layout::request;
use rpc_types::{Opcode, Status};

on_both_layouts!(
    unknown_opcodes,
    panicking_handlers,
    failing_handlers,
    ports_that_handlers_leave_to_others,
    ports_that_come_back_at_the_end,
    ports_that_handlers_leave_to_observers,
    too_long,
    failures_that_are_answered,
    nobody_waits_for_who_is_outside,
    panic_without_words,
    too_much_in_flight,
    garbage,
);

const SERVER_ERROR: Error = Error::Status(Status::SERVER_ERROR);

fn unknown_opcodes<T: Layout>() {
    let rig = Plan::new(4).start::<T>();
    let unhandled = Err(Error::Status(Status::UNHANDLED));
    rig.team(4, |_, client| {
        for opcode in [
            Opcode::user(0x2BCD),
            Opcode::user(0x2BCD),
            Opcode::builtin(77),
        ] {
            let mut port = client.open(opcode).unwrap().dynamic();
            assert_eq!(port.send_and_recv(8, |_, _| (), 8, |_, _| ()), unhandled);
        }
    });
    let client = rig.client(1);
    assert_eq!(
        say(&client, Opcode::user(0x2BCD), &[1; 1000]),
        unhandled.map(|()| 0)
    );
    // The port, and the others, are as good as before.
    assert_eq!(client.call::<Increment>(&1), Ok(2));
    let reports = rig.reports();
    assert_eq!(reports.len(), 2, "{reports:?}");
    assert!(reports[0].contains("no handler for opcode 0x75002bcd (port 0, lanes 0xf)"));
    let _ = rig.service.drain(LIMIT);
    let counters = rig.service.counters();
    let unknown = counters.unknown().unwrap();
    assert_eq!((unknown.calls, unknown.lanes, unknown.errors), (4, 13, 4));
}

struct Panics;

impl Procedure for Panics {
    const OPCODE: Opcode = Opcode::user(1);
    const NAME: &'static str = "panics";
    type Request = u64;
    type Reply = u64;
}

fn panicking_handlers<T: Layout>() {
    let mut plan = Plan::new(4);
    plan.table
        .procedure::<Panics>(|_, n| if n > 1 { panic!("number {n}") } else { Ok(n) });
    plan.table
        .conversation(Opcode::user(2), "at_once", |mut conversation| async move {
            conversation.recv_with(0, |_, _| ()).await?;
            panic!("at once")
        });
    plan.table.conversation(
        Opcode::user(3),
        "after_sending",
        |mut conversation| async move {
            conversation.recv_with(0, |_, _| ()).await?;
            conversation.send_with(0, |_, _| ()).await?;
            panic!("after sending")
        },
    );
    plan.table.conversation(
        Opcode::user(4),
        "in_the_pool",
        |mut conversation| async move { conversation.blocking(|| panic!("in the pool")).await },
    );
    #[allow(unreachable_code, reason = "a handler without a future")]
    plan.table.conversation(Opcode::user(5), "no_future", |_| {
        panic!("no future");
        async { Ok(Flow::Continue) }
    });
    let rig = plan.start::<T>();
    let client = rig.client(0);
    assert_eq!(client.call::<Panics>(&1), Ok(1));
    for _ in 0..2 {
        assert_eq!(client.call::<Panics>(&3), Err(SERVER_ERROR));
        for n in 2..=5 {
            let mut port = client.open(Opcode::user(n)).unwrap().dynamic();
            if n == 3 {
                // Told at the next turn of the conversation.
                port.send_and_recv(0, |_, _| (), 0, |_, _| ()).unwrap();
            }
            let told = port.send_and_recv(0, |_, _| (), 0, |_, _| ());
            assert_eq!(told, Err(SERVER_ERROR), "handler {n}");
        }
        assert_eq!(client.call::<Increment>(&1), Ok(2));
    }
    let reports = rig.reports();
    assert_eq!(reports.len(), 5, "each once: {reports:?}");
    for words in [
        "number 3",
        "at once",
        "after sending",
        "in the pool",
        "no future",
    ] {
        assert!(
            reports.iter().any(|report| report.contains(words)),
            "{words}"
        );
    }
    assert_eq!(rig.service.ended(), None);
}

fn failing_handlers<T: Layout>() {
    let mut plan = Plan::new(4);
    plan.table
        .conversation(Opcode::user(1), "fails", |mut conversation| async move {
            conversation.recv_with(0, |_, _| ()).await?;
            Err(Failure::Handler("the file is gone".into()))
        });
    plan.table.conversation(Opcode::user(2), "lies", |_| async {
        Err(Status::SUCCESS.into())
    });
    // A handler that never takes its request: its client gets what it has sent back.
    plan.table
        .conversation(Opcode::user(3), "lazy", |_| async { Ok(Flow::Continue) });
    let rig = plan.start::<T>();
    let client = rig.client(0);
    for (n, answer) in [(1, Err(SERVER_ERROR)), (2, Err(SERVER_ERROR)), (3, Ok(()))] {
        for _ in 0..2 {
            let mut port = client.open(Opcode::user(n)).unwrap().dynamic();
            assert_eq!(port.send_and_recv(8, |_, _| (), 8, |_, _| ()), answer);
        }
    }
    assert_eq!(rig.reports().len(), 1, "{:?}", rig.reports());
    assert!(rig.reports()[0].contains("the file is gone"));
}

struct Drops;

impl Procedure for Drops {
    const OPCODE: Opcode = Opcode::user(3);
    const NAME: &'static str = "drops";
    type Request = u64;
    type Reply = u64;
}

/// A handler that leaves its conversation to another one, on the same poller, and ends.
fn ports_that_handlers_leave_to_others<T: Layout>() {
    let mut plan = Plan::new(4);
    plan.options.pollers = 1;
    let left = Arc::new(Mutex::new(None));
    for (n, succeeds) in [(1, true), (2, false)] {
        let left = Arc::clone(&left);
        plan.table
            .conversation(Opcode::user(n), "leaves", move |mut conversation| {
                let left = Arc::clone(&left);
                async move {
                    conversation.recv_with(0, |_, _| ()).await?;
                    *left.lock().unwrap() = Some(conversation);
                    if succeeds {
                        return Ok(Flow::Continue);
                    }
                    Err(Failure::Handler("it has left".into()))
                }
            });
    }
    let taken = Arc::clone(&left);
    plan.table.procedure::<Drops>(move |_, n| {
        let conversation = taken.lock().unwrap().take();
        Ok(n + u64::from(conversation.is_some()))
    });
    let rig = plan.start::<T>();
    for (n, answer) in [(1, Ok(())), (2, Err(SERVER_ERROR))] {
        for _ in 0..2 {
            let client = rig.client(0);
            let mut port = client.open(Opcode::user(n)).unwrap().dynamic();
            port.send(0, |_, _| ()).unwrap();
            eventually("the first handler's end", || left.lock().unwrap().is_some());
            assert_eq!(rig.client(1).call::<Drops>(&1), Ok(2));
            port.begin_recv().unwrap();
            let mut told = Ok(false);
            eventually("an answer", || {
                told = port.poll_own();
                told != Ok(false)
            });
            assert_eq!(told.map(drop), answer);
            drop(port);
            eventually("the end of all", || rig.service.open_exchanges().is_empty());
        }
    }
}

/// As before, where the last handler of a run lets go of it.
fn ports_that_come_back_at_the_end<T: Layout>() {
    let mut plan = Plan::new(4);
    plan.options.pollers = 1;
    let left = Arc::new(Mutex::new(None));
    let leave = Arc::clone(&left);
    plan.table
        .conversation(Opcode::user(1), "leaves", move |conversation| {
            *leave.lock().unwrap() = Some(conversation);
            async { Ok(Flow::Continue) }
        });
    let (go, gate) = mpsc::channel::<()>();
    let gate = Arc::new(Mutex::new(gate));
    let taken = Arc::clone(&left);
    plan.table
        .conversation(Opcode::user(2), "takes", move |mut conversation| {
            let (gate, taken) = (Arc::clone(&gate), Arc::clone(&taken));
            async move {
                let wait = move || gate.lock().unwrap().recv().is_err();
                conversation.blocking(wait).await;
                let _conversation = taken.lock().unwrap().take();
                Ok(Flow::Continue)
            }
        });
    let rig = plan.start::<T>();
    let client = rig.client(0);
    // The second one is at the later place: the poller has passed the first one by then.
    let mut ports = [1, 2].map(|n| client.open(Opcode::user(n)).unwrap().dynamic());
    for (open, port) in (1..).zip(&mut ports) {
        port.send(0, |_, _| ()).unwrap();
        eventually("the handler", || rig.service.open_exchanges().len() == open);
    }
    eventually("the first one's end", || left.lock().unwrap().is_some());
    thread::scope(|scope| {
        let drained = scope.spawn(|| rig.service.drain(LIMIT));
        thread::sleep(Duration::from_millis(20));
        go.send(()).unwrap();
        let drained = drained.join().unwrap();
        assert_eq!((drained.cancelled, drained.late), (0, false));
    });
    for port in &mut ports {
        assert_eq!(port.poll_own(), Ok(true));
    }
}

/// What is called last of all, by the poller.
struct Clears(Arc<Mutex<Option<Conversation>>>);

impl Observe for Clears {
    fn call_ended(&self, _: &CallInfo, _: &Outcome) {
        let _conversation = self.0.lock().unwrap().take();
    }
}

fn ports_that_handlers_leave_to_observers<T: Layout>() {
    let mut plan = Plan::new(4);
    let left = Arc::new(Mutex::new(None));
    let leave = Arc::clone(&left);
    plan.table
        .conversation(Opcode::user(1), "leaves", move |conversation| {
            *leave.lock().unwrap() = Some(conversation);
            async { Ok(Flow::Continue) }
        });
    let rig = plan.start_observed::<T>(Clears(left));
    let client = rig.client(0);
    let mut port = client.open(Opcode::user(1)).unwrap().dynamic();
    port.send(0, |_, _| ()).unwrap();
    eventually("an answer", || port.poll_own() == Ok(true));
}

fn too_long<T: Layout>() {
    let mut plan = Plan::new(4);
    plan.options.max_message = 1000;
    let rig = plan.start::<T>();
    thread::scope(|scope| {
        let other = rig.client(2);
        scope.spawn(move || {
            (0..200).for_each(|n| assert_eq!(other.call::<Increment>(&n), Ok(n + 1)));
        });
        let client = rig.client(0);
        let too_long = Err(Error::Status(Status::TOO_LONG));
        for (length, answer) in [
            (1000, Ok(())),
            (1001, too_long),
            (5000, too_long),
            (999, Ok(())),
        ] {
            let mut back = Whole::default();
            let message = vec![1; length];
            assert_eq!(
                client.exchange::<Echo>(&message, &mut back),
                answer,
                "{length} bytes"
            );
            assert_eq!(back.0.len(), if answer.is_ok() { length } else { 0 });
        }
        // What a hostile client may announce.
        for length in [1001, 1 << 40, u64::MAX - 8, u64::MAX] {
            let mut port = client.open(Opcode::TEST_STREAM).unwrap().dynamic();
            let told = port.send_and_recv(16, |_, packet| packet.set(&length), 8, |_, _| ());
            assert_eq!(told, too_long, "{length} bytes");
        }
        // A program that prints does not look at what it gets back: the user is told.
        for _ in 0..2 {
            let told = say(&client, Opcode::WRITE_TO_STDOUT, &[b'x'; 1001]);
            assert_eq!(told, too_long.map(|()| 0));
        }
    });
    let reports = rig.reports();
    assert_eq!(reports.len(), 2, "each opcode once: {reports:?}");
    assert!(
        reports[1].contains("write_to_stdout") && reports[1].contains("1000 bytes"),
        "{reports:?}"
    );
}

/// A failure may be told in an opcode's own words: it is reported and counted all the same.
fn failures_that_are_answered<T: Layout>() {
    let mut plan = Plan::new(4);
    plan.options.max_message = 100;
    let opcode = Opcode::user(1);
    plan.table
        .conversation(opcode, "own words", |mut port| async move {
            let messages = port.recv_n_lossy(u64::MAX).await?;
            if messages.of(0) == b"disk" {
                port.note(Failure::Handler("the disk is full".to_owned()));
                port.note(Failure::Handler("and the rest does not count".to_owned()));
            }
            port.send(|lane| messages.of(lane).len() as u64).await?;
            Ok(Flow::Continue)
        });
    let rig = plan.start::<T>();
    let client = rig.client(0);
    for (text, told) in [(&[1; 100][..], 100), (&[1; 101], 0), (b"disk", 4), (b"", 0)] {
        assert_eq!(say(&client, opcode, text), Ok(told));
    }
    let _ = rig.service.drain(LIMIT);
    assert_eq!(rig.service.counters().of(opcode).unwrap().errors, 2);
    let reports = rig.reports();
    assert_eq!(reports.len(), 2, "{reports:?}");
    assert!(reports[0].contains("too long") && reports[1].contains("own words"));
    assert!(reports[1].contains("the disk is full"), "{reports:?}");
}

/// The end of a run is not put off for what may never come.
fn nobody_waits_for_who_is_outside<T: Layout>() {
    let mut plan = Plan::new(4);
    plan.table
        .conversation(Opcode::user(1), "waits", |mut port| async move {
            port.outside(std::future::pending::<()>()).await;
            Ok(Flow::Continue)
        });
    let rig = plan.start::<T>();
    let client = rig.client(0);
    let mut port = client.open(Opcode::user(1)).unwrap().dynamic();
    port.send(8, |_, _| ()).unwrap();
    eventually("the wait", || rig.service.open_exchanges().len() == 1);
    let drained = rig.service.drain(std::time::Duration::from_mins(1));
    assert_eq!((drained.cancelled, drained.late), (1, false));
}

/// The end of the run is more important than what is said about it.
fn panic_without_words<T: Layout>() {
    let mut plan = Plan::new(4);
    plan.options.max_message = 10;
    let rig = plan.start::<T>();
    let client = rig.client(0);
    let mut port = client.open(Opcode::PANIC).unwrap().dynamic();
    port.send(16, |_, packet| packet.set(&u64::MAX)).unwrap();
    eventually("the end", || rig.service.ended() == Some(End::PANIC));
    let said = rig.output.text(Stream::Stderr);
    assert!(
        said.contains("panicked") && said.contains("longer"),
        "{said}"
    );
    assert_eq!(said.lines().count(), 1, "{said}");
}

/// Messages that are small enough each, and too much together.
fn too_much_in_flight<T: Layout>() {
    let mut plan = Plan::new(8);
    plan.options.max_in_flight = 3000;
    let rig = plan.start::<T>();
    let clients = [rig.client(0), rig.client(1)];
    // One client holds most of it, half-way through its message.
    let mut held = clients[0].open(Opcode::TEST_STREAM).unwrap().dynamic();
    held.send(64, |_, packet| packet.set(&2500_u64)).unwrap();
    let each = held.cursor().parts(2500) * held.payload();
    for _ in 0..2450 / each {
        held.recv(0, |_, _| ()).unwrap();
        held.send(64, |_, _| ()).unwrap();
    }
    // Up to here the server has taken 2,200 bytes and more.
    eventually("the wait for the rest", || {
        rig.service
            .open_exchanges()
            .iter()
            .any(|e| e.state == ExchangeState::MidExchange)
    });
    let mut back = Whole::default();
    let told = clients[1].exchange::<Echo>(&[1; 2000], &mut back);
    assert_eq!(told, Err(Error::Status(Status::TOO_LONG)));
    clients[1].exchange::<Echo>(&[1; 100], &mut back).unwrap();
    assert_eq!(back.0.len(), 100);
    drop(held);
}

/// Every mailbox turned, over every kind of garbage: the server answers or ignores it, and serves
/// on.
fn garbage<T: Layout>() {
    for fill in [0, 1, u64::MAX, 0x8080_8080_8080_8080, 0x7500_0001_6300_0002] {
        let rig = Plan::new(40).start::<T>();
        let shared = rig.transport.shared();
        let geometry = *rig.transport.geometry();
        let ranges = [
            geometry.requests()..geometry.replies(),
            geometry.packets()..geometry.shared_size(),
        ];
        for offset in ranges.into_iter().flat_map(|range| range.step_by(8)) {
            shared.store64(
                offset,
                fill ^ (offset as u64).rotate_left(fill as u32 & 31) & fill,
            );
        }
        thread::sleep(std::time::Duration::from_millis(5));
        for offset in (geometry.requests()..geometry.replies()).step_by(4) {
            shared.store32(offset, (offset as u32).wrapping_mul(0x9E37_79B9));
        }
        thread::sleep(std::time::Duration::from_millis(5));
        let _ = rig.service.open_exchanges();
        assert_eq!(rig.service.ended(), None);
        let drained = rig.service.drain(LIMIT);
        assert!(!drained.late);
        assert!(rig.service.stop());
    }
}

type HeapLine = Line<rpc_bitmap::Heap<System>>;

/// Headers whose masks name no lane, or lanes that do not exist.
#[test]
fn masks_that_mean_nothing() {
    let rig = Plan::new(8).start::<HeapLine>();
    let shared = rig.transport.shared();
    let geometry = *rig.transport.geometry();
    let meta = request::meta(0x8000, request::OPENING | request::BY_LANE, 8);
    for (port, mask, lanes) in [(0, 0_u64, 0), (1, !0xF, 0), (2, u64::MAX, 4)] {
        for lane in 0..4 {
            shared.store128(geometry.request_word(port, lane), [1, u64::from(lane)]);
        }
        shared.store128(geometry.request(port), [u64::from(meta) << 32 | 1, mask]);
        let before = u64::from(port);
        eventually("an end", || {
            rig.service.counters().total().calls == before + 1
        });
        if lanes > 0 {
            eventually("an answer", || {
                rig.transport.poll_reply(port, 3, 1).is_some()
            });
            let reply = rig.transport.poll_reply(port, 3, 1).unwrap();
            assert_eq!(reply.status, Some(Status::SUCCESS));
            assert_eq!(reply.word, 4);
        }
    }
    let _ = rig.service.drain(LIMIT);
    let counters = rig.service.counters();
    let own = counters.of(Opcode::TEST_INCREMENT).unwrap();
    assert_eq!((own.calls, own.lanes, own.errors), (3, 4, 2));
}

/// A client that gives up half-way and begins another call on the same port.
#[test]
fn abandoned_conversations() {
    let rig = Plan::new(1).start::<HeapLine>();
    let client = rig.client(0);
    for _ in 0..3 {
        let mut port = client.open(Opcode::TEST_STREAM).unwrap().dynamic();
        port.send(64, |_, packet| packet.set(&1000_u64)).unwrap();
        port.recv(0, |_, _| ()).unwrap();
        // The server waits for the rest of the message, which never comes.
        drop(port);
        assert_eq!(client.call::<Increment>(&1), Ok(2));
    }
    assert!(rig.service.open_exchanges().is_empty());
    let _ = rig.service.drain(LIMIT);
    let counters = rig.service.counters();
    assert_eq!(
        counters
            .of(Opcode::TEST_STREAM)
            .map(|c| (c.calls, c.errors)),
        Some((3, 3))
    );
    assert_eq!(
        counters
            .of(Opcode::TEST_INCREMENT)
            .map(|c| (c.calls, c.errors)),
        Some((3, 0))
    );
}
