//! What every layout does alike. A new layout is one more line at the end.

mod common;

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use common::{Collect, Link, Memory};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use rpc_bitmap::{Device, Heap, Memory as _};
use rpc_port::procedure::{Echo, Increment, Noop};
use rpc_port::stream::{Lengths, Prefix};
use rpc_port::transport::LineOf;
use rpc_port::{
    Compact, DynamicPort, Error, Line, Llvm, Llvm22, Procedure, Process, Server, Sink, TeamWarp,
    Transport, Warp,
};
use rpc_types::{Opcode, Status};

/// Answers increments and echoes, counts no-ops, refuses the rest.
fn serve<P>(mut port: DynamicPort<P>, noops: &AtomicU64) -> Result<(), Error>
where
    P: Process<Slot = rpc_port::server::ServerSlot>,
{
    match port.opcode() {
        Opcode::TEST_INCREMENT => port.recv_and_send(8, |_, packet| packet.words[0] += 1),
        Opcode::TEST_STREAM => {
            let mut messages = Collect::default();
            port.recv_n(&mut messages)?;
            port.send_n(|lane| &messages.0[&lane])
        }
        Opcode::NOOP => {
            noops.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
        _ => {
            assert!(
                port.end(Status::UNHANDLED).is_ok(),
                "a request just opened is owned"
            );
            Ok(())
        }
    }
}

fn increments<T: Transport<Shared = Memory> + Send + Sync>() {
    let noops = AtomicU64::new(0);
    let link = Link::<T>::new(3, 1);
    link.serve(
        |port| serve(port, &noops),
        || {
            thread::scope(|scope| {
                for hint in 0..5 {
                    let client = link.client(hint);
                    scope.spawn(move || {
                        for i in 0..500 {
                            let value = u64::from(hint) << 32 | i;
                            assert_eq!(client.call::<Increment>(&value), Ok(value + 1));
                            if i % 50 == 0 {
                                client.notify::<Noop>(&rpc_port::procedure::Empty).unwrap();
                            }
                        }
                    });
                }
            });
        },
    );
    assert_eq!(noops.load(Ordering::Relaxed), 50);
}

/// Any lengths on any lanes of any mask come back as they went.
fn streams<T: Transport<Shared = Memory> + Send + Sync>() {
    const LANES: u32 = 4;
    let noops = AtomicU64::new(0);
    let link = Link::<T>::new(2, LANES);
    let payload = T::KIND.payload();
    let edges = [
        0,
        1,
        payload - 9,
        payload - 8,
        payload - 7,
        2 * payload - 8,
        2 * payload - 7,
    ];
    let length = prop_oneof![proptest::sample::select(edges.to_vec()), 0..500_usize];
    let lengths = proptest::collection::vec(length, LANES as usize);
    let warps = TeamWarp::team(LANES, 0);
    link.serve(
        |port| serve(port, &noops),
        || {
            let mut runner = TestRunner::new(Config {
                cases: 40,
                ..Config::default()
            });
            let case = (lengths, 1..1_u64 << LANES);
            runner
                .run(&case, |(lengths, mask)| {
                    thread::scope(|scope| {
                        for warp in &warps {
                            let lane = warp.lane();
                            if mask >> lane & 1 == 0 {
                                continue;
                            }
                            warp.converge(mask);
                            let client = link.lane(warp.clone());
                            let length = lengths[lane as usize];
                            scope.spawn(move || {
                                let message: Vec<u8> =
                                    (0..length).map(|i| (i as u32 * 7 + lane) as u8).collect();
                                let mut back = vec![0xFF; length];
                                let mut sink = Prefix::new(&mut back);
                                client.exchange::<Echo>(&message, &mut sink).unwrap();
                                assert_eq!(sink.length(), length as u64);
                                assert_eq!(back, message);
                            });
                        }
                    });
                    Ok(())
                })
                .unwrap();
        },
    );
}

/// Every lane of a warp gets the error, and the port is good for the next call.
fn unknown_opcodes<T: Transport<Shared = Memory> + Send + Sync>() {
    if !T::HAS_STATUS {
        return unanswered::<T>();
    }
    let noops = AtomicU64::new(0);
    let link = Link::<T>::new(1, 3);
    link.serve(
        |port| serve(port, &noops),
        || {
            thread::scope(|scope| {
                for warp in TeamWarp::team(3, 0) {
                    let client = link.lane(warp);
                    scope.spawn(move || {
                        // One with a compact form and one without.
                        for opcode in [Opcode::user(5), Opcode(0x1234_5678)] {
                            let mut port = client.open(opcode).unwrap().dynamic();
                            let refused = Err(Error::Status(Status::UNHANDLED));
                            port.send(0, |_, _| ()).unwrap();
                            assert_eq!(port.recv(8, |_, _| ()), refused);
                            assert_eq!(port.send(8, |_, _| ()), refused, "it stays an error");
                            assert_eq!(client.warp().active_mask(), 7);
                            drop(port);
                            assert_eq!(client.call::<Increment>(&1), Ok(2));
                        }
                    });
                }
            });
        },
    );
}

/// A layout without a status: a call that fails gets no answer, and its port nobody else.
fn unanswered<T: Transport<Shared = Memory> + Send + Sync>() {
    let link = Link::<T>::new(1, 1);
    let (client, server) = (link.client(0), link.server());
    let mut port = client.try_open(Opcode::user(5)).unwrap().dynamic();
    port.send(8, |_, _| ()).unwrap();
    let taken = server.try_open(0).unwrap().dynamic();
    assert_eq!(taken.opcode(), Opcode::user(5));
    assert!(taken.end(Status::UNHANDLED).is_ok());
    assert_eq!(
        port.poll_own(),
        Ok(false),
        "it would take its request for the answer"
    );
    assert!(server.try_open(0).is_none(), "it is not asked again");
    drop(port);
    assert!(client.try_open(Opcode::NOOP).is_none());
}

/// Lanes that open together and want different things get a port for each.
fn mixed_opcodes<T: Transport<Shared = Memory> + Send + Sync>() {
    let noops = AtomicU64::new(0);
    let link = Link::<T>::new(4, 4);
    link.serve(
        |port| serve(port, &noops),
        || {
            thread::scope(|scope| {
                for warp in TeamWarp::team(4, 0) {
                    let client = link.lane(warp);
                    scope.spawn(move || {
                        let lane = client.warp().lane();
                        let increment = lane % 2 == 1;
                        let opcode = match lane {
                            0 => Opcode::user(9),
                            1 | 3 => Opcode::TEST_INCREMENT,
                            _ => Opcode::NOOP,
                        };
                        let mut port = client.open(opcode).unwrap().dynamic();
                        assert_eq!(port.mask(), [0b0001, 0b1010, 0b0100, 0b1010][lane as usize]);
                        // From here on each group goes its own way.
                        client.warp().converge(port.mask());
                        port.send(8, |_, packet| packet.words[0] = 5).unwrap();
                        if increment {
                            port.recv(8, |_, packet| assert_eq!(packet.words[0], 6))
                                .unwrap();
                        }
                    });
                }
            });
        },
    );
    assert_eq!(noops.load(Ordering::Relaxed), 1);
}

/// Lanes drop a port in subsets: it is free only when the last has.
fn divergent_close<T: Transport<Shared = Memory> + Send + Sync>() {
    let noops = AtomicU64::new(0);
    for order in [[0b001, 0b110], [0b110, 0b001], [0b010, 0b101]] {
        let link = Link::<T>::new(1, 3);
        let go = std::sync::Barrier::new(3);
        link.serve(
            |port| serve(port, &noops),
            || {
                thread::scope(|scope| {
                    for warp in TeamWarp::team(3, 0) {
                        let (link, go) = (&link, &go);
                        scope.spawn(move || {
                            let lane = warp.lane();
                            let all = link.lane(warp.clone());
                            let mut port = all.open(Opcode::TEST_INCREMENT).unwrap().dynamic();
                            let mut answer = 0;
                            let value = u64::from(lane) * 100;
                            port.send_and_recv(
                                8,
                                |_, packet| packet.words[0] = value,
                                8,
                                |_, packet| answer = packet.words[0],
                            )
                            .unwrap();
                            assert_eq!(answer, value + 1);
                            let mut port = Some(port);
                            for subset in order {
                                if subset >> lane & 1 == 1 {
                                    warp.converge(subset);
                                    drop(port.take());
                                }
                                go.wait();
                                if lane == 0 {
                                    let free = link.client(0).try_open(Opcode::NOOP).is_some();
                                    assert_eq!(free, subset == order[1]);
                                }
                                go.wait();
                            }
                        });
                    }
                });
            },
        );
    }
}

/// A client that waits when the host ends the run gets an error; so does one that waits for a port.
fn stop<T: Transport<Shared = Memory> + Send + Sync>() {
    let link = Link::<T>::new(1, 1);
    thread::scope(|scope| {
        let waits = scope.spawn(|| link.client(0).call::<Increment>(&1));
        while !link.server().is_waiting(0) {
            thread::yield_now();
        }
        let wants_port = scope.spawn(|| link.client(0).open(Opcode::NOOP).map(|_| ()));
        link.transport.stop();
        assert_eq!(waits.join().unwrap(), Err(Error::Stopped));
        assert_eq!(wants_port.join().unwrap(), Err(Error::Stopped));
    });
}

/// The panic handler's port is given to nobody else, however many ports are asked for.
fn reserved_port<T: Transport<Shared = Memory> + Send + Sync>() {
    let link = Link::<T>::new(2, 1);
    let client = link.client(7);
    let held = [
        client.try_open(Opcode::NOOP).unwrap(),
        client.try_open(Opcode::NOOP).unwrap(),
    ];
    assert!(client.try_open(Opcode::NOOP).is_none());
    assert_eq!(client.open_reserved(Opcode::PANIC).unwrap().index(), 2);
    drop(held);
    assert!(client.try_open(Opcode::NOOP).unwrap().index() < 2);
}

/// A port whose asynchronous call the server has not taken is not opened again before it has.
fn in_flight<T: Transport<Shared = Memory> + Send + Sync>() {
    let link = Link::<T>::new(1, 1);
    let (client, server) = (link.client(0), link.server());
    for _ in 0..3 {
        let mut port = client.try_open(Opcode::NOOP).unwrap().dynamic();
        port.send(8, |_, packet| packet.words[0] = 9).unwrap();
        drop(port);
        assert!(
            client.try_open(Opcode::NOOP).is_none(),
            "it is still the server's"
        );
        let mut taken = server.try_open(0).unwrap().dynamic();
        assert!(server.try_open(0).is_none(), "another thread has it");
        taken
            .recv(8, |_, packet| assert_eq!(packet.words[0], 9))
            .unwrap();
        drop(taken);
        assert!(server.try_open(0).is_none());
        assert!(client.try_open(Opcode::NOOP).is_some());
    }
}

/// A client cannot receive before it has sent; a port dropped unsent leaves no trace.
fn nothing_sent<T: Transport<Shared = Memory> + Send + Sync>() {
    let link = Link::<T>::new(1, 1);
    let client = link.client(0);
    let mut port = client.try_open(Opcode::NOOP).unwrap().dynamic();
    assert_eq!(port.recv(8, |_, _| ()), Err(Error::NothingSent));
    drop(port);
    assert!(!link.server().is_waiting(0));
    assert!(client.try_open(Opcode::NOOP).is_some());
}

/// Whatever a device writes into mailboxes and headers, the server goes on.
fn hostile_memory<T: Transport<Shared = Memory> + Send + Sync>() {
    let link = Link::<T>::new(40, 32);
    let geometry = *link.transport.geometry();
    let shared = link.transport.shared();
    let server = link.server();
    let mut random = 0x1234_5678_9ABC_DEF1_u64;
    for _ in 0..200 {
        let mut offset = geometry.requests() / 8 * 8;
        while offset < geometry.shared_size() {
            // All that is not the server's.
            let llvm = geometry.replies() < geometry.requests();
            if llvm || offset < geometry.replies() || offset >= geometry.packets() {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                shared.store64(offset, random);
            }
            offset += 8 * 61;
        }
        for port in 0..geometry.total_ports() {
            if let Some(opened) = server.try_open(port) {
                let mut port = opened.dynamic();
                assert_eq!(
                    port.mask() >> 32,
                    0,
                    "lanes that do not exist are masked off"
                );
                let mut sink = Collect::default();
                let mut lengths = 0;
                port.recv(64, |lane, packet| {
                    lengths ^= packet.words[0];
                    sink.begin(lane, packet.words[0]);
                })
                .unwrap();
                // Whatever it announces, and however often it begins anew.
                let cursor = port.cursor();
                let mut all = rpc_port::stream::AllLengths::ZERO;
                port.end_recv_part(&cursor, &mut all, &mut sink);
            }
        }
    }
}

/// From before the sequence numbers start again to behind that: lanes that took part long ago, or
/// never, are not taken for present.
fn wrap_around<T: Transport<Shared = Memory> + Send + Sync>() {
    let noops = AtomicU64::new(0);
    let link = Link::<T>::new(1, 4);
    let start = 0xFFFF_FF00_u64;
    let geometry = *link.transport.geometry();
    link.private.store64(geometry.state(0), start);
    let warps = TeamWarp::team(4, 0);
    let mut random = 1_u32;
    link.serve(
        |port| serve(port, &noops),
        || {
            for i in 0..300_u64 {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                // Lane 3 comes for the first time after the numbers have started again.
                let lanes = if i < 260 { 3 } else { 4 };
                let mask = u64::from(random >> 16) % ((1 << lanes) - 1) + 1;
                thread::scope(|scope| {
                    for warp in warps.iter().filter(|warp| mask >> warp.lane() & 1 == 1) {
                        warp.converge(mask);
                        let client = link.lane(warp.clone());
                        scope.spawn(move || {
                            let value = i << 8 | u64::from(client.warp().lane());
                            assert_eq!(client.call::<Increment>(&value), Ok(value + 1));
                        });
                    }
                });
            }
        },
    );
    // 300 calls, after the last number comes 2.
    assert_eq!(
        link.private.load64(geometry.state(0)),
        (start + 302) & 0xFFFF_FFFF
    );
}

/// One port for call after call, of any kind, and then for others.
fn kept<T: Transport<Shared = Memory> + Send + Sync>() {
    let noops = AtomicU64::new(0);
    let link = Link::<T>::new(1, 2);
    link.serve(
        |port| serve(port, &noops),
        || {
            for _ in 0..3 {
                thread::scope(|scope| {
                    for warp in TeamWarp::team(2, 0) {
                        let client = link.lane(warp);
                        scope.spawn(move || {
                            let mut kept = client.keep().unwrap();
                            assert_eq!(kept.mask(), 3);
                            for i in 0..50 {
                                assert_eq!(kept.call::<Increment>(&i), Ok(i + 1));
                            }
                            if T::HAS_STATUS {
                                let refused = Err(Error::Status(Status::UNHANDLED));
                                assert_eq!(kept.call::<Unknown>(&1), refused);
                            }
                            let mut back = [0; 300];
                            let mut sink = Prefix::new(&mut back);
                            kept.exchange::<Echo>(&[7; 300], &mut sink).unwrap();
                            assert_eq!(back, [7; 300]);
                            assert_eq!(kept.call::<Increment>(&1), Ok(2));
                        });
                    }
                });
            }
            // Kept, and not used.
            drop(link.client(0).keep().unwrap());
            assert_eq!(link.client(0).call::<Increment>(&1), Ok(2));
        },
    );
}

/// A call that orders memory, with an opcode that nobody handles.
struct Unknown;

impl Procedure for Unknown {
    const OPCODE: Opcode = Opcode(0x1234_5678);
    const NAME: &'static str = "unknown";
    type Request = u64;
    type Reply = u64;
    const ORDERS_MEMORY: bool = true;
}

/// A server with too little memory says so at once.
fn memory_size<T: Transport<Shared = Memory> + Send + Sync>() {
    let link = Link::<T>::new(5, 1);
    let size = common::TestServer::<T>::memory_size(&link.transport);
    let new = |size| {
        let transport = link.transport.clone();
        let new = move || Server::new(transport, Heap::<Device>::new(size));
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(new))
    };
    assert!(new(size).is_ok());
    assert!(new(size - 8).is_err());
}

macro_rules! suite {
    ($($name:ident),*; $layout:ident as $module:ident) => {
        mod $module {
            $(#[test] fn $name() {
                super::$name::<super::$layout<super::Memory>>();
            })*
        }
    };
    ($layout:ident as $module:ident) => {
        suite!(increments, streams, unknown_opcodes, mixed_opcodes, divergent_close, stop, reserved_port,
            in_flight, nothing_sent, hostile_memory, wrap_around, kept, memory_size; $layout as $module);
    };
}

/// `Line` where 16 bytes are not read in one access.
type Plain<M> = LineOf<M, false>;

suite!(Line as line);
suite!(Plain as plain);
suite!(Compact as compact);
suite!(Llvm22 as llvm_22);
suite!(Llvm as llvm);
