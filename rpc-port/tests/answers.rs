//! Calls that are answered at once, by [`DynamicPort::answer_words`] and
//! [`DynamicPort::answer_packets`], in ways that a quick procedure never asks for.

mod common;

use common::{Link, Memory};
use rpc_port::transport::{LineOf, Room};
use rpc_port::{Compact, DynamicPort, Line, Llvm, Llvm22, Process, Transport};
use rpc_types::{Opcode, Packet};

/// Makes a test for each layout of generic functions.
macro_rules! on_all_layouts {
    ($($test:ident),* $(,)?) => {
        $(#[test] fn $test() {
            each::$test::<Line<Memory>>();
            each::$test::<LineOf<Memory, false>>();
            each::$test::<Compact<Memory>>();
            each::$test::<Llvm22<Memory>>();
            each::$test::<Llvm<Memory>>();
        })*
    };
}

on_all_layouts!(
    a_word_has_eight_bytes,
    each_message_is_answered_by_itself,
    words_are_those_of_the_opening,
);

/// A message that is not that of any other number.
fn message(number: u64) -> Packet {
    let mut packet = Packet::ZERO;
    for (word, place) in packet.words.iter_mut().enumerate() {
        *place = (number << 32) + word as u64 + 1;
    }
    packet
}

fn send<P: Process>(port: &mut DynamicPort<P>, bytes: usize, number: u64) {
    assert_eq!(port.poll_own(), Ok(true));
    port.end_send(bytes, |_, packet| *packet = message(number));
}

fn receive<P: Process>(port: &mut DynamicPort<P>, bytes: usize) -> Packet {
    let mut received = Packet::ZERO;
    assert_eq!(port.poll_own(), Ok(true), "what was sent has come");
    port.end_recv(bytes, |_, packet| received = *packet);
    received
}

mod each {
    use super::*;

    pub(super) fn a_word_has_eight_bytes<T: Transport<Shared = Memory>>() {
        for bytes in [0, 3, 8, 9, 16, 64, 1000, usize::MAX] {
            let (link, mut room) = (Link::<T>::new(1, 1), Room::EMPTY);
            let (client, server) = (link.client(0), link.server());
            let mut device = client.try_open(Opcode::NOOP).unwrap().dynamic();
            send(&mut device, 8, 1);
            let mut host = server.try_open_alone(0, &mut room).unwrap();
            room.words[0] = 77;
            host.answer_words(bytes, &room.words);
            drop(host);
            // A client waits for all that the reply promises.
            let reply = link.transport.poll_reply(0, 0, 1).unwrap();
            assert!(reply.bytes <= 8, "{} bytes of a word", reply.bytes);
            if bytes > 0 {
                device.begin_recv().unwrap();
                assert_eq!(receive(&mut device, 8).words[0], 77, "{bytes}");
            }
        }
    }

    pub(super) fn each_message_is_answered_by_itself<T: Transport<Shared = Memory>>() {
        for bytes in [8, 24, 64] {
            // In numbered words as far as there are some.
            let bytes = bytes.min(T::KIND.payload());
            let (link, mut room) = (Link::<T>::new(1, 1), Room::EMPTY);
            let (client, server) = (link.client(0), link.server());
            let mut device = client.try_open(Opcode::NOOP).unwrap().dynamic();
            send(&mut device, bytes, 1);
            let mut host = server.try_open_alone(0, &mut room).unwrap();
            for number in 1..4 {
                let mut come = Packet::ZERO;
                let answered = host.answer_packets(bytes, bytes, &mut room, |_, packet| {
                    come = *packet;
                    *packet = message(number + 10);
                    true
                });
                assert!(answered);
                let sent = message(number);
                assert_eq!(come.bytes()[..bytes], sent.bytes()[..bytes], "{number}");
                device.begin_recv().unwrap();
                let (received, made) = (receive(&mut device, bytes), message(number + 10));
                assert_eq!(received.bytes()[..bytes], made.bytes()[..bytes], "{number}");
                send(&mut device, bytes, number + 1);
                host.begin_recv().unwrap();
                assert_eq!(host.poll_own(), Ok(true));
            }
        }
    }

    pub(super) fn words_are_those_of_the_opening<T: Transport<Shared = Memory>>() {
        let (link, mut room) = (Link::<T>::new(1, 1), Room::EMPTY);
        let (client, server) = (link.client(0), link.server());
        let mut device = client.try_open(Opcode::NOOP).unwrap().dynamic();
        send(&mut device, 8, 1);
        let mut host = server.try_open_alone(0, &mut room).unwrap();
        if host.has_words() {
            assert_eq!(room.words[0], message(1).words[0]);
        }
        host.answer_words(8, &room.words);
        device.begin_recv().unwrap();
        receive(&mut device, 8);
        send(&mut device, 8, 2);
        host.begin_recv().unwrap();
        assert_eq!(host.poll_own(), Ok(true));
        assert!(!host.has_words(), "nobody has taken these");
        drop(host);
        // What is not taken alone leaves nothing in anybody's room.
        drop(device);
        let mut device = client.try_open(Opcode::NOOP).unwrap().dynamic();
        send(&mut device, 8, 3);
        let host = server.try_open(0).unwrap().dynamic();
        assert!(!host.has_words());
    }
}
