//! The three faults that the author of the typestate found in its forerunner, each impossible here.

mod common;

use common::{Link, Memory};
use rpc_bitmap::Memory as _;
use rpc_port::{Client, Compact, DynamicPort, Error, Line, Opened, Process, Transport, Warp};
use rpc_types::layout::request;
use rpc_types::{Opcode, Status};

/// What one side does next, as the other mirrors it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    /// The client sends, the server receives.
    Request,
    /// The server sends, the client receives.
    Reply,
}

fn send<P: Process>(port: &mut DynamicPort<P>, value: u64) {
    assert_eq!(
        port.poll_own(),
        Ok(true),
        "a sender is not kept waiting here"
    );
    port.end_send(8, |_, packet| packet.words[0] = value);
}

fn receive<P: Process>(port: &mut DynamicPort<P>) -> Result<u64, Error> {
    assert!(port.poll_own()?, "what was sent has come");
    let mut value = 0;
    port.end_recv(8, |_, packet| value = packet.words[0]);
    Ok(value)
}

/// Plays a conversation in one thread, in the order in which the two sides would take turns, and
/// closes on both sides.
fn converse<T: Transport<Shared = Memory>>(link: &Link<T>, steps: &[Step]) {
    let (client, server) = (link.client(0), link.server());
    let mut device = client
        .try_open(Opcode::NOOP)
        .expect("the port is free")
        .dynamic();
    let mut host = None;
    for (i, step) in steps.iter().enumerate() {
        let value = i as u64 * 3 + 1;
        match step {
            Step::Request => {
                if i > 0 {
                    // A receive after a receive hands the packets back first.
                    host.as_mut().map(DynamicPort::begin_recv).unwrap().unwrap();
                }
                send(&mut device, value);
                let host = host.get_or_insert_with(|| server.try_open(0).unwrap().dynamic());
                assert_eq!(receive(host), Ok(value));
            }
            Step::Reply => {
                device.begin_recv().unwrap();
                send(host.as_mut().unwrap(), value);
                assert_eq!(receive(&mut device), Ok(value));
            }
        }
    }
    drop((device, host));
    assert!(
        !server.is_waiting(0),
        "nothing is left for the server after {steps:?}"
    );
}

/// Every conversation of up to six steps, odd and even numbers of sends and receives alike, leaves
/// a port that opens again.
fn any_number_of_steps<T: Transport<Shared = Memory>>() {
    let link = Link::<T>::new(1, 1);
    for length in 1..=6_u32 {
        for bits in 0..1_u32 << (length - 1) {
            let mut steps = vec![Step::Request];
            steps.extend((0..length - 1).map(|i| match bits >> i & 1 {
                0 => Step::Request,
                _ => Step::Reply,
            }));
            converse(&link, &steps);
        }
    }
}

#[test]
fn an_odd_number_of_sends_and_receives_blocks_no_port() {
    any_number_of_steps::<Line<Memory>>();
    any_number_of_steps::<Compact<Memory>>();
}

/// A server that gives a port up in any state (a handler that returns early, an error, a panic)
/// leaves it to the client.
fn server_drops<T: Transport<Shared = Memory>>() {
    let link = Link::<T>::new(1, 1);
    let (client, server) = (link.client(0), link.server());
    for state in 0..8 {
        let mut device = client
            .try_open(Opcode::NOOP)
            .expect("the port is free")
            .dynamic();
        send(&mut device, 1);
        let opened = server.try_open(0).expect("there is a request");
        match state % 4 {
            // Opened and nothing else.
            0 => drop(opened),
            // Received.
            1 => {
                let mut host = opened.dynamic();
                receive(&mut host).unwrap();
            }
            // Filled but not handed over: nothing of it is sent.
            2 => match opened {
                Opened::Even(port) => drop(port.fill(8, |_, packet| packet.words[0] = 5)),
                Opened::Odd(port) => drop(port.fill(8, |_, packet| packet.words[0] = 5)),
            },
            // In the middle of a panic.
            _ => {
                let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    let _held = opened;
                    std::panic::resume_unwind(Box::new("handler"));
                }));
                assert!(result.is_err());
            }
        }
        assert_eq!(
            device.poll_own(),
            Ok(true),
            "the client has the port back in state {state}"
        );
        drop(device);
    }
    // Given up after it has answered, while the client owns the packets.
    let mut device = client
        .try_open(Opcode::NOOP)
        .expect("the port is free")
        .dynamic();
    send(&mut device, 1);
    let mut host = server.try_open(0).expect("there is a request").dynamic();
    receive(&mut host).unwrap();
    send(&mut host, 2);
    drop(host);
    device.begin_recv().unwrap();
    assert_eq!(receive(&mut device), Ok(2));
}

#[test]
fn a_server_cannot_leak_a_port() {
    server_drops::<Line<Memory>>();
    server_drops::<Compact<Memory>>();
}

/// Ownership is `inbox == outbox` and nothing besides: at every moment of a conversation exactly
/// one side owns the port, and what each side reads of the two mailboxes says which.
fn one_flag_each<T: Transport<Shared = Memory>>() {
    let link = Link::<T>::new(1, 1);
    let (client, server) = (link.client(0), link.server());
    let mut sent = 0;
    let owner = |sent: u32, expected: &str| {
        // The client's number has come back, or not.
        let answered = link.transport.poll_reply(0, 0, sent).is_some();
        let found = if answered { "client" } else { "server" };
        assert_eq!(found, expected);
        assert_eq!(server.is_waiting(0), expected == "server");
    };
    for _ in 0..3 {
        owner(sent, "client");
        let mut device = client.try_open(Opcode::NOOP).unwrap().dynamic();
        owner(sent, "client");
        send(&mut device, 1);
        sent += 1;
        owner(sent, "server");
        let mut host = server.try_open(0).unwrap().dynamic();
        owner(sent, "server");
        send(&mut host, 2);
        owner(sent, "client");
        device.begin_recv().unwrap();
        receive(&mut device).unwrap();
        drop((host, device));
        owner(sent, "client");
    }
}

#[test]
fn one_flag_each_is_enough() {
    one_flag_each::<Line<Memory>>();
    one_flag_each::<Compact<Memory>>();
}

/// The typed port goes through both parities; a call that ends at an odd one opens at an odd one.
#[test]
fn the_typestate_opens_where_the_last_call_ended() {
    let link = Link::<Line<Memory>>::new(1, 1);
    let (client, server) = (link.client(0), link.server());
    for round in 0..4 {
        let value = round * 2;
        let opened = client.try_open(Opcode::TEST_INCREMENT).unwrap();
        assert_eq!(matches!(opened, Opened::Odd(_)), round % 2 == 1);
        let serve = || match server.try_open(0).unwrap() {
            Opened::Even(port) => drop(port.apply(8, |_, packet| packet.words[0] += 1).post()),
            Opened::Odd(port) => drop(port.apply(8, |_, packet| packet.words[0] += 1).post()),
        };
        let check = |_: u32, packet: &rpc_types::Packet| assert_eq!(packet.words[0], value + 1);
        match opened {
            Opened::Even(port) => {
                let port = port.fill(8, |_, packet| packet.words[0] = value).post();
                serve();
                drop(port.wait().unwrap().take(8, check));
            }
            Opened::Odd(port) => {
                let port = port.fill(8, |_, packet| packet.words[0] = value).post();
                serve();
                drop(port.wait().unwrap().take(8, check));
            }
        }
    }
}

/// The words of a request come in any order: it is taken when all of them are there.
#[test]
fn a_request_is_whole_or_not_there() {
    let link = Link::<Line<Memory>>::new(1, 3);
    let (shared, server) = (link.transport.shared(), link.server());
    let geometry = *link.transport.geometry();
    let meta = request::meta(0x8000, request::OPENING | request::BY_LANE, 8);
    let lane = |lane, sequence: u64, value| {
        shared.store128(geometry.request_word(0, lane), [sequence, value]);
    };
    lane(1, 1, 10);
    assert!(server.try_open(0).is_none(), "no header");
    shared.store128(geometry.request(0), [u64::from(meta) << 32 | 1, 0b110]);
    assert!(server.is_waiting(0));
    assert!(server.try_open(0).is_none(), "one lane is missing");
    assert_eq!(server.request(0), None);
    lane(2, 7, 0);
    assert!(server.try_open(0).is_none(), "that one is of another call");
    lane(2, 1, 20);
    let mut values = Vec::new();
    let mut port = server.try_open(0).expect("all is there").dynamic();
    assert_eq!(
        (port.opcode(), port.mask()),
        (Opcode::TEST_INCREMENT, 0b110)
    );
    let take = |lane, packet: &mut rpc_types::Packet| {
        values.push((lane, packet.words[0]));
        packet.words[0] += 1;
    };
    port.recv_and_send(8, take).unwrap();
    assert_eq!(values, [(1, 10), (2, 20)]);
}

/// Two messages filled under one number: the last one counts, on both sides.
#[test]
fn a_port_filled_twice_sends_the_last() {
    let link = Link::<Line<Memory>>::new(1, 1);
    let (client, server) = (link.client(0), link.server());
    let Some(Opened::Even(port)) = client.try_open(Opcode::NOOP) else {
        panic!("the first call is at an even number");
    };
    let set = |value: u64| move |_: u32, packet: &mut rpc_types::Packet| packet.words[0] = value;
    let port = port.fill(64, set(1)).fill(8, set(2)).fill(8, set(3)).post();
    let Some(Opened::Even(host)) = server.try_open(0) else {
        panic!("and so is its request");
    };
    let host = host.take(8, |_, packet| assert_eq!(packet.words[0], 3));
    drop(host.fill(8, set(4)).fill(64, set(5)).post());
    let check = |_: u32, packet: &rpc_types::Packet| assert_eq!(packet.words[0], 5);
    drop(port.wait().unwrap().take(8, check));
}

/// A client that gives a call up half-way and begins another: the server learns of it.
fn abandoned<T: Transport<Shared = Memory>>() {
    let link = Link::<T>::new(1, 1);
    let (client, server) = (link.client(0), link.server());
    let mut device = client.try_open(Opcode::user(1)).unwrap().dynamic();
    send(&mut device, 1);
    let mut host = server.try_open(0).unwrap().dynamic();
    receive(&mut host).unwrap();
    // The server wants more; the client takes the packets back and goes away.
    host.begin_recv().unwrap();
    assert_eq!(device.poll_own(), Ok(true));
    drop(device);
    let mut device = client.try_open(Opcode::user(2)).unwrap().dynamic();
    send(&mut device, 7);
    assert_eq!(host.poll_own(), Err(Error::Abandoned));
    drop(host);
    let mut host = server
        .try_open(0)
        .expect("the new request is still there")
        .dynamic();
    assert_eq!(host.opcode(), Opcode::user(2));
    assert_eq!(receive(&mut host), Ok(7));
    assert!(host.end(Status::SUCCESS).is_ok());
    assert_eq!(device.poll_own(), Ok(true));
}

#[test]
fn an_abandoned_conversation_is_noticed() {
    abandoned::<Line<Memory>>();
    abandoned::<Compact<Memory>>();
}

/// A warp with a clock that stands still until it is told otherwise.
#[derive(Clone)]
struct Clocked(std::rc::Rc<std::cell::Cell<u32>>);

impl Warp for Clocked {
    fn active_mask(&self) -> u64 {
        1
    }

    fn lane(&self) -> u32 {
        0
    }

    fn broadcast(&self, _: u64, value: u64) -> u64 {
        value
    }

    fn ballot(&self, _: u64, value: bool) -> u64 {
        value.into()
    }

    fn sync(&self, _: u64) {}

    fn pause(&self, _: u32) {
        std::thread::yield_now();
    }

    fn stamp(&self) -> Option<u32> {
        Some(self.0.get())
    }

    fn port_hint(&self) -> u32 {
        0
    }
}

/// A sleeping server is told of a request, one that has just served the port is not.
#[test]
fn a_quiet_port_is_announced() {
    let link = Link::<Line<Memory>>::new(1, 1);
    let clock = Clocked(std::rc::Rc::new(std::cell::Cell::new(5)));
    let client = Client::new(link.transport.clone(), link.private.clone(), clock.clone());
    let server = link.server();
    let mut last = server.announced(0);
    for (time, told) in [
        (5, true),
        (5, false),
        (5 + (1 << 14), false),
        (6, true),
        (6, false),
        (5, true),
    ] {
        clock.0.set(time);
        let mut device = client.try_open(Opcode::NOOP).unwrap().dynamic();
        send(&mut device, 1);
        drop(server.try_open(0).expect("it is there, told or not"));
        assert_eq!(device.poll_own(), Ok(true));
        let now = server.announced(0);
        assert_eq!(now != last, told, "at {time}");
        last = now;
    }
}
