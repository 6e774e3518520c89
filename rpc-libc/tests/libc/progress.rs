//! Long work on one port, and all others.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Instant;
use std::{fs, io, thread};

use rpc_port::procedure::Increment;
use rpc_server::{Captured, Output, Stream};
use rpc_types::Opcode;

use crate::rig::{Calls, Layout, Plan, SECOND, eventually, on_all_layouts};

on_all_layouts!(
    a_long_stream,
    pipes_that_wait,
    text_beside_pipes_that_wait,
    two_ports_on_one_file,
);

/// A stream on one port, thousands of packets long, and the others make calls all the while.
fn a_long_stream<T: Layout>() {
    const LENGTH: usize = 150_000;
    let rig = Plan::new(8).start::<T>();
    let path = rig.path("file");
    let bytes: Vec<u8> = (0..LENGTH).map(|i| (i >> 6) as u8).collect();
    let over = AtomicBool::new(false);
    let calls = thread::scope(|scope| {
        let others: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let client = rig.client();
                    let mut n = 0;
                    while !over.load(SeqCst) {
                        assert_eq!(client.0.call::<Increment>(&n), Ok(n + 1));
                        n += 1;
                    }
                    n
                })
            })
            .collect();
        let client = rig.client();
        let file = client.fopen(&path, "w");
        assert_eq!(client.fwrite(file, &bytes), LENGTH as u64);
        assert_eq!(client.fclose(file), 0);
        over.store(true, SeqCst);
        others.into_iter().map(|other| other.join().unwrap()).min()
    });
    assert!(calls > Some(20), "{calls:?}");
    assert!(fs::read(&path).unwrap() == bytes);
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
    const CALLS: usize = 80;
    let output = Arc::new(Captured::default());
    let mut plan = Plan::new(CALLS as u32 + 4);
    plan.output = Some(Arc::new(Left(output.clone())));
    let rig = plan.start::<T>();
    let pipe = rig.path("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    thread::scope(|scope| {
        for _ in 0..CALLS {
            scope.spawn(|| assert_ne!(rig.client().fopen(&pipe, "r"), 0));
        }
        eventually("the wait of all", || {
            rig.service.open_exchanges().len() == CALLS
        });
        let client = rig.client();
        let texts = scope.spawn(move || {
            assert_eq!(client.say(Opcode::WRITE_TO_STDOUT, b"out"), 3);
            assert_eq!(client.say(Opcode::WRITE_TO_STDERR, b"err"), 3);
        });
        let limit = Instant::now() + 20 * SECOND;
        while !texts.is_finished() && Instant::now() < limit {
            thread::sleep(SECOND / 1000);
        }
        let went = texts.is_finished();
        // For all of them, the later ones too.
        let writer = fs::OpenOptions::new().read(true).write(true).open(&pipe);
        texts.join().unwrap();
        eventually("the end of all", || rig.service.open_exchanges().is_empty());
        drop(writer);
        assert!(went, "the text has waited with the pipes");
    });
    assert_eq!(output.text(Stream::Stdout), "out");
    assert_eq!(output.text(Stream::Stderr), "err");
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
