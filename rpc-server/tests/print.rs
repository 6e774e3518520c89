//! What the device prints.

mod common;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use common::{
    Broken, LIMIT, Layout, Plan, Whole, eventually, on_both_layouts, on_llvm_layouts, say,
};
use rpc_port::Error;
use rpc_port::procedure::{Echo, Increment};
use rpc_server::{Failure, Flow, Output, Stream};
use rpc_types::stream::PrintPart;
use rpc_types::{Opcode, Status};

on_both_layouts!(
    whole_lines,
    parts_are_joined,
    parts_that_never_end,
    parts_beyond_the_bound,
    lanes_in_order,
    parts_of_lanes,
    broken_pipe,
    heads_that_are_none,
    slow_reader,
    what_waits_counts,
    no_room_to_join,
    reports_wait_alone,
);
on_llvm_layouts!(reports_wait_alone);

fn part(message: u32, flags: u32, text: &str) -> Vec<u8> {
    let mut bytes = bytemuck::bytes_of(&PrintPart { message, flags }).to_vec();
    bytes.extend_from_slice(text.as_bytes());
    bytes
}

/// Lines of 16 threads, over two streams, whole and each once.
fn whole_lines<T: Layout>() {
    let rig = Plan::new(12).start::<T>();
    let line = |thread: usize, n: usize| {
        format!("thread {thread} line {n} {}\n", "x".repeat(thread * 9 + n))
    };
    thread::scope(|scope| {
        for id in 0..16 {
            let client = rig.client(id as u32);
            let line = &line;
            scope.spawn(move || {
                for n in 0..20 {
                    let text = line(id, n);
                    let opcode = if n % 2 == 0 {
                        Opcode::WRITE_TO_STDOUT
                    } else {
                        Opcode::WRITE_TO_STDERR
                    };
                    assert_eq!(say(&client, opcode, text.as_bytes()), Ok(text.len() as u64));
                }
            });
        }
    });
    for (stream, rest) in [(Stream::Stdout, 0), (Stream::Stderr, 1)] {
        let text = rig.output.text(stream);
        let mut lines: Vec<_> = text.split_inclusive('\n').map(str::to_owned).collect();
        let mut expected: Vec<_> = (0..16)
            .flat_map(|id| (0..10).map(move |n| line(id, n * 2 + rest)))
            .collect();
        lines.sort();
        expected.sort();
        assert_eq!(lines, expected);
    }
}

fn parts_are_joined<T: Layout>() {
    let rig = Plan::new(12).start::<T>();
    thread::scope(|scope| {
        for id in 0..8_u32 {
            let client = rig.client(id);
            scope.spawn(move || {
                let flags = if id % 2 == 0 { 0 } else { PrintPart::STDERR };
                for n in 0..10 {
                    let last = if n == 9 { PrintPart::LAST } else { 0 };
                    let text = format!("{id}{}", if n == 9 { "\n" } else { "" });
                    let message = part(id, flags | last, &text);
                    let count = say(&client, Opcode::PRINT_PART, &message);
                    assert_eq!(count, Ok(text.len() as u64));
                }
            });
        }
    });
    for (stream, rest) in [(Stream::Stdout, 0), (Stream::Stderr, 1)] {
        let mut lines: Vec<_> = rig.output.text(stream).lines().map(str::to_owned).collect();
        lines.sort();
        let expected: Vec<_> = (0..4)
            .map(|id| (id * 2 + rest).to_string().repeat(10))
            .collect();
        assert_eq!(lines, expected);
    }
}

/// What has come of a message is printed at the end.
fn parts_that_never_end<T: Layout>() {
    let rig = Plan::new(2).start::<T>();
    let client = rig.client(0);
    for (message, text) in [(9, "begun, "), (4, "four"), (9, "not ended")] {
        say(&client, Opcode::PRINT_PART, &part(message, 0, text)).unwrap();
    }
    assert_eq!(rig.stdout(), "");
    assert_eq!(rig.service.drain(LIMIT).cancelled, 0);
    assert_eq!(rig.stdout(), "fourbegun, not ended");
    assert!(!rig.service.drain(LIMIT).late);
    assert_eq!(rig.stdout(), "fourbegun, not ended", "once only");
}

/// A message that grows too long comes out in pieces, in order and complete.
fn parts_beyond_the_bound<T: Layout>() {
    let mut plan = Plan::new(2);
    plan.options.max_message = 30;
    plan.options.max_in_flight = 500;
    let rig = plan.start::<T>();
    let client = rig.client(0);
    let mut expected = String::new();
    for n in 0..10 {
        let text = format!("{n}{n}{n}{n}{n}{n}{n}{n}");
        say(&client, Opcode::PRINT_PART, &part(1, 0, &text)).unwrap();
        expected.push_str(&text);
    }
    assert!(expected.starts_with(&rig.stdout()) && !rig.stdout().is_empty());
    say(&client, Opcode::PRINT_PART, &part(1, PrintPart::LAST, "\n")).unwrap();
    assert_eq!(rig.stdout(), expected + "\n");
    // Messages without number or end: they take no more than they may.
    for message in 0..100 {
        let count = say(&client, Opcode::PRINT_PART, &part(message, 0, ""));
        assert_eq!(count, Ok(0));
    }
}

fn lanes_in_order<T: Layout>() {
    let rig = Plan::new(2).start::<T>();
    rig.team(4, |lane, client| {
        let text = format!("lane {lane}\n");
        let mut port = client.open(Opcode::WRITE_TO_STDOUT).unwrap().dynamic();
        port.send_n(|_| text.as_bytes()).unwrap();
        port.recv(8, |_, packet| assert_eq!(packet.get::<u64>(), 7))
            .unwrap();
    });
    assert_eq!(rig.stdout(), "lane 0\nlane 1\nlane 2\nlane 3\n");
}

/// Each lane its own message, of different lengths and streams.
fn parts_of_lanes<T: Layout>() {
    let rig = Plan::new(2).start::<T>();
    rig.team(4, |lane, client| {
        for n in 0..2 {
            let flags = if lane == 3 { PrintPart::STDERR } else { 0 };
            let last = if n == 1 { PrintPart::LAST } else { 0 };
            let text = format!("{lane}:{};", "y".repeat(lane as usize * 40));
            let message = part(100 + lane, flags | last, &text);
            let mut port = client.open(Opcode::PRINT_PART).unwrap().dynamic();
            port.send_n(|_| &message).unwrap();
            port.recv(8, |_, p| assert_eq!(p.get::<u64>(), text.len() as u64))
                .unwrap();
        }
    });
    let text = |lane: usize| format!("{lane}:{};", "y".repeat(lane * 40)).repeat(2);
    assert_eq!(rig.stdout(), text(0) + &text(1) + &text(2));
    assert_eq!(rig.output.text(Stream::Stderr), text(3));
}

fn broken_pipe<T: Layout>() {
    let mut plan = Plan::new(2);
    plan.output = Some(Arc::new(Broken));
    let rig = plan.start::<T>();
    let client = rig.client(0);
    for _ in 0..3 {
        let said = say(&client, Opcode::WRITE_TO_STDOUT, b"text");
        assert_eq!(said, Err(Error::Status(Status::SERVER_ERROR)));
    }
    assert_eq!(say(&client, Opcode::WRITE_TO_STDOUT, b""), Ok(0));
    let reports = rig.reports();
    assert_eq!(reports.len(), 1, "{reports:?}");
    assert!(reports[0].contains("write_to_stdout") && reports[0].contains("broken pipe"));
}

fn heads_that_are_none<T: Layout>() {
    let rig = Plan::new(2).start::<T>();
    let client = rig.client(0);
    for length in 0..8 {
        let said = say(&client, Opcode::PRINT_PART, &vec![0xFF; length]);
        assert_eq!(said, Err(Error::Status(Status::INVALID)));
    }
    assert_eq!(
        say(&client, Opcode::PRINT_PART, &part(0, PrintPart::LAST, "")),
        Ok(0)
    );
    assert_eq!(rig.stdout(), "");
}

/// Output that waits for its reader.
#[derive(Default)]
struct Slow {
    reader: Arc<Mutex<()>>,
    text: Mutex<Vec<u8>>,
}

impl Output for Slow {
    fn stdout(&self, bytes: &[u8]) -> io::Result<()> {
        let _reader = self.reader.lock().unwrap();
        self.text.lock().unwrap().extend_from_slice(bytes);
        Ok(())
    }

    fn stderr(&self, bytes: &[u8]) -> io::Result<()> {
        self.stdout(bytes)
    }

    fn may_wait(&self, _: Stream, _: usize) -> bool {
        true
    }
}

/// Where nobody reads, printing waits and all else goes on.
fn slow_reader<T: Layout>() {
    let mut plan = Plan::new(8);
    plan.options.pollers = 1;
    let slow = Arc::new(Slow::default());
    plan.output = Some(slow.clone());
    let rig = plan.start::<T>();
    let reader = slow.reader.lock().unwrap();
    thread::scope(|scope| {
        for hint in 0..6 {
            let client = rig.client(hint);
            scope
                .spawn(move || assert_eq!(say(&client, Opcode::WRITE_TO_STDOUT, b"text\n"), Ok(5)));
        }
        eventually("the wait of all", || {
            rig.service.open_exchanges().len() == 6
        });
        for n in 0..50 {
            assert_eq!(rig.client(6).call::<Increment>(&n), Ok(n + 1));
        }
        assert!(slow.text.lock().unwrap().is_empty());
        drop(reader);
    });
    assert_eq!(*slow.text.lock().unwrap(), b"text\n".repeat(6));
}

/// Where nobody reads, what was joined counts as in flight until it is written.
fn what_waits_counts<T: Layout>() {
    let mut plan = Plan::new(8);
    plan.options.pollers = 1;
    plan.options.max_message = 1000;
    plan.options.max_in_flight = 2500;
    let slow = Arc::new(Slow::default());
    plan.output = Some(slow.clone());
    let rig = plan.start::<T>();
    let reader = slow.reader.lock().unwrap();
    let mut back = Whole::default();
    thread::scope(|scope| {
        for message in 0..2 {
            let client = rig.client(message);
            for _ in 0..9 {
                let text = part(message, 0, &"x".repeat(100));
                assert_eq!(say(&client, Opcode::PRINT_PART, &text), Ok(100));
            }
            let last = part(message, PrintPart::LAST, "\n");
            scope.spawn(move || assert_eq!(say(&client, Opcode::PRINT_PART, &last), Ok(1)));
            eventually("the wait", || {
                rig.service.open_exchanges().len() == message as usize + 1
            });
        }
        let told = rig.client(2).exchange::<Echo>(&[1; 700], &mut back);
        drop(reader);
        assert_eq!(told, Err(Error::Status(Status::TOO_LONG)));
    });
    let line = "x".repeat(900) + "\n";
    assert_eq!(*slow.text.lock().unwrap(), line.repeat(2).as_bytes());
    let told = rig.client(2).exchange::<Echo>(&[1; 700], &mut back);
    assert_eq!((told, back.0.len()), (Ok(()), 700));
}

/// Keeps each text that is written.
#[derive(Default)]
struct Written(Mutex<Vec<String>>);

impl Output for Written {
    fn stdout(&self, bytes: &[u8]) -> io::Result<()> {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        self.0.lock().unwrap().push(text);
        Ok(())
    }

    fn stderr(&self, bytes: &[u8]) -> io::Result<()> {
        self.stdout(bytes)
    }
}

/// What lanes write together comes out in pieces if there is no room for it, in order and complete.
fn no_room_to_join<T: Layout>() {
    let text = |lane: u32| format!("{lane}{}\n", "y".repeat(98));
    for (room, pieces) in [(1000, 1), (650, 2), (460, 4)] {
        for (opcode, flags) in [
            (Opcode::WRITE_TO_STDOUT, None),
            (Opcode::WRITE_TO_STDERR, None),
            (Opcode::PRINT_PART, Some(PrintPart::LAST)),
            (Opcode::PANIC, None),
        ] {
            let mut plan = Plan::new(2);
            plan.options.max_in_flight = room;
            let written = Arc::new(Written::default());
            plan.output = Some(written.clone());
            let rig = plan.start::<T>();
            rig.team(4, |lane, client| {
                let text = text(lane);
                let message = flags.map_or(text.clone().into(), |flags| part(lane, flags, &text));
                let mut port = client.open(opcode).unwrap().dynamic();
                port.send_n(|_| &message).unwrap();
                let told = port.recv(8, |_, packet| {
                    assert!(opcode == Opcode::PANIC || packet.get::<u64>() == 100);
                });
                told.unwrap();
            });
            let _ = rig.service.drain(LIMIT);
            let written = written.0.lock().unwrap();
            let expected = [0, 1, 2, 3].map(text).concat();
            assert_eq!(written.concat(), expected, "{opcode:?}");
            assert_eq!(written.len(), pieces, "{opcode:?}, room for {room} bytes");
        }
    }
}

/// Where nobody reads standard error, reports wait there and all else goes on; the end does not wait
/// for them longer than it may.
fn reports_wait_alone<T: Layout>() {
    let notes = Opcode::user(1);
    let mut plan = Plan::new(8);
    plan.options.pollers = 1;
    plan.table
        .conversation(notes, "notes", |mut port| async move {
            let messages = port.recv_n().await?;
            port.note(Failure::Handler("the disk is full".to_owned()));
            port.send(|lane| messages.of(lane).len() as u64).await?;
            Ok(Flow::Continue)
        });
    let slow = Arc::new(Slow::default());
    plan.output = Some(slow.clone());
    plan.reader = slow.reader.clone();
    let rig = plan.start::<T>();
    let reader = slow.reader.lock().unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        // Consumed in here: a panic lets the others go.
        let reader = reader;
        let client = rig.client(0);
        scope.spawn(move || {
            let told = say(&client, Opcode::WRITE_TO_STDERR, b"text\n");
            let late = Err(Error::Status(Status::CANCELLED));
            assert!(told == late || !T::HAS_STATUS, "{told:?}");
        });
        eventually("the text", || rig.service.open_exchanges().len() == 1);
        let (client, other, done) = (rig.client(1), rig.client(2), &done);
        scope.spawn(move || {
            for n in 0..50 {
                assert_eq!(say(&client, notes, b"note"), Ok(4));
                if T::HAS_STATUS {
                    let told = say(&client, Opcode::user(100 + n % 5), b"");
                    assert_eq!(told, Err(Error::Status(Status::UNHANDLED)));
                }
                let n = u64::from(n);
                assert_eq!(other.call::<Increment>(&n), Ok(n + 1));
            }
            done.store(true, Relaxed);
        });
        eventually("the calls", || done.load(Relaxed));
        assert!(!rig.service.reported(Duration::ZERO));
        assert_eq!(*rig.reports.lock().unwrap(), [""; 0]);
        assert!(rig.service.drain(Duration::from_millis(50)).late);
        rig.service.stop_device();
        drop(reader);
    });
    let reports = rig.reports();
    assert_eq!(*slow.text.lock().unwrap(), b"text\n", "it came before");
    let expected = if T::HAS_STATUS { 6 } else { 1 };
    assert_eq!(reports.len(), expected, "each once: {reports:?}");
    assert!(reports[0].contains("the disk is full"), "{reports:?}");
}
