//! Paths, commands, functions of the host, memory, and LLVM's tests.

use std::io::{Read, pipe};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::{fs, process, thread};

use rpc_bitmap::{Heap, System};
use rpc_port::Line;
use rpc_port::procedure::{Free, Malloc};
use rpc_server::{DeviceMemory, MemoryError};
use rpc_types::Opcode;

use crate::rig::{Calls, EOF, LIMIT, Layout, Plan, Steps, Whole, c, eventually, on_all_layouts};

on_all_layouts!(
    removing,
    renaming,
    commands,
    commands_without_permission,
    functions_of_the_host,
    memory,
    the_test_of_the_interface,
    the_test_of_streams,
);

fn removing<T: Layout>() {
    let rig = Plan::new(2).start::<T>();
    let client = rig.client();
    let remove = |path: &str| client.say(Opcode::REMOVE, &c(path));
    let (file, folder) = (rig.path("file"), rig.path("folder"));
    fs::write(&file, "").unwrap();
    fs::create_dir(&folder).unwrap();
    fs::write(rig.path("folder/inside"), "").unwrap();
    assert_eq!(remove(&folder), EOF, "it is not empty");
    assert_eq!(remove(&rig.path("folder/inside")), 0);
    assert_eq!(remove(&folder), 0);
    assert_eq!(client.say(Opcode::REMOVE, file.as_bytes()), EOF, "no NUL");
    assert_eq!(client.say(Opcode::REMOVE, b""), EOF);
    assert_eq!((remove(&file), remove(&file), remove("")), (0, EOF, EOF));
    assert!(fs::read_dir(&rig.folder).unwrap().next().is_none());
}

fn renaming<T: Layout>() {
    let rig = Plan::new(2).start::<T>();
    rig.team(|lane, client| {
        let (old, new) = (
            rig.path(&format!("old {lane}")),
            rig.path(&format!("new {lane}")),
        );
        if lane != 3 {
            fs::write(&old, format!("{lane}")).unwrap();
        }
        let renamed = client.steps(Opcode::RENAME, |port| {
            port.put_n(&c(&old));
            // A path that has no end is none.
            port.put_n(if lane == 2 { new.as_bytes() } else { &[] });
            port.get()
        });
        assert_eq!(renamed, EOF, "there is no second path");
        let renamed = client.steps(Opcode::RENAME, |port| {
            port.put_n(&c(&old));
            port.put_n(&c(&new));
            port.get()
        });
        assert_eq!(renamed, if lane == 3 { EOF } else { 0 });
        let text = fs::read_to_string(&new).unwrap_or_default();
        assert_eq!(
            text,
            if lane == 3 {
                String::new()
            } else {
                lane.to_string()
            }
        );
        assert!(!fs::exists(&old).unwrap());
    });
}

fn commands<T: Layout>() {
    let mut plan = Plan::new(2);
    plan.system = true;
    let rig = plan.start::<T>();
    let client = rig.client();
    let path = rig.path("made");
    let system = |command: &str| client.say(Opcode::SYSTEM, &c(command)) as i64;
    assert_eq!(system(&format!("echo text > '{path}'")), 0);
    assert_eq!(fs::read_to_string(&path).unwrap(), "text\n");
    // As `wait` has it.
    assert_eq!(system("exit 3"), 3 << 8);
    assert_eq!(system("kill -9 $$"), 9);
    assert_eq!(system("-no-such-command 2> /dev/null"), 127 << 8);
    assert_eq!(system(""), 0);
    assert_eq!(client.say(Opcode::SYSTEM, b"exit 3"), EOF, "no NUL");
    assert_eq!(client.say(Opcode::SYSTEM, b""), 1, "there is a shell");
    rig.team(|lane, client| {
        let command = c(format!("exit {lane}"));
        assert_eq!(client.say(Opcode::SYSTEM, &command), u64::from(lane) << 8);
    });
}

/// A command that runs when the run ends ends with it, and all that it waits for.
#[test]
fn commands_at_the_end() {
    let mut plan = Plan::new(2);
    plan.system = true;
    let rig = plan.start::<Line<Heap<System>>>();
    let (mut reader, writer) = pipe().unwrap();
    let fd = writer.as_raw_fd();
    let ready = rig.path("ready");
    // Each of the two holds the pipe.
    let held = format!("/proc/{}/fd/{fd}", process::id());
    let command = c(format!(
        "exec > '{held}'; (touch '{ready}'; sleep 1000; true); sleep 1000; true"
    ));
    thread::scope(|scope| {
        let client = rig.client();
        scope.spawn(move || {
            let mut port = client.0.open(Opcode::SYSTEM).unwrap().dynamic();
            port.put_n(&command);
            assert!(port.recv(8, |_, _| ()).is_err(), "the run is over");
        });
        eventually("the command", || fs::exists(&ready).unwrap());
        drop(writer);
        assert!(!rig.service.drain(LIMIT).late);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        rig.service.stop_device();
    });
}

fn commands_without_permission<T: Layout>() {
    let rig = Plan::new(2).start::<T>();
    let client = rig.client();
    let path = rig.path("made");
    for command in [&c(format!("touch '{path}'"))[..], b"x", &c("")] {
        assert_eq!(client.say(Opcode::SYSTEM, command), EOF);
    }
    assert_eq!(client.say(Opcode::SYSTEM, b""), 0, "there is no shell");
    assert!(!fs::exists(path).unwrap());
}

fn functions_of_the_host<T: Layout>() {
    let mut plan = Plan::new(2);
    let calls = Arc::new(AtomicU64::new(0));
    let counted = calls.clone();
    let sum = |bytes: &[u8]| bytes.iter().map(|byte| u64::from(*byte)).sum::<u64>();
    plan.functions.register(0xF00, move |bytes| {
        counted.fetch_add(1, SeqCst);
        sum(bytes)
    });
    plan.functions.register(1, |bytes| !(bytes.len() as u64));
    let rig = plan.start::<T>();
    let call = |number: u64, arguments: &[u8]| {
        rig.client().steps(Opcode::HOST_CALL, |port| {
            port.put_n(arguments);
            port.put([number, 0, 0]);
            port.get()
        })
    };
    assert_eq!(call(0xF00, b""), 0);
    assert_eq!(call(0xF00, &[200; 300]), 60_000);
    assert_eq!(call(1, &[1; 70]), !70);
    for number in [0, 2, 0xF01, u64::MAX] {
        assert_eq!(call(number, b"arguments"), 0);
    }
    assert_eq!(calls.load(SeqCst), 2);
    rig.team(|lane, client| {
        let result = client.steps(Opcode::HOST_CALL, |port| {
            port.put_n(&vec![lane as u8; lane as usize * 30]);
            port.put([if lane == 2 { 7 } else { 0xF00 }, 0, 0]);
            port.get()
        });
        assert_eq!(
            result,
            if lane == 2 {
                0
            } else {
                u64::from(lane * lane) * 30
            }
        );
    });
}

/// Gives out slabs, and keeps a list of them.
#[derive(Default)]
struct Slabs(Mutex<Vec<u64>>);

impl DeviceMemory for Slabs {
    fn allocate(&self, size: u64) -> Option<u64> {
        let mut slabs = self.0.lock().unwrap();
        let address = (slabs.len() as u64 + 1) << 21;
        (size <= 2 << 20).then(|| {
            slabs.push(address);
            address
        })
    }

    fn free(&self, address: u64) -> bool {
        let mut slabs = self.0.lock().unwrap();
        let place = slabs.iter().position(|slab| *slab == address);
        place.map(|place| slabs.swap_remove(place)).is_some()
    }

    fn copy_to_host(&self, _: u64, _: &mut [u8]) -> Result<(), MemoryError> {
        Err(MemoryError::Device("nothing is here".into()))
    }

    fn copy_to_device(&self, _: &[u8], _: u64) -> Result<(), MemoryError> {
        Err(MemoryError::Device("nothing is here".into()))
    }
}

fn memory<T: Layout>() {
    let mut plan = Plan::new(2);
    let slabs = Arc::new(Slabs::default());
    plan.memory = slabs.clone();
    let rig = plan.start::<T>();
    let client = rig.client();
    assert_eq!(client.0.call::<Malloc>(&(2 << 20)), Ok(2 << 20));
    assert_eq!(client.0.call::<Malloc>(&(2 << 20)), Ok(4 << 20));
    for size in [(2 << 20) + 1, 1 << 63, u64::MAX] {
        assert_eq!(client.0.call::<Malloc>(&size), Ok(0));
    }
    // What is no block is left alone, and ends nothing.
    for address in [0, 5, 4 << 20, 4 << 20, u64::MAX] {
        assert!(client.0.call::<Free>(&address).is_ok());
        client.0.notify::<Free>(&address).unwrap();
    }
    rig.is_whole();
    assert_eq!(*slabs.0.lock().unwrap(), [2 << 20]);
    assert_eq!(rig.reports().len(), 0);
}

fn the_test_of_the_interface<T: Layout>() {
    let rig = Plan::new(2).start::<T>();
    rig.team(|lane, client| {
        for ends_with_send in [1, 0, 0, 1] {
            // Each lane has a counter of its own.
            let start = u64::from(lane) << 32;
            let mut count = start;
            client.steps(Opcode::TEST_INTERFACE, |port| {
                port.put([ends_with_send, 0, 0]);
                let send = |port: &mut dyn Steps, count: &mut u64| {
                    *count += 1;
                    port.put([*count, 0, 0]);
                };
                send(port, &mut count);
                count = port.get();
                send(port, &mut count);
                count = port.get();
                send(port, &mut count);
                send(port, &mut count);
                count = port.get();
                assert_eq!(count, start + 7);
                count = port.get();
                if ends_with_send == 1 {
                    send(port, &mut count);
                } else {
                    count = port.get();
                }
            });
            assert_eq!(count, start + 9);
        }
    });
    rig.is_whole();
}

fn the_test_of_streams<T: Layout>() {
    let mut plan = Plan::new(2);
    plan.options.max_message = 10_000;
    let rig = plan.start::<T>();
    rig.team(|lane, client| {
        for length in [251, (lane as usize + 32) % 128, 10_001 - lane as usize] {
            let message = vec![lane as u8; length];
            let back = client.steps(Opcode::TEST_STREAM, |port| {
                port.put_n(&message);
                port.get_n()
            });
            let lost = length > 10_000;
            assert!(Whole(back).0 == if lost { vec![] } else { message });
        }
    });
    rig.is_whole();
}
