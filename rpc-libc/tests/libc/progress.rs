//! Long work on one port, and all others.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;

use rpc_port::procedure::Increment;

use crate::rig::{Calls, Layout, Plan, eventually, on_all_layouts};

on_all_layouts!(a_long_stream, pipes_that_wait, two_ports_on_one_file);

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
