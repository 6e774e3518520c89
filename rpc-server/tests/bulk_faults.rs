//! Messages by reference that do not come to a good end: hostile addresses, devices that fail, clients
//! that give up, ends of runs.

mod common;

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::Duration;

use common::lab::{self, BASE, SIZE, Sent};
use common::site::{KINDS, LONG, PIECES, Site, WHOLE, count};
use common::{Layout, eventually, on_both_layouts};
use rpc_port::Error;
use rpc_types::stream::REFERENCE;
use rpc_types::{Opcode, Status};

on_both_layouts!(
    what_may_not_be_copied,
    nobody_is_told_while_a_copy_runs,
    copies_that_fail,
    too_much,
    clients_that_give_up,
    end_in_the_middle,
    end_in_the_pool,
);

const INVALID: Error = Error::Status(Status::INVALID);
const TOO_LONG: Error = Error::Status(Status::TOO_LONG);

fn what_may_not_be_copied<T: Layout>() {
    let wild = [
        (0, 1),
        (BASE - 1, 9000),
        (BASE + SIZE as u64 - 8999, 9000),
        (BASE + SIZE as u64, 1),
        (u64::MAX, 2),
        (u64::MAX - 9000, 9001),
        (1 << 63, 70_000),
    ];
    for kind in KINDS {
        let site = Site::<T>::new(kind);
        for (address, length) in wild {
            for opcode in [PIECES, WHOLE, Opcode::TEST_STREAM] {
                assert_eq!(site.refer(opcode, address, length), Err(INVALID));
            }
            // A reply to such a place.
            let client = site.rig.client(0);
            let mut port = client.open(Opcode::TEST_STREAM).unwrap().dynamic();
            lab::send(&mut port, Sent::Reference(BASE, 9000)).unwrap();
            let got = lab::receive(&mut port, [address, u64::MAX]);
            if address != 0 {
                assert_eq!(got, Err(INVALID), "{address:#x}");
            }
            site.is_whole();
        }
        // One lane of several.
        site.rig.team(4, |lane, client| {
            let mut port = client.open(PIECES).unwrap().dynamic();
            let address = if lane == 2 { 8 } else { BASE };
            let told = count(&mut port, Sent::Reference(address, 9000));
            assert_eq!(told, Err(INVALID));
        });
        site.is_whole();
        let said = site.rig.reports();
        assert_eq!(said.len(), 3, "once for each handler: {said:?}");
        assert!(said[0].contains("device address 0x0 are not memory that the host can copy"));
    }
}

/// One lane's address is good, the next one's is not: by the time they are told, no copy touches the
/// memory of the first any more.
fn nobody_is_told_while_a_copy_runs<T: Layout>() {
    const LENGTH: u64 = 3000;
    let place = BASE + 500_000;
    for kind in KINDS {
        let site = Site::<T>::new(kind);
        let hold = || {
            site.lab.calls.store(0, SeqCst);
            site.lab.held.store(true, SeqCst);
        };
        let let_go = || {
            site.is_copying();
            // Long enough for all that does not wait for this copy.
            thread::sleep(Duration::from_millis(20));
            assert_eq!(site.lab.parked(), 0, "somebody waits for each copy");
            site.lab.held.store(false, SeqCst);
        };
        let is_told = |told| {
            assert_eq!(told, Err(INVALID), "{kind:?}");
            assert!(!site.lab.held.load(SeqCst), "told too early: {kind:?}");
        };
        for bad in [8, u64::MAX] {
            // To the device. All lanes answer at once: it is held before the first copy.
            thread::scope(|scope| {
                scope.spawn(|| {
                    site.rig.team(4, |lane, client| {
                        let mut port = client.open(Opcode::TEST_STREAM).unwrap().dynamic();
                        lab::send(&mut port, Sent::Reference(BASE, LENGTH)).unwrap();
                        port.recv(8, |_, packet| {
                            assert_eq!(packet.words[0], LENGTH | REFERENCE);
                        })
                        .unwrap();
                        if lane == 0 {
                            hold();
                            scope.spawn(let_go);
                        }
                        let answer = [if lane == 1 { bad } else { place }, LENGTH];
                        port.send(16, |_, packet| packet.words[..2].copy_from_slice(&answer))
                            .unwrap();
                        is_told(port.recv(8, |_, _| ()).map(|()| 0));
                        if lane == 0 {
                            let length = LENGTH as usize;
                            assert!(site.lab.at(place, length) == site.lab.at(BASE, length));
                        }
                    });
                });
            });
            site.is_whole();
        }
        // From the device.
        hold();
        thread::scope(|scope| {
            scope.spawn(let_go);
            site.rig.team(4, |lane, client| {
                let mut port = client.open(PIECES).unwrap().dynamic();
                let address = if lane == 1 { 8 } else { BASE };
                is_told(count(&mut port, Sent::Reference(address, LENGTH)));
            });
        });
        site.is_whole();
    }
}

fn copies_that_fail<T: Layout>() {
    for kind in KINDS {
        let site = Site::<T>::new(kind);
        let staged = kind.buffers > 0 && kind.size > 0;
        for fault in [&site.lab.refuses, &site.lab.fails] {
            fault.store(true, SeqCst);
            for opcode in [PIECES, WHOLE] {
                let told = site.refer(opcode, BASE, 9000);
                // Copies of the pool are begun and ended by the same call.
                let reaches = site.lab.refuses.load(SeqCst) || staged && opcode == PIECES;
                let failed = Err(Error::Status(Status::SERVER_ERROR));
                assert_eq!(told, if reaches { failed } else { Ok(9000) });
            }
            fault.store(false, SeqCst);
            site.is_whole();
        }
        let said = site.rig.reports();
        assert!(
            said.iter()
                .all(|s| s.contains("on fire") && s.contains("pieces") || s.contains("whole"))
        );
        assert_eq!(said.len(), 2, "{said:?}");
    }
}

fn too_much<T: Layout>() {
    for kind in KINDS {
        let site = Site::<T>::planned(kind, |plan| {
            plan.options.max_message = 10_000;
            plan.options.max_in_flight = 15_000;
        });
        for opcode in [PIECES, WHOLE] {
            assert_eq!(site.refer(opcode, BASE, 10_000), Ok(10_000));
            for length in [10_001, 1 << 40, u64::MAX >> 1] {
                assert_eq!(site.refer(opcode, BASE, length), Err(TOO_LONG));
                assert_eq!(site.refer(opcode, 8, length), Err(TOO_LONG));
            }
            site.is_whole();
        }
        // Each is short enough, but not both; in pieces they are never held.
        site.rig.team(4, |lane, client| {
            for (opcode, told) in [(WHOLE, Err(TOO_LONG)), (PIECES, Ok(8000))] {
                let mut port = client.open(opcode).unwrap().dynamic();
                let length = if lane < 2 { 8000 } else { 0 };
                let got = count(&mut port, Sent::Reference(BASE, length));
                assert_eq!(got, told.map(|n| if lane < 2 { n } else { 0 }));
            }
        });
        site.is_whole();
    }
}

/// A client that closes its port while its message is copied, and calls again.
fn clients_that_give_up<T: Layout>() {
    for kind in [KINDS[0], KINDS[1], KINDS[2]] {
        // One port: the next call is on the port that was given up.
        let site = Site::<T>::planned(kind, |plan| plan.ports = 1);
        let client = site.rig.client(0);
        for opcode in [PIECES, WHOLE, Opcode::TEST_STREAM] {
            site.lab.held.store(true, SeqCst);
            site.lab.calls.store(0, SeqCst);
            let mut port = client.open(opcode).unwrap().dynamic();
            port.send(16, |_, packet| {
                packet.words[..2].copy_from_slice(&[LONG | REFERENCE, BASE]);
            })
            .unwrap();
            drop(port);
            site.is_copying();
            site.lab.held.store(false, SeqCst);
            site.is_whole();
        }
        // In the middle of a reply, which is still copied.
        site.lab.held.store(false, SeqCst);
        let mut port = client.open(Opcode::TEST_STREAM).unwrap().dynamic();
        lab::send(&mut port, Sent::Reference(BASE, LONG)).unwrap();
        port.recv(8, |_, packet| assert_eq!(packet.words[0], LONG | REFERENCE))
            .unwrap();
        site.lab.held.store(true, SeqCst);
        site.lab.calls.store(0, SeqCst);
        port.send(16, |_, packet| {
            packet.words[..2].copy_from_slice(&[BASE + 200_000, LONG]);
        })
        .unwrap();
        drop(port);
        site.is_copying();
        site.lab.held.store(false, SeqCst);
        site.is_whole();
        assert_eq!(
            site.lab.at(BASE, LONG as usize),
            site.lab.at(BASE + 200_000, LONG as usize)
        );
        eventually("the end of all", || {
            site.rig.service.open_exchanges().is_empty()
        });
    }
}

/// The run ends while a copy goes on: nobody waits longer than is allowed, the memory stays out of
/// use, and the device is asked for nothing more.
fn end_in_the_middle<T: Layout>() {
    let site = Site::<T>::new(KINDS[2]);
    site.lab.held.store(true, SeqCst);
    thread::scope(|scope| {
        let told = scope.spawn(|| site.refer(PIECES, BASE, LONG));
        site.is_copying();
        let drained = site.rig.service.drain(Duration::from_millis(50));
        assert_eq!((drained.cancelled, drained.late), (1, true));
        let calls = site.lab.calls.load(SeqCst);
        assert_eq!(site.lab.parked(), 2, "both are in use by a copy");
        assert_eq!(told.join().unwrap(), Err(Error::Status(Status::CANCELLED)));
        site.rig.service.stop_device();
        thread::sleep(Duration::from_millis(5));
        assert_eq!(site.lab.calls.load(SeqCst), calls);
    });
    site.lab.held.store(false, SeqCst);
    eventually("all buffers back", || site.lab.has_all());
    let Site { rig, lab, .. } = site;
    assert!(rig.service.stop());
    assert_eq!(Arc::strong_count(&lab), 1, "nobody keeps the device");
}

/// As before, with copies by threads of the pool, and more that wait for one.
fn end_in_the_pool<T: Layout>() {
    for (kind, opcode) in [(KINDS[0], PIECES), (KINDS[2], WHOLE)] {
        let site = Site::<T>::planned(kind, |plan| plan.ports = 8);
        site.lab.held.store(true, SeqCst);
        thread::scope(|scope| {
            let told = [0; 8].map(|_| scope.spawn(|| site.refer(opcode, BASE, 900_000)));
            eventually("all calls", || site.rig.service.open_exchanges().len() == 8);
            eventually("a copy on each thread of the pool", || {
                site.lab.blocking.load(SeqCst) == 4
            });
            let drained = site.rig.service.drain(Duration::from_millis(50));
            assert_eq!((drained.cancelled, drained.late), (8, true));
            for told in told {
                let told = told.join().unwrap();
                assert_eq!(told, Err(Error::Status(Status::CANCELLED)));
            }
        });
        site.lab.held.store(false, SeqCst);
        let Site { rig, lab, .. } = site;
        assert!(rig.service.stop());
        eventually("the end of the copies", || Arc::strong_count(&lab) == 1);
        assert_eq!(lab.blocking.load(SeqCst), 4, "no other was begun");
    }
}
