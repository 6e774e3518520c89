//! Long work on one port, and all others.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Instant;
use std::{fs, io, thread};

use rpc_port::procedure::Increment;
use rpc_server::{Captured, Output, Stream};
use rpc_types::Opcode;

use crate::rig::{
    Calls, EOF, LIMIT, Layout, Lone, Plan, Rig, SECOND, Steps, eventually, on_all_layouts,
};

on_all_layouts!(
    a_long_stream,
    pipes_that_wait,
    text_beside_pipes_that_wait,
    devices_beside_pipes_that_wait,
    lanes_at_both_ends_of_a_pipe,
    a_flush_of_all_beside_a_close,
    two_ports_on_one_file,
);

/// Streams on one port, thousands of packets long: the others make calls within one.
fn a_long_stream<T: Layout>() {
    const LENGTH: usize = 150_000;
    /// Streams at most: whoever makes no call within one may not have had a processor.
    const STREAMS: usize = 50;
    let rig = Plan::new(8).start::<T>();
    let path = rig.path("file");
    let bytes: Vec<u8> = (0..LENGTH).map(|i| (i >> 6) as u8).collect();
    let over = AtomicBool::new(false);
    let counts = [AtomicU64::new(0), AtomicU64::new(0)];
    let mut streams = 0;
    // Asserted when the others have ended, who would go on for ever.
    let (within, right) = thread::scope(|scope| {
        for count in &counts {
            let (rig, over) = (&rig, &over);
            scope.spawn(move || {
                let client = rig.client();
                while !over.load(SeqCst) {
                    let n = count.load(SeqCst);
                    assert_eq!(client.0.call::<Increment>(&n), Ok(n + 1));
                    count.store(n + 1, SeqCst);
                }
            });
        }
        let client = rig.client();
        let file = client.fopen(&path, "w");
        let (mut within, mut right) = ([false; 2], true);
        while right && within != [true; 2] && streams < STREAMS {
            let before = counts.each_ref().map(|count| count.load(SeqCst));
            right = client.fwrite(file, &bytes) == LENGTH as u64;
            streams += 1;
            for (index, count) in counts.iter().enumerate() {
                // Of two that ended one has begun within it, too.
                within[index] |= count.load(SeqCst) >= before[index] + 2;
            }
        }
        right &= client.fclose(file) == 0;
        over.store(true, SeqCst);
        (within, right)
    });
    assert!(right);
    assert_eq!(within, [true; 2], "{streams} streams");
    assert!(fs::read(&path).unwrap() == bytes.repeat(streams));
}

/// Pipes whose other ends are not there, on more ports than there are threads for files.
fn pipes_that_wait<T: Layout>() {
    let rig = Plan::new(24).start::<T>();
    let names: Vec<_> = (0..10).map(|n| rig.path(&format!("pipe {n}"))).collect();
    for name in &names {
        let made = std::process::Command::new("mkfifo").arg(name).status();
        assert!(made.unwrap().success());
    }
    thread::scope(|scope| {
        for name in &names {
            let rig = &rig;
            scope.spawn(move || {
                let client = rig.client();
                let file = client.fopen(name, "r");
                assert_eq!(client.fgets(file, 100).unwrap(), name.as_bytes());
                assert_eq!(client.fclose(file), 0);
            });
        }
        eventually("the wait of all", || {
            rig.service.open_exchanges().len() == names.len()
        });
        rig.is_whole();
        let client = rig.client();
        let file = client.fopen(&rig.path("file"), "w");
        assert_eq!(client.fwrite(file, &vec![1; 100_000]), 100_000);
        assert_eq!(client.fclose(file), 0);
        // The device itself is at the other end of some.
        for name in &names[..5] {
            let file = client.fopen(name, "w");
            assert_eq!(client.fwrite(file, name.as_bytes()), name.len() as u64);
            assert_eq!(client.fclose(file), 0);
        }
        for name in &names[5..] {
            fs::write(name, name).unwrap();
        }
    });
    rig.is_whole();
}

/// More calls than any number of threads that wait.
const CALLS: usize = 80;

/// So many opens of `pipe`, each of which waits for the other end.
fn all_wait<'c, T: Layout>(
    rig: &Rig<T>,
    client: &'c Lone<T>,
    pipe: &str,
) -> Vec<impl Steps + use<'c, T>> {
    let waiting = (0..CALLS).map(|_| client.opening(pipe, "r")).collect();
    eventually("the wait of all", || {
        rig.service.open_exchanges().len() == CALLS
    });
    waiting
}

fn all_opened(waiting: Vec<impl Steps>) {
    for mut port in waiting {
        assert_ne!(port.get(), 0);
    }
}

/// Text that is left to a thread that may wait.
struct Left(Arc<Captured>);

impl Output for Left {
    fn stdout(&self, bytes: &[u8]) -> io::Result<()> {
        self.0.stdout(bytes)
    }

    fn stderr(&self, bytes: &[u8]) -> io::Result<()> {
        self.0.stderr(bytes)
    }

    fn may_wait(&self, _: Stream, _: usize) -> bool {
        true
    }
}

/// More calls wait for pipes than any number of threads, and text goes out all the same.
fn text_beside_pipes_that_wait<T: Layout>() {
    let output = Arc::new(Captured::default());
    let mut plan = Plan::new(CALLS as u32 + 4);
    plan.output = Some(Arc::new(Left(output.clone())));
    let rig = plan.start::<T>();
    let pipe = fifo(&rig);
    thread::scope(|scope| {
        let client = rig.client();
        let waiting = all_wait(&rig, &client, &pipe);
        let client = rig.client();
        let texts = scope.spawn(move || {
            assert_eq!(client.say(Opcode::WRITE_TO_STDOUT, b"out"), 3);
            assert_eq!(client.say(Opcode::WRITE_TO_STDERR, b"err"), 3);
        });
        let went = ends(&texts);
        // For all of them, the later ones too.
        let writer = both_ends(&pipe);
        texts.join().unwrap();
        all_opened(waiting);
        eventually("the end of all", || rig.service.open_exchanges().is_empty());
        drop(writer);
        assert!(went, "the text has waited with the pipes");
    });
    assert_eq!(output.text(Stream::Stdout), "out");
    assert_eq!(output.text(Stream::Stderr), "err");
}

fn fifo<T: Layout>(rig: &Rig<T>) -> String {
    let pipe = rig.path("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    pipe
}

/// Both ends of a pipe: whoever waits for the other one gets it.
fn both_ends(pipe: &str) -> fs::File {
    let mut options = fs::OpenOptions::new();
    options.read(true).write(true).open(pipe).unwrap()
}

/// Whether `thread` ends in time.
fn ends<R>(thread: &thread::ScopedJoinHandle<'_, R>) -> bool {
    let limit = Instant::now() + LIMIT;
    while !thread.is_finished() && Instant::now() < limit {
        thread::sleep(SECOND / 1000);
    }
    thread.is_finished()
}

/// Behind some devices there is nobody: they take no thread of those that wait.
fn devices_beside_pipes_that_wait<T: Layout>() {
    let rig = Plan::new(CALLS as u32 + 4).start::<T>();
    let pipe = fifo(&rig);
    thread::scope(|scope| {
        let client = rig.client();
        let waiting = all_wait(&rig, &client, &pipe);
        let devices = scope.spawn(|| {
            let client = rig.client();
            let (null, zero) = (
                client.fopen("/dev/null", "w"),
                client.fopen("/dev/zero", "r"),
            );
            let written = client.fwrite(null, &vec![1; 100_000]);
            let read = client.fread(zero, 100_000);
            (written, read, client.fclose(null), client.fclose(zero))
        });
        let went = ends(&devices);
        // For all of them, the later ones too.
        let writer = both_ends(&pipe);
        let done = devices.join().unwrap();
        all_opened(waiting);
        eventually("the end of all", || rig.service.open_exchanges().is_empty());
        drop(writer);
        assert!(went, "the devices have waited with the pipes");
        assert!(done == (100_000, vec![0; 100_000], 0, 0));
    });
}

/// Lanes of one call do not wait for one another, unless that is what pipes are for.
fn lanes_at_both_ends_of_a_pipe<T: Layout>() {
    let rig = Plan::new(8).start::<T>();
    let pipe = fifo(&rig);
    thread::scope(|scope| {
        let lanes = scope.spawn(|| {
            rig.team(|lane, client| {
                let file = client.fopen(&pipe, if lane == 0 { "r" } else { "w" });
                assert_ne!(file, 0);
            });
        });
        let went = ends(&lanes);
        let other = both_ends(&pipe);
        lanes.join().unwrap();
        drop(other);
        assert!(went, "the lane that reads has waited for those that write");
    });
}

/// `fflush(NULL)` waits for a stream in use; what another lane closes meanwhile is no failure.
fn a_flush_of_all_beside_a_close<T: Layout>() {
    let rig = Plan::new(8).start::<T>();
    let pipe = fifo(&rig);
    let mut other = both_ends(&pipe);
    let client = rig.client();
    let read = client.fopen(&pipe, "r");
    let files = [1, 2].map(|n| client.fopen(&rig.path(&format!("file {n}")), "w"));
    assert!(files.iter().all(|file| client.fwrite(*file, b"text") == 4));
    thread::scope(|scope| {
        let rig = &rig;
        let reader = scope.spawn(move || rig.client().fread(read, 1));
        eventually("the read", || rig.service.open_exchanges().len() == 1);
        thread::sleep(SECOND / 20);
        let flush = scope.spawn(move || rig.client().fflush(0));
        eventually("the flush", || rig.service.open_exchanges().len() == 2);
        thread::sleep(SECOND / 20);
        let closed = client.fclose(files[0]);
        other.write_all(b"a").unwrap();
        assert_eq!(reader.join().unwrap(), b"a");
        assert_eq!((closed, flush.join().unwrap()), (0, 0));
    });
    for n in [1, 2] {
        let text = fs::read(rig.path(&format!("file {n}"))).unwrap();
        assert_eq!(text, b"text");
    }
    // Of one stream alone it is one.
    assert_eq!(client.fflush(files[0]), EOF);
}

/// Each call's text stays together, and none is lost.
fn two_ports_on_one_file<T: Layout>() {
    let rig = Plan::new(8).start::<T>();
    let path = rig.path("file");
    let file = rig.client().fopen(&path, "w");
    thread::scope(|scope| {
        for id in 0..4_usize {
            let rig = &rig;
            scope.spawn(move || {
                let client = rig.client();
                for n in 0..50 {
                    // Now and then longer than the buffer.
                    let line = format!("{id}").repeat(1 + n * id * 150) + "\n";
                    assert_eq!(client.fwrite(file, line.as_bytes()), line.len() as u64);
                    if n % 10 == 0 {
                        assert_eq!(client.fflush(file), 0);
                    }
                }
            });
        }
    });
    assert_eq!(rig.client().fclose(file), 0);
    let text = fs::read_to_string(&path).unwrap();
    let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
    let mut expected: Vec<_> = (0..4)
        .flat_map(|id| (0..50).map(move |n| format!("{id}").repeat(1 + n * id * 150)))
        .collect();
    lines.sort();
    expected.sort();
    assert!(lines == expected);
}
