//! Calls that succeed, and their numbers.

mod common;

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;

use common::{Layout, Plan, Whole, on_both_layouts, on_llvm_layouts};
use rpc_port::procedure::{Echo, Empty, Free, Increment, Malloc, Noop};
use rpc_port::{Error, Procedure};
use rpc_server::{CallInfo, DeviceMemory, Flow, MemoryError, Observe, Outcome, Poll};
use rpc_types::{Opcode, Packet, Status};

on_both_layouts!(
    increments,
    uncounted,
    waves,
    echoes,
    lanes,
    memory,
    observed,
    blocking,
    polls,
    more_than_replies,
    packets,
    long_and_short,
);
on_llvm_layouts!(
    increments,
    waves,
    echoes,
    lanes,
    blocking,
    polls,
    long_and_short,
);

fn increments<T: Layout>() {
    let rig = Plan::new(20).start::<T>();
    thread::scope(|scope| {
        for hint in 0..16 {
            let client = rig.client(hint);
            scope.spawn(move || {
                for n in 0..300 {
                    assert_eq!(client.call::<Increment>(&n), Ok(n + 1));
                }
            });
        }
    });
    rig.client(0).notify::<Noop>(&Empty).unwrap();
    assert_eq!(rig.service.drain(common::LIMIT).cancelled, 0);
    let counters = rig.service.counters();
    let own = counters.of(Opcode::TEST_INCREMENT).unwrap();
    assert_eq!((own.calls, own.lanes, own.errors), (4800, 4800, 0));
    assert_eq!((own.bytes_in, own.bytes_out), (4800 * 8, 4800 * 8));
    assert_eq!(
        counters.of(Opcode::NOOP).unwrap().calls,
        1,
        "posted before the drain"
    );
    assert_eq!(counters.total().calls, 4801);
}

/// A procedure of whole packets: every byte goes and comes, and a status is the whole call's.
fn packets<T: Layout>() {
    let mut plan = Plan::new(4);
    let opcode = Opcode::user(70);
    plan.table.packets(opcode, "negate", |call, packet| {
        assert_eq!(packet.words[0] as u32, call.lane);
        if packet.words[1] == 13 {
            return Err(Status(77));
        }
        packet.bytes_mut()[8..]
            .iter_mut()
            .for_each(|byte| *byte = !*byte);
        Ok(())
    });
    let rig = plan.start::<T>();
    let payload = T::KIND.payload();
    rig.team(3, |lane, client| {
        for refused in [false, true, false] {
            let mut port = client.open(opcode).unwrap().dynamic();
            let fill = |_: u32, packet: &mut Packet| {
                *packet = Packet { words: [7; 8] };
                packet.words[0] = lane.into();
                packet.words[1] = if refused && lane == 1 { 13 } else { 7 };
            };
            let mut got = Packet::ZERO;
            let result = port.send_and_recv(payload, fill, payload, |_, packet| got = *packet);
            if refused {
                assert_eq!(result, Err(Error::Status(Status(77))));
                continue;
            }
            assert_eq!(result, Ok(()));
            let mut wanted = Packet::ZERO;
            fill(lane, &mut wanted);
            let negated = wanted.bytes()[8..payload].iter().map(|byte| !byte);
            assert!(got.bytes()[8..payload].iter().copied().eq(negated));
        }
    });
    assert!(rig.service.drain(common::LIMIT).cancelled == 0);
    let counters = rig.service.counters();
    let own = counters.of(opcode).unwrap();
    let bytes = 3 * payload as u64;
    assert_eq!((own.calls, own.lanes, own.errors), (3, 9, 1));
    assert_eq!((own.bytes_in, own.bytes_out), (3 * bytes, 2 * bytes));
}

/// Requests in words with replies in packets, and the other way round.
fn long_and_short<T: Layout>() {
    struct Spread;
    impl Procedure for Spread {
        const OPCODE: Opcode = Opcode::user(71);
        const NAME: &'static str = "spread";
        type Request = u32;
        type Reply = [u64; 5];
    }
    struct Sum;
    impl Procedure for Sum {
        const OPCODE: Opcode = Opcode::user(72);
        const NAME: &'static str = "sum";
        type Request = [u64; 5];
        type Reply = u32;
    }
    let mut plan = Plan::new(4);
    plan.table
        .procedure::<Spread>(|call, n| Ok([u64::from(n + call.lane); 5]));
    plan.table
        .procedure::<Sum>(|_, all| Ok(all.iter().sum::<u64>() as u32));
    let rig = plan.start::<T>();
    rig.team(4, |lane, client| {
        for n in 0..50 {
            let all = client.call::<Spread>(&n).unwrap();
            assert_eq!(all, [u64::from(n + lane); 5]);
            assert_eq!(client.call::<Sum>(&all), Ok(5 * (n + lane)));
        }
    });
}

/// More callers than ports, and ports of every group.
fn waves<T: Layout>() {
    let rig = Plan::new(3).start::<T>();
    thread::scope(|scope| {
        for hint in 0..8 {
            let client = rig.client(hint);
            scope.spawn(move || {
                (0..50).for_each(|n| assert_eq!(client.call::<Increment>(&n), Ok(n + 1)));
            });
        }
    });
    let rig = Plan::new(1000).start::<T>();
    for hint in [0, 7, 8, 15, 16, 500, 991, 992, 999] {
        assert_eq!(rig.client(hint).call::<Increment>(&1), Ok(2));
    }
    let client = rig.client(0);
    let mut panic = client
        .open_reserved(Opcode::TEST_INCREMENT)
        .unwrap()
        .dynamic();
    panic
        .send_and_recv(
            8,
            |_, p| p.set(&1_u64),
            8,
            |_, p| assert_eq!(p.get::<u64>(), 2),
        )
        .unwrap();
}

fn content(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i * 7 + length) as u8).collect()
}

fn echoes<T: Layout>() {
    let mut plan = Plan::new(8);
    plan.options.pollers = 1;
    let rig = plan.start::<T>();
    let client = rig.client(0);
    let mut bytes = 0;
    for length in (0..=300).chain([1 << 20]) {
        let (sent, mut back) = (content(length), Whole::default());
        client.exchange::<Echo>(&sent, &mut back).unwrap();
        assert!(sent == back.0, "{length} bytes");
        bytes += length as u64;
    }
    // The last reply is seen before it is counted.
    let _ = rig.service.drain(common::LIMIT);
    let counters = rig.service.counters();
    let own = counters.of(Opcode::TEST_STREAM).unwrap();
    assert_eq!(
        (own.calls, own.bytes_in, own.bytes_out),
        (302, bytes, bytes)
    );
}

fn lanes<T: Layout>() {
    let rig = Plan::new(2).start::<T>();
    rig.team(4, |lane, client| {
        assert_eq!(
            client.call::<Increment>(&lane.into()),
            Ok(u64::from(lane) + 1)
        );
        for round in 0..4 {
            // No two lanes have the same length, one has none.
            let sent = content(((lane + round) % 4 * 77) as usize);
            let mut back = Whole::default();
            client.exchange::<Echo>(&sent, &mut back).unwrap();
            assert_eq!(sent, back.0);
        }
    });
    let _ = rig.service.drain(common::LIMIT);
    let counters = rig.service.counters();
    assert_eq!(
        counters
            .of(Opcode::TEST_INCREMENT)
            .map(|c| (c.calls, c.lanes)),
        Some((1, 4))
    );
    assert_eq!(
        counters.of(Opcode::TEST_STREAM).map(|c| (c.calls, c.lanes)),
        Some((4, 16))
    );
}

#[derive(Default)]
struct Bump(Mutex<(u64, HashSet<u64>)>);

impl DeviceMemory for Bump {
    fn allocate(&self, size: u64) -> Option<u64> {
        let mut state = self.0.lock().unwrap();
        let address = state.0 + 64;
        state.0 = address.checked_add(size).filter(|&end| end <= 1 << 20)?;
        state.1.insert(address).then_some(address)
    }

    fn free(&self, address: u64) -> bool {
        self.0.lock().unwrap().1.remove(&address)
    }

    fn copy_to_host(&self, address: u64, into: &mut [u8]) -> Result<(), MemoryError> {
        Err(MemoryError::OutOfRange {
            address,
            length: into.len(),
        })
    }

    fn copy_to_device(&self, from: &[u8], address: u64) -> Result<(), MemoryError> {
        Err(MemoryError::OutOfRange {
            address,
            length: from.len(),
        })
    }
}

fn memory<T: Layout>() {
    let heap = Arc::new(Bump::default());
    let mut plan = Plan::new(4);
    plan.memory = heap.clone();
    let rig = plan.start::<T>();
    let client = rig.client(0);
    let address = client.call::<Malloc>(&1000).unwrap();
    assert_eq!(address, 64);
    assert_eq!(client.call::<Malloc>(&u64::MAX), Ok(0));
    client.notify::<Free>(&address).unwrap();
    assert_eq!(client.call::<Free>(&0), Ok(Empty));
    assert_eq!(client.call::<Free>(&7), Err(Error::Status(Status::INVALID)));
    common::eventually("free", || heap.0.lock().unwrap().1.is_empty());
}

#[derive(Clone, Default)]
struct Sums(Arc<[AtomicU64; 4]>);

impl Observe for Sums {
    fn call_begun(&self, call: &CallInfo) {
        self.0[0].fetch_add(call.mask.count_ones().into(), Relaxed);
    }

    fn call_ended(&self, _: &CallInfo, outcome: &Outcome) {
        self.0[1].fetch_add(outcome.bytes_in, Relaxed);
        self.0[2].fetch_add(u64::from(!outcome.status.is_success()), Relaxed);
    }

    fn scanned(&self, _: usize, busy: bool) {
        self.0[3].fetch_add(busy.into(), Relaxed);
    }
}

fn observed<T: Layout>() {
    let sums = Sums::default();
    let rig = Plan::new(4).start_observed::<T>(sums.clone());
    let client = rig.client(0);
    client.call::<Increment>(&1).unwrap();
    client
        .exchange::<Echo>(&[1; 100], &mut Whole::default())
        .unwrap();
    assert!(client.call::<Free>(&9).is_err());
    let _ = rig.service.drain(common::LIMIT);
    let sum = |n: usize| sums.0[n].load(Relaxed);
    assert_eq!((sum(0), sum(1), sum(2)), (3, 8 + 100 + 8, 1));
    assert!(sum(3) >= 1);
}

/// A handler that waits in the pool holds up nobody, whoever polls its port.
fn blocking<T: Layout>() {
    let mut plan = Plan::new(8);
    plan.options.pollers = 1;
    let gate = Arc::new(Mutex::new(()));
    let handlers = Arc::clone(&gate);
    plan.table
        .conversation(Opcode::user(1), "wait", move |mut conversation| {
            let gate = Arc::clone(&handlers);
            async move {
                let [n] = conversation
                    .recv::<[u64; 1]>()
                    .await?
                    .lowest()
                    .copied()
                    .unwrap_or([0]);
                let n = conversation
                    .blocking(move || n + gate.lock().map_or(0, |_| 1))
                    .await;
                conversation.send(|_| n).await?;
                Ok(Flow::Continue)
            }
        });
    let rig = plan.start::<T>();
    let closed = gate.lock().unwrap();
    thread::scope(|scope| {
        for hint in 0..6 {
            let client = rig.client(hint);
            scope.spawn(move || {
                let mut port = client.open(Opcode::user(1)).unwrap().dynamic();
                let mut got = 0_u64;
                port.send_and_recv(8, |_, p| p.set(&4_u64), 8, |_, p| got = p.get())
                    .unwrap();
                assert_eq!(got, 5);
            });
        }
        common::eventually("waiting in the pool", || {
            let open = rig.service.open_exchanges();
            open.len() == 6
                && open
                    .iter()
                    .all(|e| e.state == rpc_server::ExchangeState::InHandler)
        });
        let client = rig.client(7);
        (0..100).for_each(|n| assert_eq!(client.call::<Increment>(&n), Ok(n + 1)));
        drop(closed);
    });
    common::eventually("all done", || rig.service.open_exchanges().is_empty());
}

fn polls<T: Layout>() {
    for poll in [Poll::Spin, Poll::Adaptive, Poll::Sleep] {
        for pollers in [0, 1, 3, 1000] {
            let mut plan = Plan::new(20);
            plan.options.poll = poll;
            plan.options.pollers = pollers;
            let rig = plan.start::<T>();
            for hint in [0, 8, 19] {
                assert_eq!(rig.client(hint).call::<Increment>(&1), Ok(2));
            }
            assert!(rig.service.stop());
        }
    }
}

/// A procedure that fails for one lane fails for all.
fn more_than_replies<T: Layout>() {
    let mut plan = Plan::new(2);
    plan.table.procedure::<Half>(|call, n| {
        assert!(call.mask >> call.lane & 1 == 1);
        if n % 2 == 0 {
            Ok(n / 2)
        } else {
            Err(Status::INVALID)
        }
    });
    let rig = plan.start::<T>();
    rig.team(4, |lane, client| {
        assert_eq!(client.call::<Half>(&(u64::from(lane) * 2)), Ok(lane.into()));
        assert_eq!(
            client.call::<Half>(&lane.into()),
            Err(Error::Status(Status::INVALID))
        );
        assert_eq!(client.call::<Half>(&8), Ok(4));
    });
}

fn uncounted<T: Layout>() {
    let mut plan = Plan::new(1);
    plan.options.counters = false;
    let rig = plan.start::<T>();
    assert_eq!(rig.client(0).call::<Increment>(&1), Ok(2));
    let unhandled = Err(Error::Status(Status::UNHANDLED));
    assert_eq!(rig.client(0).call::<Half>(&1), unhandled);
    let counters = rig.service.counters();
    assert_eq!(counters.total().calls, 0);
    assert!(counters.of(Opcode::TEST_INCREMENT).is_some());
}

struct Half;

impl Procedure for Half {
    const OPCODE: Opcode = Opcode::user(2);
    const NAME: &'static str = "half";
    type Request = u64;
    type Reply = u64;
}
