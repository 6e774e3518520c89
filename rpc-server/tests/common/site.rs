//! A service that gets messages by reference.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex};

use rpc_port::procedure::Increment;
use rpc_port::{DynamicPort, Error, Process};
use rpc_server::Flow;
use rpc_types::Opcode;

use super::lab::{self, BASE, Kind, Lab, Sent};
use super::{Layout, Plan, Rig, eventually};

/// From this many bytes on the server sends by reference.
pub const BULK: u64 = 1000;
/// What is received in pieces; the reply is the length.
pub const PIECES: Opcode = Opcode::user(1);
/// What is received as a whole; the reply is the length.
pub const WHOLE: Opcode = Opcode::user(2);

/// What is sent where it is only to take a while.
pub const LONG: u64 = 90_000;

pub const KINDS: [Kind; 5] = [
    // Everything by the pool.
    kind(0, 4096, 0),
    kind(1, 4096, 3),
    kind(2, 4096, 7),
    kind(2, 1 << 20, 0),
    // A buffer that holds nothing is none.
    kind(3, 0, 1),
];

pub const fn kind(buffers: usize, size: usize, polls: usize) -> Kind {
    Kind {
        buffers,
        size,
        polls,
    }
}

type Messages = Arc<Mutex<BTreeMap<u32, Vec<u8>>>>;

/// A service over a lab, and what its handlers have received last, by lane.
pub struct Site<T: Layout> {
    pub rig: Rig<T>,
    pub lab: Arc<Lab>,
    received: Messages,
}

impl<T: Layout> Site<T> {
    pub fn new(kind: Kind) -> Self {
        Self::planned(kind, |_| ())
    }

    pub fn planned(kind: Kind, change: impl FnOnce(&mut Plan)) -> Self {
        let lab = Lab::new(kind);
        let received = Messages::default();
        let mut plan = Plan::new(4);
        plan.memory = lab.clone();
        plan.options.bulk = BULK;
        plan.options.pollers = 1;
        let messages = received.clone();
        plan.table.conversation(PIECES, "pieces", move |mut port| {
            let messages = messages.clone();
            async move {
                let mut got = BTreeMap::<u32, (Vec<u8>, bool)>::new();
                port.recv_pieces(|lane, piece| {
                    let (bytes, over) = got.entry(lane).or_default();
                    assert!(!*over, "nothing comes after the last piece");
                    assert_eq!(piece.offset, bytes.len() as u64);
                    bytes.extend_from_slice(piece.bytes);
                    *over = piece.is_last();
                    assert!(bytes.len() as u64 <= piece.length);
                    assert_eq!(bytes.len() as u64 == piece.length, *over);
                })
                .await?;
                assert!(got.values().all(|(_, over)| *over));
                let got = got.into_iter().map(|(lane, (bytes, _))| (lane, bytes));
                *messages.lock().unwrap() = got.collect();
                let length = |lane| messages.lock().unwrap()[&lane].len() as u64;
                port.send(length).await?;
                Ok(Flow::Continue)
            }
        });
        let messages = received.clone();
        plan.table.conversation(WHOLE, "whole", move |mut port| {
            let messages = messages.clone();
            async move {
                let got = port.recv_n().await?;
                port.send(|lane| got.of(lane).len() as u64).await?;
                let got = got.iter().map(|(lane, bytes)| (lane, bytes.clone()));
                *messages.lock().unwrap() = got.collect();
                Ok(Flow::Continue)
            }
        });
        change(&mut plan);
        Self {
            rig: plan.start(),
            lab,
            received,
        }
    }

    /// Sends a message by reference; the reply.
    pub fn refer(&self, opcode: Opcode, address: u64, length: u64) -> Result<u64, Error> {
        let client = self.rig.client(0);
        count(
            &mut client.open(opcode)?.dynamic(),
            Sent::Reference(address, length),
        )
    }

    /// Everything works, and nothing is lent.
    pub fn is_whole(&self) {
        assert_eq!(self.rig.client(0).call::<Increment>(&1), Ok(2));
        for opcode in [PIECES, WHOLE] {
            assert_eq!(self.refer(opcode, BASE + 7, 5000), Ok(5000));
            self.has_received(0, &self.lab.at(BASE + 7, 5000));
        }
        eventually("all buffers back", || self.lab.has_all());
    }

    pub fn has_received(&self, lane: u32, message: &[u8]) {
        // The reply may be there before the record.
        eventually("the message", || {
            self.received.lock().unwrap().get(&lane).map(Vec::as_slice) == Some(message)
        });
    }

    pub fn is_copying(&self) {
        eventually("a copy", || self.lab.calls.load(SeqCst) > 0);
    }
}

/// Sends a message; the number that is the reply.
pub fn count<P: Process>(port: &mut DynamicPort<P>, sent: Sent<'_>) -> Result<u64, Error> {
    lab::send(port, sent)?;
    let mut number = 0;
    port.recv(8, |_, packet| number = packet.get())?;
    Ok(number)
}
