//! Standard input, output and error.

use std::fs::{self, File};
use std::io::{Seek, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::thread;

use rpc_server::{Output, Stream};
use rpc_types::Opcode;

use crate::rig::{
    Calls, EOF, LIMIT, Layout, Plan, SECOND, STDERR, STDIN, STDOUT, Steps, eventually,
    on_all_layouts,
};

on_all_layouts!(
    text_of_both,
    lanes_in_order,
    what_is_no_file,
    a_reader_that_has_gone,
    texts_without_room,
    texts_that_take_long_to_join,
    input,
    input_is_left_to_others,
    input_bit_by_bit,
    input_without_room,
    input_that_is_waited_for,
);

fn text_of_both<T: Layout>() {
    let rig = Plan::new(2).start::<T>();
    let client = rig.client();
    for length in [0, 1, 55, 56, 57, 64, 5000] {
        let text = vec![b'x'; length];
        assert_eq!(client.say(Opcode::WRITE_TO_STDOUT, &text), length as u64);
        let with_newline = client.say(Opcode::WRITE_TO_STDOUT_NEWLINE, &text);
        assert_eq!(with_newline, length as u64 + 1);
        assert_eq!(client.say(Opcode::WRITE_TO_STDERR, &text), length as u64);
    }
    let sum = 1 + 55 + 56 + 57 + 64 + 5000;
    assert_eq!(rig.text(Stream::Stdout).len(), 2 * sum + 7);
    assert!(rig.text(Stream::Stdout).starts_with("\nxx\nxxx"));
    assert_eq!(rig.text(Stream::Stderr).len(), sum);
}

fn lanes_in_order<T: Layout>() {
    let rig = Plan::new(2).start::<T>();
    rig.team(|lane, client| {
        let text = format!("lane {lane}").repeat(lane as usize);
        let written = client.say(Opcode::WRITE_TO_STDOUT_NEWLINE, text.as_bytes());
        assert_eq!(written, text.len() as u64 + 1);
    });
    let text = "\nlane 1\nlane 2lane 2\nlane 3lane 3lane 3\n";
    assert_eq!(rig.text(Stream::Stdout), text);
}

fn what_is_no_file<T: Layout>() {
    let rig = Plan::new(2).start::<T>();
    let client = rig.client();
    // What stands above a tag is no matter.
    for stream in [STDOUT, STDERR, STDOUT | 0xFFFF_0000, u64::MAX] {
        assert_eq!(client.flags(stream), (false, false));
        assert_eq!(client.fflush(stream), 0);
        assert_eq!(client.fseek(stream, 0, 0), EOF);
        assert_eq!(client.ftell(stream), EOF);
        assert_eq!(client.ungetc(1, stream), EOF);
        assert_eq!(client.fread(stream, 0), b"");
        assert_eq!(client.flags(stream), (false, false));
        assert_eq!(client.fread(stream, 1), b"");
        assert_eq!(client.flags(stream), (false, true), "it cannot be read");
        client.word(Opcode::CLEARERR, stream);
        assert_eq!(client.fgets(stream, 5), None);
        client.word(Opcode::CLEARERR, stream);
        assert_eq!(client.flags(stream), (false, false));
    }
}

struct Gone;

impl Output for Gone {
    fn stdout(&self, _: &[u8]) -> std::io::Result<()> {
        Err(std::io::ErrorKind::BrokenPipe.into())
    }

    fn stderr(&self, _: &[u8]) -> std::io::Result<()> {
        Ok(())
    }
}

fn a_reader_that_has_gone<T: Layout>() {
    let mut plan = Plan::new(2);
    plan.output = Some(Arc::new(Gone));
    let rig = plan.start::<T>();
    let client = rig.client();
    for opcode in [Opcode::WRITE_TO_STDOUT, Opcode::WRITE_TO_STDOUT_NEWLINE] {
        for _ in 0..3 {
            assert_eq!(client.say(opcode, b"text"), 0);
        }
    }
    assert_eq!(client.flags(STDOUT), (false, true));
    assert_eq!(client.say(Opcode::WRITE_TO_STDERR, b"text"), 4);
    assert_eq!(client.flags(STDERR), (false, false));
    // The user is told, once for each opcode, and the run goes on.
    eventually("the report", || rig.reports().len() == 2);
    assert!(rig.reports()[0].contains("broken pipe"));
    rig.is_whole();
}

/// What lanes write comes together in memory that is limited.
fn texts_without_room<T: Layout>() {
    let mut plan = Plan::new(2);
    plan.options.max_in_flight = 1000;
    let rig = plan.start::<T>();
    for opcode in [Opcode::WRITE_TO_STDOUT, Opcode::WRITE_TO_STDOUT_NEWLINE] {
        rig.team(|_, client| assert_eq!(client.say(opcode, &[b'x'; 200]), 0));
        assert_eq!(rig.client().flags(STDOUT), (false, true));
        rig.client().word(Opcode::CLEARERR, STDOUT);
    }
    assert_eq!(rig.text(Stream::Stdout), "");
    // The user is told.
    eventually("the report", || rig.reports().len() == 2);
    // One text needs no second place, and two that fit are written.
    let client = rig.client();
    assert_eq!(client.say(Opcode::WRITE_TO_STDOUT, &[b'x'; 1000]), 1000);
    rig.team(|_, client| assert_eq!(client.say(Opcode::WRITE_TO_STDOUT, &[b'x'; 100]), 100));
    assert_eq!(rig.text(Stream::Stdout).len(), 1400);
    assert_eq!(client.flags(STDOUT), (false, false));
}

/// Threads of the pool do not go on while it is flushed.
#[derive(Default)]
struct Held {
    flushes: AtomicU32,
    free: AtomicBool,
    early: AtomicBool,
    text: AtomicU32,
}

impl Output for Held {
    fn stdout(&self, bytes: &[u8]) -> std::io::Result<()> {
        let early = bytes.len() > 1000 && !self.free.load(SeqCst);
        self.early.fetch_or(early, SeqCst);
        self.text.fetch_add(bytes.len() as u32, SeqCst);
        Ok(())
    }

    fn stderr(&self, bytes: &[u8]) -> std::io::Result<()> {
        self.stdout(bytes)
    }

    fn flush(&self) {
        self.flushes.fetch_add(1, SeqCst);
        eventually("the end of the flush", || self.free.load(SeqCst));
    }
}

/// Long texts of several lanes come together on a thread of the pool, short ones at once.
fn texts_that_take_long_to_join<T: Layout>() {
    /// As many threads as the pool has.
    const THREADS: u32 = 4;
    let output = Arc::new(Held::default());
    let mut plan = Plan::new(8);
    plan.output = Some(output.clone());
    let rig = plan.start::<T>();
    let say = |length: usize| {
        rig.team(|_, client| {
            let told = client.say(Opcode::WRITE_TO_STDOUT, &vec![b'x'; length]);
            assert_eq!(told, length as u64);
        });
    };
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| assert_eq!(rig.client().fflush(STDOUT), 0));
        }
        eventually("the flushes", || output.flushes.load(SeqCst) == THREADS);
        say(100);
        assert_eq!(output.text.load(SeqCst), 400);
        scope.spawn(|| say(10_000));
        // Time enough for a poller that does it at once.
        thread::sleep(SECOND / 5);
        rig.is_whole();
        output.free.store(true, SeqCst);
    });
    assert!(!output.early.load(SeqCst));
    assert_eq!(output.text.load(SeqCst), 40_400);
}

/// What was read ahead of a file is there for who reads it next.
fn input_is_left_to_others<T: Layout>() {
    let path =
        std::env::temp_dir().join(format!("gpurpc-stdin-{}-{:?}", std::process::id(), T::KIND));
    fs::write(&path, "first\nsecond\nthird\n").unwrap();
    let mut file = File::open(&path).unwrap();
    fs::remove_file(&path).unwrap();
    let mut plan = Plan::new(2);
    plan.stdin = Some(file.try_clone().unwrap());
    let rig = plan.start::<T>();
    assert_eq!(rig.client().fgets(STDIN, 100).unwrap(), b"first\n");
    assert_eq!(file.stream_position().unwrap(), 19);
    assert!(!rig.service.drain(LIMIT).late);
    assert_eq!(file.stream_position().unwrap(), 6);
}

fn input<T: Layout>() {
    let mut rig = Plan::new(2).start::<T>();
    let client = rig.client();
    let mut stdin = rig.stdin.take().unwrap();
    stdin.write_all(b"first\nsecond\nthird").unwrap();
    assert_eq!(client.fgets(STDIN, 100).unwrap(), b"first\n");
    assert_eq!(client.ungetc(i32::from(b'>'), STDIN), u64::from(b'>'));
    assert_eq!(client.fread(STDIN | 0xFF00, 7), b">second");
    assert_eq!(client.fseek(STDIN, 0, 0), EOF, "it is a pipe");
    assert_eq!(client.ftell(STDIN), EOF);
    assert_eq!(client.fflush(STDIN), 0);
    assert_eq!(client.fgets(STDIN, 100).unwrap(), b"\n");
    drop(stdin);
    assert_eq!(client.fread(STDIN, 1 << 63), b"third");
    assert_eq!(client.flags(STDIN), (true, false));
    assert_eq!(client.fgets(STDIN, 9), None);
}

/// A read of much that gets little at a time takes no more memory than it fills.
fn input_bit_by_bit<T: Layout>() {
    const SIZE: u64 = 64 << 10;
    let mut plan = Plan::new(2);
    plan.options.max_in_flight = 128 << 10;
    let mut rig = plan.start::<T>();
    let mut stdin = rig.stdin.take().unwrap();
    let rig = &rig;
    thread::scope(|scope| {
        scope.spawn(move || {
            for _ in 0..20 {
                stdin.write_all(&[7; 256]).unwrap();
                until_taken(&stdin);
            }
            // Fails where the reader has given up.
            let _ = stdin.write_all(&vec![7; SIZE as usize - 20 * 256]);
            eventually("the end of the call", || {
                rig.service.open_exchanges().is_empty()
            });
        });
        let client = rig.client();
        assert_eq!(client.fread(STDIN, SIZE).len() as u64, SIZE);
        assert_eq!(client.flags(STDIN), (false, false));
    });
}

/// Waits until what was written to a pipe was read.
fn until_taken(pipe: &std::io::PipeWriter) {
    eventually("the read", || {
        rustix::io::ioctl_fionread(pipe).unwrap() == 0
    });
}

/// Where another call has all the memory, a read fails as reads do in C.
fn input_without_room<T: Layout>() {
    let mut plan = Plan::new(4);
    plan.options.max_in_flight = 1000;
    let mut rig = plan.start::<T>();
    let mut stdin = rig.stdin.take().unwrap();
    let path = rig.path("file");
    fs::write(&path, [b'x'; 3000]).unwrap();
    let client = rig.client();
    let file = client.fopen(&path, "r");
    thread::scope(|scope| {
        let reader = scope.spawn(|| rig.client().fread(STDIN, 1 << 20).len());
        stdin.write_all(&[7; 100]).unwrap();
        until_taken(&stdin);
        let lines: Vec<_> = (0..3).map(|_| client.fgets(file, 2000)).collect();
        let (flags, read) = (client.flags(file), client.fread(file, 2000));
        client.word(Opcode::CLEARERR, file);
        let again = (client.fread(file, 2000), client.flags(file));
        let none = client.fgets(file, 1);
        drop(stdin);
        assert_eq!(reader.join().unwrap(), 100);
        assert_eq!(lines, [const { None }; 3]);
        assert_eq!((flags, read), ((false, true), vec![]));
        assert_eq!(again, (vec![], (false, true)));
        assert_eq!(none, Some(vec![]), "there is room for nothing");
    });
    // What does fit is read, and nothing was lost.
    client.word(Opcode::CLEARERR, file);
    assert_eq!(client.fgets(file, 2000), Some(vec![b'x'; 1000]));
    assert_eq!(client.flags(file), (false, true));
    client.word(Opcode::CLEARERR, file);
    assert_eq!(client.fread(file, 2000).len(), 1000);
    assert_eq!(client.flags(file), (false, true));
    client.word(Opcode::CLEARERR, file);
    assert_eq!(client.fgets(file, 1001), Some(vec![b'x'; 1000]));
    assert_eq!(client.fgets(file, 1001), None);
    assert_eq!(client.flags(file), (true, false));
}

/// Twenty ports read it at once: none of them holds up others, or files, and each gets its line.
fn input_that_is_waited_for<T: Layout>() {
    let mut rig = Plan::new(24).start::<T>();
    let mut stdin = rig.stdin.take().unwrap();
    let rig = &rig;
    thread::scope(|scope| {
        let readers: Vec<_> = (0..20)
            .map(|_| scope.spawn(|| rig.client().fgets(STDIN, 100).unwrap()))
            .collect();
        eventually("the wait of all", || {
            rig.service.open_exchanges().len() == 20
        });
        rig.is_whole();
        let client = rig.client();
        for n in 0..10 {
            let file = client.fopen(&rig.path("file"), "w+");
            assert_eq!(client.fwrite(file, &vec![1; n * 500]), n as u64 * 500);
            assert_eq!(client.fseek(file, 0, 0), 0);
            assert_eq!(client.fread(file, 1 << 50).len(), n * 500);
            assert_eq!(client.fclose(file), 0);
        }
        for n in 0..20 {
            stdin
                .write_all(format!("line {n:02}\n").as_bytes())
                .unwrap();
        }
        let mut lines: Vec<_> = readers.into_iter().map(|r| r.join().unwrap()).collect();
        lines.sort();
        let expected: Vec<_> = (0..20)
            .map(|n| format!("line {n:02}\n").into_bytes())
            .collect();
        assert_eq!(lines, expected);
    });
    // At the end of the run nobody waits for who reads.
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let client = rig.client();
            let mut port = client.0.open(Opcode::READ_FROM_STREAM).unwrap().dynamic();
            port.put([1, STDIN, 0]);
            // Here is no answer to wait for.
            std::mem::forget(port);
        });
        reader.join().unwrap();
        eventually("the wait", || rig.service.open_exchanges().len() == 1);
        let start = std::time::Instant::now();
        let drained = rig.service.drain(LIMIT);
        assert_eq!((drained.cancelled, drained.late), (1, false));
        assert!(start.elapsed() < LIMIT / 2);
    });
}
