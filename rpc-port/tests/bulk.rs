//! Messages by reference: a client whose memory the host can copy, against a server that follows
//! `docs/protocol.md` by hand.
#![allow(missing_docs)]

mod common;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;

use common::{Link, Memory, TestServer};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use rpc_port::procedure::{Echo, Increment};
use rpc_port::stream::{AllLengths, Lengths, Prefix};
use rpc_port::transport::LineOf;
use rpc_port::{Client, Compact, DynamicPort, Error, Line, Sink, TeamWarp, Transport, Warp};
use rpc_types::stream::{Answer, REFERENCE};
use rpc_types::{Opcode, Packet, Status};

/// From how many bytes on messages travel by reference.
const BULK: usize = 300;
const LANES: u32 = 4;

/// A lane some of whose memory the host cannot copy, as a GPU's stack is.
#[derive(Clone)]
struct Reaching {
    warp: TeamWarp,
    /// Addresses of what it cannot.
    hidden: [u64; 2],
}

impl Warp for Reaching {
    fn active_mask(&self) -> u64 {
        self.warp.active_mask()
    }
    fn lane(&self) -> u32 {
        self.warp.lane()
    }
    fn broadcast(&self, mask: u64, value: u64) -> u64 {
        self.warp.broadcast(mask, value)
    }
    fn ballot(&self, mask: u64, value: bool) -> u64 {
        self.warp.ballot(mask, value)
    }
    fn sync(&self, mask: u64) {
        self.warp.sync(mask);
    }
    fn pause(&self, polls: u32) {
        self.warp.pause(polls);
    }
    fn global_address(&self, bytes: &[u8]) -> Option<u64> {
        let address = bytes.as_ptr().expose_provenance() as u64;
        (!self.hidden.contains(&address)).then_some(address)
    }
    fn port_hint(&self) -> u32 {
        self.warp.port_hint()
    }
}

/// What went by reference.
#[derive(Debug, Default)]
struct Seen {
    fetched: AtomicU64,
    placed: AtomicU64,
    declined: AtomicU64,
}

impl Seen {
    fn take(&self) -> [u64; 3] {
        [&self.fetched, &self.placed, &self.declined].map(|count| count.swap(0, SeqCst))
    }
}

/// Whole messages, some of which are somewhere else.
#[derive(Default)]
struct Messages {
    whole: BTreeMap<u32, Vec<u8>>,
    elsewhere: BTreeMap<u32, (u64, usize)>,
}

impl Sink for Messages {
    fn begin(&mut self, lane: u32, _: u64) -> bool {
        self.whole.insert(lane, Vec::new()).is_none()
    }
    fn chunk(&mut self, lane: u32, bytes: &[u8]) {
        self.whole.get_mut(&lane).unwrap().extend_from_slice(bytes);
    }
    fn refer(&mut self, lane: u32, length: u64, address: u64) -> bool {
        self.elsewhere.insert(lane, (address, length as usize));
        self.begin(lane, length)
    }
}

type ServerPort<'s, T> = DynamicPort<&'s TestServer<T>>;

/// Sends `message` in packets; lanes of `referred` are told a length.
fn send<T: Transport<Shared = Memory>>(
    port: &mut ServerPort<'_, T>,
    message: &dyn Fn(u32) -> Vec<u8>,
    referred: &BTreeMap<u32, u64>,
) -> Result<(), Error> {
    let all: Vec<_> = (0..64).map(message).collect();
    let mut cursor = port.cursor();
    loop {
        while !port.poll_own()? {
            thread::yield_now();
        }
        let refer = |_: &&TestServer<T>, lane: u32| {
            referred.get(&lane).map(|length| [length | REFERENCE, 0])
        };
        port.end_send_part::<true>(&cursor, |lane| &all[lane as usize], refer);
        cursor.advance();
        if !port.any(|lane| cursor.more(all[lane as usize].len() as u64)) {
            return Ok(());
        }
    }
}

/// Serves increments, and echoes by the rules of messages by reference.
fn serve<T: Transport<Shared = Memory>>(
    mut port: ServerPort<'_, T>,
    seen: &Seen,
) -> Result<(), Error> {
    if port.opcode() == Opcode::TEST_INCREMENT {
        return port.recv_and_send(8, |_, packet| packet.words[0] += 1);
    }
    let mut messages = Messages::default();
    port.recv_n(&mut messages)?;
    for (&lane, &(address, length)) in &messages.elsewhere {
        assert!(length >= BULK);
        let start = std::ptr::with_exposed_provenance::<u8>(address as usize);
        // SAFETY: the client has exposed the address of so many bytes, and does not change them
        // before it is answered.
        let bytes = unsafe { std::slice::from_raw_parts(start, length) };
        messages.whole.insert(lane, bytes.to_vec());
        seen.fetched.fetch_add(1, SeqCst);
    }
    if !messages.elsewhere.is_empty() {
        port.send(0, |_, _| ())?;
    }
    // The same back.
    let of = |lane: u32| messages.whole.get(&lane).cloned().unwrap_or_default();
    let long = |(lane, bytes): (&u32, &Vec<u8>)| {
        (bytes.len() >= BULK).then_some((*lane, bytes.len() as u64))
    };
    let referred: BTreeMap<u32, u64> = messages.whole.iter().filter_map(long).collect();
    let short = |lane: u32| {
        if referred.contains_key(&lane) {
            Vec::new()
        } else {
            of(lane)
        }
    };
    send(&mut port, &short, &referred)?;
    if referred.is_empty() {
        return Ok(());
    }
    let mut declined = BTreeMap::new();
    port.recv(size_of::<Answer>(), |lane, packet| {
        let Answer { address, room } = packet.get();
        if !referred.contains_key(&lane) {
            return;
        }
        let message = of(lane);
        if address == 0 {
            declined.insert(lane, message);
            seen.declined.fetch_add(1, SeqCst);
            return;
        }
        let count = message.len().min(room as usize);
        let place = std::ptr::with_exposed_provenance_mut::<u8>(address as usize);
        // SAFETY: the client has exposed the address of so much room, and does not touch it before
        // it is answered.
        unsafe { place.copy_from_nonoverlapping(message.as_ptr(), count) };
        seen.placed.fetch_add(1, SeqCst);
    })?;
    let rest = |lane: u32| declined.get(&lane).cloned().unwrap_or_default();
    send(&mut port, &rest, &BTreeMap::new())
}

/// Where a lane wants what comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    /// It takes chunks.
    None,
    /// So many bytes.
    Of(usize),
    /// So many, where the host cannot reach.
    Hidden(usize),
}

/// A sink that notes how it was used.
struct Noted {
    room: Option<Vec<u8>>,
    chunks: Vec<u8>,
    begun: Vec<u64>,
    filled: Option<usize>,
}

impl Sink for Noted {
    fn begin(&mut self, _: u32, length: u64) -> bool {
        self.begun.push(length);
        true
    }
    fn chunk(&mut self, _: u32, bytes: &[u8]) {
        self.chunks.extend_from_slice(bytes);
    }
    fn room(&mut self, _: u32) -> Option<&mut [u8]> {
        self.room.as_deref_mut()
    }
    fn filled(&mut self, _: u32, bytes: usize) {
        assert_eq!(self.filled.replace(bytes), None);
    }
}

/// What one lane does.
#[derive(Clone, Copy, Debug)]
struct Case {
    length: usize,
    /// The host can copy the message.
    reach: bool,
    room: Room,
}

impl Case {
    fn is_fetched(self) -> bool {
        self.reach && self.length >= BULK
    }

    /// Bytes that are put into the room, if any are.
    fn is_placed(self) -> Option<usize> {
        match self.room {
            // A reply for which the room is that short is no bulk.
            Room::Of(room) if self.length >= BULK && room >= BULK => Some(room.min(self.length)),
            _ => None,
        }
    }

    fn counts(self) -> [u64; 3] {
        let placed = self.is_placed().is_some();
        [
            self.is_fetched().into(),
            placed.into(),
            (self.length >= BULK && !placed).into(),
        ]
    }

    /// Sends and receives, and checks everything on the client's side.
    fn run<T: Transport<Shared = Memory>>(self, link: &Link<T>, warp: &TeamWarp, keep: bool) {
        let lane = warp.lane() as usize;
        let message: Vec<u8> = (0..self.length).map(|i| (i * 7 + lane + 1) as u8).collect();
        let room = match self.room {
            Room::None => None,
            Room::Of(room) | Room::Hidden(room) => Some(vec![0; room]),
        };
        let mut hidden = [0; 2];
        if !self.reach {
            hidden[0] = message.as_ptr() as u64;
        }
        if let (Room::Hidden(_), Some(room)) = (self.room, &room) {
            hidden[1] = room.as_ptr() as u64;
        }
        let warp = warp.clone();
        let client = Client::new(
            link.transport.clone(),
            link.private.clone(),
            Reaching { warp, hidden },
        )
        .with_bulk(BULK as u32);
        let mut sink = Noted {
            room,
            chunks: Vec::new(),
            begun: Vec::new(),
            filled: None,
        };
        if keep {
            let mut kept = client.keep().unwrap();
            assert_eq!(kept.call::<Increment>(&1), Ok(2));
            kept.exchange::<Echo>(&message, &mut sink).unwrap();
            assert_eq!(kept.call::<Increment>(&7), Ok(8));
        } else {
            client.exchange::<Echo>(&message, &mut sink).unwrap();
        }
        let (begun, filled) = (&sink.begun, sink.filled);
        assert_eq!(
            (&begun[..], filled),
            (&[self.length as u64][..], self.is_placed())
        );
        if let Some(count) = filled {
            let room = sink.room.unwrap_or_default();
            assert!(room[..count] == message[..count] && room[count..].iter().all(|b| *b == 0));
            assert_eq!(sink.chunks, []);
        } else {
            assert!(sink.chunks == message);
        }
    }
}

const LENGTHS: [usize; 9] = [0, 1, 56, BULK - 1, BULK, BULK + 1, 2 * BULK, 1999, 20_000];
const ROOMS: [Room; 8] = [
    Room::None,
    Room::Of(0),
    Room::Of(BULK - 1),
    Room::Of(BULK),
    Room::Of(2 * BULK),
    Room::Of(30_000),
    Room::Hidden(100),
    Room::Hidden(30_000),
];

/// Every kind of message with every kind of room, on a lane that is alone or kept its port.
fn one_lane<T: Transport<Shared = Memory> + Send + Sync>() {
    let (link, seen) = (Link::<T>::new(2, 1), Seen::default());
    let warps = TeamWarp::team(1, 0);
    link.serve(
        |port| serve(port, &seen),
        || {
            for (i, length) in LENGTHS.into_iter().enumerate() {
                for (j, room) in ROOMS.into_iter().enumerate() {
                    for reach in [true, false] {
                        let case = Case {
                            length,
                            reach,
                            room,
                        };
                        case.run(&link, &warps[0], (i + j) % 2 == 0);
                        assert_eq!(seen.take(), case.counts(), "{case:?}");
                    }
                }
            }
        },
    );
}

/// References from some lanes and packets from others, both ways, whichever lanes take part.
fn mixed_lanes<T: Transport<Shared = Memory> + Send + Sync>() {
    let (link, seen) = (Link::<T>::new(2, LANES), Seen::default());
    let warps = TeamWarp::team(LANES, 0);
    let lengths = proptest::sample::select(LENGTHS[..8].to_vec());
    let rooms = proptest::sample::select(ROOMS.to_vec());
    let case = (lengths, any::<bool>(), rooms).prop_map(|(length, reach, room)| Case {
        length,
        reach,
        room,
    });
    let cases = proptest::collection::vec(case, LANES as usize);
    link.serve(
        |port| serve(port, &seen),
        || {
            let mut runner = TestRunner::new(Config {
                cases: 60,
                ..Config::default()
            });
            let all = (cases, 1..1_u64 << LANES, any::<bool>());
            runner
                .run(&all, |(cases, mask, keep)| {
                    let mut counts = [0; 3];
                    thread::scope(|scope| {
                        for (warp, case) in warps.iter().zip(cases) {
                            if mask >> warp.lane() & 1 == 0 {
                                continue;
                            }
                            for (sum, count) in counts.iter_mut().zip(case.counts()) {
                                *sum += count;
                            }
                            warp.converge(mask);
                            let link = &link;
                            scope.spawn(move || case.run(link, warp, keep));
                        }
                    });
                    prop_assert_eq!(seen.take(), counts);
                    Ok(())
                })
                .unwrap();
        },
    );
}

/// A client that is told a length it does not want ends the conversation; the port goes on.
fn unwanted<T: Transport<Shared = Memory> + Send + Sync>() {
    struct Refusing;
    impl Sink for Refusing {
        fn begin(&mut self, _: u32, _: u64) -> bool {
            false
        }
        fn chunk(&mut self, _: u32, _: &[u8]) {
            panic!("it was refused");
        }
    }
    let (link, seen) = (Link::<T>::new(1, 1), Seen::default());
    let message = [9; 2 * BULK];
    link.serve(
        |port| serve(port, &seen),
        || {
            let client = link.client(0).with_bulk(BULK as u32);
            for length in [2 * BULK, BULK - 1, 0, BULK] {
                let refused = client.exchange::<Echo>(&message[..length], &mut Refusing);
                assert_eq!(refused, Err(Error::Status(Status::TOO_LONG)));
                assert_eq!(client.call::<Increment>(&1), Ok(2));
                let mut back = [0; 2 * BULK];
                let mut sink = Prefix::new(&mut back);
                client.exchange::<Echo>(&message, &mut sink).unwrap();
                assert_eq!(sink.length(), 2 * BULK as u64);
                assert_eq!(back, message);
            }
        },
    );
}

/// What is on the wire: the first packets, word by word.
fn words<T: Transport<Shared = Memory> + Send + Sync>() {
    let link = Link::<T>::new(1, LANES);
    let message = [5; BULK];
    let address = message.as_ptr() as u64;
    let mut room = [0; BULK + 10];
    let place = room.as_ptr() as u64;
    let first = |port: &mut ServerPort<'_, T>| {
        let mut words = [0; 2];
        let taken = port.recv(16, |_, packet| words.copy_from_slice(&packet.words[..2]));
        taken.map(|()| words)
    };
    link.serve(
        |mut port| {
            let length = BULK as u64;
            assert_eq!(first(&mut port)?, [length | REFERENCE, address]);
            port.send(0, |_, _| ())?;
            port.recv(0, |_, _| ())?;
            port.send(8, |_, packet| packet.words[0] = (length - 1) | REFERENCE)?;
            assert_eq!(first(&mut port)?, [place, length + 10]);
            let mut lengths = AllLengths::ZERO;
            assert_eq!(*lengths.of(0), 0);
            port.send(8, |_, _: &mut Packet| ())
        },
        || {
            let client = link.client(0).with_bulk(BULK as u32);
            let mut sink = Prefix::new(&mut room);
            assert_eq!(client.exchange::<Echo>(&message, &mut sink), Ok(()));
            assert_eq!(sink.length(), BULK as u64 - 1);
        },
    );
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
        suite!(one_lane, mixed_lanes, unwanted, words; $layout as $module);
    };
}

/// `Line` where 16 bytes are not read in one access.
type Plain<M> = LineOf<M, false>;

suite!(Line as line);
suite!(Plain as plain);
suite!(Compact as compact);
