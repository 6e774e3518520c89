//! Ports that are given back in parts, or with a message that was not handed over.

mod common;

use std::sync::Barrier;
use std::thread;

use common::{Link, Memory};
use rpc_bitmap::Memory as _;
use rpc_port::transport::Line;
use rpc_port::{Opened, TeamWarp, Transport};
use rpc_types::layout::LOCKED;
use rpc_types::{Opcode, Packet};

type TestLine = Line<Memory>;

fn set(value: u64) -> impl FnMut(u32, &mut Packet) {
    move |_, packet| packet.words[0] = value
}

/// One lane lets go of a port, opens another one and closes that in the same instruction in which the
/// other lane lets go of the first.
fn close_side_by_side<T: Transport<Shared = Memory> + Sync>() {
    let link = Link::<T>::new(2, 2);
    let geometry = *link.transport.geometry();
    let is_locked = |port| link.private.load64(geometry.state(port)) & LOCKED != 0;
    let gone = |port| link.private.load64(geometry.holders(port));
    let [both, last] = [0b11, 0b10];
    let barrier = Barrier::new(2);
    for _ in 0..3 {
        let lanes = TeamWarp::team(2, 0);
        thread::scope(|scope| {
            for lane in lanes {
                let (link, barrier) = (&link, &barrier);
                scope.spawn(move || {
                    let client = link.lane(lane.clone());
                    let first = client.open(Opcode::NOOP).unwrap().dynamic();
                    assert_eq!(first.mask(), both);
                    if rpc_port::Warp::lane(&lane) == 0 {
                        barrier.wait();
                        drop(first);
                        return;
                    }
                    lane.converge(last);
                    let index = first.index();
                    drop(first);
                    assert!(is_locked(index), "the other lane holds it");
                    assert_eq!(gone(index), last);
                    let second = client.open(Opcode::NOOP).unwrap().dynamic();
                    assert_eq!(second.mask(), last);
                    assert_ne!(second.index(), index);
                    lane.converge(both);
                    barrier.wait();
                    drop(second);
                });
            }
        });
        for port in 0..2 {
            assert!(!is_locked(port), "port {port}");
            assert_eq!(gone(port), 0, "port {port}");
        }
    }
}

#[test]
fn lanes_close_different_ports_together() {
    close_side_by_side::<TestLine>();
    close_side_by_side::<rpc_port::Compact<Memory>>();
}

/// Fills the port that `opened` is and drops it.
fn fill_and_drop(opened: Opened<&common::TestClient<TestLine, rpc_port::HostWarp>>, value: u64) {
    match opened {
        Opened::Even(port) => drop(port.fill(8, set(value))),
        Opened::Odd(port) => drop(port.fill(8, set(value))),
    }
}

/// What was filled and not handed over has a number that no request gets: it is not taken for the next
/// holder's message, however late that comes.
#[test]
fn a_message_that_was_dropped_is_nobodys() {
    let link = Link::<TestLine>::new(1, 1);
    let (geometry, shared) = (*link.transport.geometry(), link.transport.shared());
    let (client, server) = (link.client(0), link.server());
    // Where the numbers begin, and where they start again.
    for sequence in [0, 1, u32::MAX - 2, u32::MAX - 1, u32::MAX] {
        (link.private).store64(geometry.state(0), sequence.into());
        fill_and_drop(client.try_open(Opcode::NOOP).expect("the port is free"), 7);
        let word = shared.load128(geometry.request_word(0, 0));
        assert_eq!(word[1], 7, "the word was written");
        let mut port = client
            .try_open(Opcode::NOOP)
            .expect("it was given back")
            .dynamic();
        port.send(8, set(8)).unwrap();
        let asked = shared.load32(geometry.request(0));
        assert_ne!(asked, word[0] as u32, "after {sequence}");
        assert_ne!(asked, 0);
        let mut host = server.try_open(0).expect("a request").dynamic();
        host.recv_and_send(8, |_, packet| assert_eq!(packet.words[0], 8))
            .unwrap();
        port.recv(8, |_, packet| assert_eq!(packet.words[0], 8))
            .unwrap();
    }
}
