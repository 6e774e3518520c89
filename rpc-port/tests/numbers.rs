//! Numbers that start again, at the transport and the server: no lane takes a reply of the last time.

mod common;

use common::{Link, TestServer};
use rpc_port::Transport;
use rpc_port::transport::{Line, Reply, Request, Room};
use rpc_types::layout::next_sequence;
use rpc_types::packet::{PACKET_SIZE, WORD_BYTES};
use rpc_types::{Opcode, Packet, Status};

type TestLine = Line<common::Memory>;

const LANES: u32 = 3;
const PORT: u32 = 0;
const ALL: u64 = 0b111;
const LONE: u64 = 0b001;

/// Of one round of the numbers, in order: the first ones and the last, and where the highest bit changes.
const ROUND: [u32; 6] = [2, 3, u32::MAX >> 1, 1 << 31, u32::MAX - 1, u32::MAX];

/// Another one for each lane and call.
fn message(lane: u32, call: u64) -> Packet {
    Packet {
        words: std::array::from_fn(|word| call << 32 | u64::from(lane) << 8 | word as u64),
    }
}

/// The client's half of a call: publishes, and at once each lane looks for its reply, which cannot be
/// there.
fn ask(line: &TestLine, mask: u64, sequence: u32, call: u64, bytes: usize) {
    for lane in 0..LANES {
        if mask >> lane & 1 != 0 {
            let packet = message(lane, call);
            line.put_word(PORT, lane, sequence, packet.words[0]);
            line.put_tails(PORT, lane, sequence, &packet, bytes);
        }
    }
    let request = Request {
        sequence,
        opcode: Opcode::TEST_STREAM,
        mask,
        opening: true,
        bytes,
        in_packets: false,
        by_lane: true,
        ordered: false,
    };
    line.publish_request(PORT, &request);
    for lane in (0..LANES).filter(|lane| mask >> lane & 1 != 0) {
        let reply = line.poll_reply(PORT, lane, sequence);
        assert_eq!(reply, None, "lane {lane}, call {call}, number {sequence}");
        // And should its word come before its tail words, these do not match either.
        let reply = Reply {
            status: Some(Status::SUCCESS),
            word: 0,
            bytes,
            in_packets: false,
        };
        let mut packet = Packet::ZERO;
        let tails = line.take_reply_tails(PORT, sequence, &reply, (lane, &mut packet), bytes);
        assert_eq!(tails, bytes <= WORD_BYTES, "lane {lane}, number {sequence}");
    }
}

/// The server's half: sends back what has come.
fn answer(server: &TestServer<TestLine>, bytes: usize, room: &mut Room) {
    let mut port = server.try_open_alone(PORT, room).expect("all has come");
    assert!(port.answer_packets(bytes, bytes, room, |_, _| true));
}

fn check(line: &TestLine, mask: u64, sequence: u32, call: u64, bytes: usize) {
    for lane in (0..LANES).filter(|lane| mask >> lane & 1 != 0) {
        let reply = line.poll_reply(PORT, lane, sequence).expect("answered");
        let mut packet = Packet::ZERO;
        packet.words[0] = reply.word;
        assert!(line.take_reply_tails(PORT, sequence, &reply, (lane, &mut packet), bytes));
        let sent = message(lane, call);
        assert_eq!(packet.bytes()[..bytes], sent.bytes()[..bytes]);
    }
}

/// Two rounds and the beginning of a third; each bit of `lone` is a call of lane 0 alone. Whatever is
/// between the numbers that are left out can be calls of lane 0 alone too: they leave the other lanes'
/// words as they are.
fn rounds(lone: u32, bytes: usize) {
    let link = Link::<TestLine>::new(1, LANES);
    if !link.transport.by_lane() {
        return; // no lanes' words on this machine
    }
    let (line, server, mut room) = (&link.transport, link.server(), Room::EMPTY);
    let numbers = ROUND.iter().chain(&ROUND).chain(&ROUND[..2]);
    for (call, &sequence) in numbers.enumerate() {
        let mask = if lone >> call & 1 != 0 { LONE } else { ALL };
        let call = call as u64;
        ask(line, mask, sequence, call, bytes);
        answer(&server, bytes, &mut room);
        check(line, mask, sequence, call, bytes);
        if sequence == u32::MAX {
            assert_eq!(next_sequence(sequence), ROUND[0]);
            line.restart(PORT);
        }
    }
}

/// The second hand-over was by all lanes, everything after it up to the last number by one lane.
#[test]
fn a_reply_to_number_2_is_not_taken_again() {
    for bytes in [WORD_BYTES, PACKET_SIZE] {
        rounds(0b11_1110, bytes);
    }
}

#[test]
fn no_reply_is_taken_again() {
    for bytes in [WORD_BYTES, PACKET_SIZE] {
        for lone in 0..1 << (2 * ROUND.len() + 2) {
            rounds(lone, bytes);
        }
    }
}
