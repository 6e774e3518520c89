//! Messages by reference: copied by the host from and to the device's memory, beside packets.

mod common;

use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::{Duration, Instant};

use common::lab::{self, BASE, Got, SIZE, Sent};
use common::site::{KINDS, LONG, PIECES, Site, WHOLE, count, kind};
use common::{LIMIT, Layout, Whole, on_both_layouts};
use rpc_port::Error;
use rpc_port::procedure::Increment;
use rpc_server::{ExchangeState, Poll};
use rpc_types::{Opcode, Status};

on_both_layouts!(
    whole_messages,
    pieces,
    lanes_of_all_kinds,
    replies_go_where_the_lane_wants_them,
    others_are_served_meanwhile,
    no_rest_while_a_copy_runs,
    off_unless_asked_for,
);

fn content(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i * 7 + length) as u8).collect()
}

const LENGTHS: [u64; 9] = [0, 1, 999, 4095, 4096, 4097, 12_288, 300_001, SIZE as u64];

fn whole_messages<T: Layout>() {
    for kind in [KINDS[0], KINDS[2]] {
        let site = Site::<T>::new(kind);
        for length in LENGTHS {
            let address = BASE + (SIZE as u64 - length) / 2;
            assert_eq!(site.refer(WHOLE, address, length), Ok(length));
            site.has_received(0, &site.lab.at(address, length as usize));
        }
        site.is_whole();
        let _ = site.rig.service.drain(LIMIT);
        let counters = site.rig.service.counters();
        let own = counters.of(WHOLE).unwrap();
        let sum = LENGTHS.iter().sum::<u64>() + 5000;
        assert_eq!((own.bytes_in, own.bytes_out), (sum, own.calls * 8));
    }
}

fn pieces<T: Layout>() {
    for kind in KINDS {
        let site = Site::<T>::new(kind);
        for length in LENGTHS {
            let address = BASE + (SIZE as u64 - length) / 2;
            assert_eq!(site.refer(PIECES, address, length), Ok(length), "{kind:?}");
            site.has_received(0, &site.lab.at(address, length as usize));
        }
        let staged = kind.buffers > 0 && kind.size > 0;
        assert_eq!(site.lab.staged.load(SeqCst) > 0, staged);
        assert_eq!(site.lab.blocking.load(SeqCst) > 0, !staged);
        site.is_whole();
        let _ = site.rig.service.drain(LIMIT);
        let own = site.rig.service.counters();
        let sum = LENGTHS.iter().sum::<u64>() + 5000;
        assert_eq!(own.of(PIECES).map(|own| own.bytes_in), Some(sum));
    }
}

/// Lanes of one message, each in another way.
fn lanes_of_all_kinds<T: Layout>() {
    for kind in KINDS {
        let site = Site::<T>::new(kind);
        let long = content(700);
        for (turn, opcode) in (0..8).zip([PIECES, WHOLE].into_iter().cycle()) {
            let sent = |lane: u32| match (lane + turn / 2) % 4 {
                0 => Sent::Packets(&long[turn as usize..]),
                1 => Sent::Reference(BASE + u64::from(turn), 20_000),
                2 => Sent::Reference(BASE + 5000, u64::from(turn % 4) * 3000),
                _ => Sent::Packets(&[]),
            };
            let message = |lane| match sent(lane) {
                Sent::Packets(bytes) => bytes.to_vec(),
                Sent::Reference(address, length) => site.lab.at(address, length as usize),
            };
            site.rig.team(4, |lane, client| {
                let mut port = client.open(opcode).unwrap().dynamic();
                let length = message(lane).len() as u64;
                assert_eq!(count(&mut port, sent(lane)), Ok(length));
            });
            (0..4).for_each(|lane| site.has_received(lane, &message(lane)));
        }
        site.is_whole();
    }
}

/// A message there and back: the way back has a place of its own for each lane, or none.
fn replies_go_where_the_lane_wants_them<T: Layout>() {
    for kind in KINDS {
        let site = Site::<T>::new(kind);
        let short = content(999);
        let place = |lane: u64| BASE + (SIZE as u64 / 2) + lane * 100_000;
        for turn in 0..4 {
            site.rig.team(4, |lane, client| {
                // Packets are slow where a warp is four threads.
                let declines = (lane + turn) % 4 == 3;
                let length = if declines { 1100 } else { 50_000 } + u64::from(lane);
                let (sent, room) = match (lane + turn) % 4 {
                    0 => (Sent::Packets(&short), [0; 2]),
                    1 => (
                        Sent::Reference(BASE + 3, length),
                        [place(lane.into()), 100_000],
                    ),
                    2 => (
                        Sent::Reference(BASE + 9, length),
                        [place(lane.into()), 1234],
                    ),
                    _ => (Sent::Reference(BASE + 6, length), [0, 77]),
                };
                let mut port = client.open(Opcode::TEST_STREAM).unwrap().dynamic();
                lab::send(&mut port, sent).unwrap();
                let got = lab::receive(&mut port, room).unwrap();
                match sent {
                    Sent::Packets(bytes) => assert_eq!(got, Got::Packets(bytes.to_vec())),
                    Sent::Reference(from, _) if room[0] == 0 => {
                        assert_eq!(got, Got::Packets(site.lab.at(from, length as usize)));
                    }
                    Sent::Reference(from, _) => {
                        assert_eq!(got, Got::Reference(length));
                        let count = length.min(room[1]) as usize;
                        assert_eq!(site.lab.at(room[0], count), site.lab.at(from, count));
                        assert_ne!(
                            site.lab.at(room[0], count + 99),
                            site.lab.at(from, count + 99)
                        );
                    }
                }
            });
        }
        // One lane; and the same with no room at all.
        let client = site.rig.client(0);
        for room in [[0; 2], [BASE + 40_000, 30_000], [BASE, 0], [u64::MAX, 0]] {
            let mut port = client.open(Opcode::TEST_STREAM).unwrap().dynamic();
            lab::send(&mut port, Sent::Reference(BASE, 20_000)).unwrap();
            let got = lab::receive(&mut port, room).unwrap();
            assert_eq!(matches!(got, Got::Packets(_)), room[0] == 0);
        }
        assert_eq!(
            site.lab.at(BASE, 20_000),
            site.lab.at(BASE + 40_000, 20_000)
        );
        site.is_whole();
        assert!(site.rig.reports().is_empty());
    }
}

/// Waiting for a copy, in whatever way, holds up nobody on the same poller.
fn others_are_served_meanwhile<T: Layout>() {
    for (kind, opcode) in [(KINDS[2], PIECES), (KINDS[0], PIECES), (KINDS[2], WHOLE)] {
        let site = Site::<T>::new(kind);
        site.lab.held.store(true, SeqCst);
        thread::scope(|scope| {
            let copied = scope.spawn(|| site.refer(opcode, BASE, LONG));
            site.is_copying();
            let client = site.rig.client(1);
            (0..200).for_each(|n| assert_eq!(client.call::<Increment>(&n), Ok(n + 1)));
            let open = site.rig.service.open_exchanges();
            assert_eq!((open.len(), open[0].state), (1, ExchangeState::InHandler));
            site.lab.held.store(false, SeqCst);
            assert_eq!(copied.join().unwrap(), Ok(LONG));
        });
        site.is_whole();
    }
}

/// A copy is looked at as often as the poller can: no sleep between the looks.
fn no_rest_while_a_copy_runs<T: Layout>() {
    for poll in [Poll::Adaptive, Poll::Sleep, Poll::Spin] {
        let site = Site::<T>::planned(kind(2, 1 << 20, 10_000), |plan| plan.options.poll = poll);
        thread::sleep(Duration::from_millis(10));
        let copied = |_| {
            let start = Instant::now();
            assert_eq!(site.refer(PIECES, BASE, 4096), Ok(4096));
            start.elapsed()
        };
        // With the shortest sleep between the looks none would take less than 600 ms; without, one on a
        // busy machine may take any time, but not each.
        let soon = Duration::from_millis(400);
        assert!((0..20).map(copied).any(|took| took < soon), "{poll:?}");
    }
}

/// Where nobody has said that messages may come by reference, one is only too long, and none goes
/// so.
fn off_unless_asked_for<T: Layout>() {
    let site = Site::<T>::planned(KINDS[2], |plan| plan.options.bulk = 0);
    let too_long = Err(Error::Status(Status::TOO_LONG));
    for opcode in [PIECES, WHOLE] {
        assert_eq!(site.refer(opcode, BASE, LONG), too_long);
        assert_eq!(site.refer(opcode, BASE, 0), too_long);
    }
    let message = content(5000);
    let client = site.rig.client(0);
    let mut port = client.open(Opcode::TEST_STREAM).unwrap().dynamic();
    let mut back = Whole::default();
    port.send_n(|_| &message).unwrap();
    port.recv_n(&mut back).unwrap();
    assert!(message == back.0);
    assert_eq!(site.lab.calls.load(SeqCst), 0);
}
