//! The three faults that the author of the typestate found in its forerunner, each impossible here.

mod common;

use common::{Link, Memory};
use rpc_port::{Compact, DynamicPort, Error, Line, Opened, Process, Transport};
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
    let owner = |expected: &str| {
        let client_outbox = link.transport.poll_request(0);
        let server_outbox = link.transport.poll_reply(0).parity;
        assert_eq!(link.transport.outbox(0), server_outbox);
        let found = if client_outbox == server_outbox {
            "client"
        } else {
            "server"
        };
        assert_eq!(found, expected);
        assert_eq!(server.is_waiting(0), expected == "server");
    };
    for _ in 0..3 {
        owner("client");
        let mut device = client.try_open(Opcode::NOOP).unwrap().dynamic();
        owner("client");
        send(&mut device, 1);
        owner("server");
        let mut host = server.try_open(0).unwrap().dynamic();
        owner("server");
        send(&mut host, 2);
        owner("client");
        device.begin_recv().unwrap();
        receive(&mut device).unwrap();
        drop((host, device));
        owner("client");
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
