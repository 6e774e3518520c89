//! What the device prints.

mod common;

use std::io;
use std::sync::{Arc, Mutex};
use std::thread;

use common::{Broken, LIMIT, Layout, Plan, eventually, on_both_layouts, say};
use rpc_port::Error;
use rpc_port::procedure::Increment;
use rpc_server::{Output, Stream};
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
);

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
    reader: Mutex<()>,
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
