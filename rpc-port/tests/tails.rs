//! Messages that are longer than a word, at the transport: each tail word counts by its number.

use rpc_bitmap::{Heap, System};
use rpc_port::Transport;
use rpc_port::transport::{Line, LineOf, Request, Room};
use rpc_types::packet::PACKET_SIZE;
use rpc_types::{Geometry, LayoutKind, Opcode, Packet, Status};

const LANES: u32 = 3;
const MASK: u64 = 0b111;
const PORT: u32 = 1;

fn line() -> Line<Heap<System>> {
    let geometry = Geometry::new(LayoutKind::Line, 2, LANES).unwrap();
    LineOf::with_words(Heap::new(geometry.shared_size()), geometry, true)
}

fn message(lane: u32) -> Packet {
    Packet {
        words: std::array::from_fn(|word| u64::from(lane + 1) << 32 | word as u64),
    }
}

/// All but the tail words of a request.
fn publish(line: &Line<Heap<System>>, sequence: u32, bytes: usize) {
    for lane in 0..LANES {
        line.put_word(PORT, lane, sequence, message(lane).words[0]);
    }
    line.publish_request(
        PORT,
        &Request {
            sequence,
            opcode: Opcode::TEST_STREAM,
            mask: MASK,
            opening: true,
            bytes,
            in_packets: false,
            by_lane: true,
            ordered: false,
        },
    );
}

#[test]
fn a_request_is_here_when_all_its_tail_words_are() {
    for bytes in [9, 20, 21, 33, 45, 57, PACKET_SIZE] {
        let (line, mut room) = (line(), Room::EMPTY);
        let places = line.places();
        publish(&line, 1, bytes);
        for lane in 0..LANES {
            assert!(line.take_request(&places, PORT, 0, &mut room).is_none());
            assert!(line.header(PORT, 0).is_none());
            line.put_tails(PORT, lane, 1, &message(lane), bytes);
        }
        let header = line.take_request(&places, PORT, 0, &mut room).unwrap();
        assert_eq!((header.bytes, header.mask), (bytes, MASK));
        assert!(line.header(PORT, 0).is_some());
        for lane in 0..LANES {
            let (whole, come) = (message(lane), room.packets[lane as usize]);
            assert_eq!(come.bytes()[..bytes], whole.bytes()[..bytes], "{bytes}");
            let mut read = Packet::ZERO;
            line.take_tails(PORT, lane, &mut read, bytes);
            assert_eq!(read.bytes()[8..bytes], whole.bytes()[8..bytes], "{bytes}");
        }
    }
}

#[test]
fn a_reply_is_here_when_all_its_tail_words_are() {
    let (line, mut room) = (line(), Room::EMPTY);
    let places = line.places();
    publish(&line, 1, 8);
    let header = line.take_request(&places, PORT, 0, &mut room).unwrap();
    for lane in 0..LANES {
        room.packets[lane as usize] = message(lane);
        room.words[lane as usize] = message(lane).words[0];
    }
    line.put_reply_words(&places, PORT, &header, PACKET_SIZE, &room.words);
    let take = |lane| {
        let reply = line.poll_reply(PORT, lane, 1).unwrap();
        assert_eq!(
            (reply.bytes, reply.status),
            (PACKET_SIZE, Some(Status::SUCCESS))
        );
        let mut packet = Packet::ZERO;
        packet.words[0] = reply.word;
        line.take_reply_tails(PORT, 1, &reply, (lane, &mut packet), PACKET_SIZE)
            .then_some(packet)
    };
    assert_eq!(take(1), None);
    line.put_reply_tails(&places, PORT, &header, PACKET_SIZE, &room);
    for lane in 0..LANES {
        assert_eq!(take(lane), Some(message(lane)));
    }
    // Who asks for less, or for more than came, gets what there is.
    let mut reply = line.poll_reply(PORT, 0, 1).unwrap();
    reply.bytes = 20;
    let mut packet = Packet::ZERO;
    assert!(line.take_reply_tails(PORT, 1, &reply, (0, &mut packet), PACKET_SIZE));
    assert_eq!(packet.bytes()[8..20], message(0).bytes()[8..20]);
    assert_eq!(packet.bytes()[20..], [0; 44]);
}

/// When the numbers start again, what is left of the last time matches no more.
#[test]
fn tail_words_of_the_last_time_are_cleared() {
    let (line, mut room) = (line(), Room::EMPTY);
    let places = line.places();
    let all = |sequence| {
        for lane in 0..LANES {
            line.put_tails(PORT, lane, sequence, &message(lane), PACKET_SIZE);
        }
    };
    publish(&line, 2, PACKET_SIZE);
    all(2);
    let header = line.take_request(&places, PORT, 1, &mut room).unwrap();
    line.put_reply_tails(&places, PORT, &header, PACKET_SIZE, &room);
    line.put_reply_words(&places, PORT, &header, PACKET_SIZE, &room.words);

    line.restart(PORT);
    publish(&line, 2, PACKET_SIZE);
    assert!(
        line.take_request(&places, PORT, u32::MAX, &mut room)
            .is_none()
    );
    all(2);
    assert!(
        line.take_request(&places, PORT, u32::MAX, &mut room)
            .is_some()
    );

    // The server clears in the middle of the numbers and after the last one, not at each reply.
    assert!(line.poll_reply(PORT, 0, 2).is_some());
    line.before_reply(PORT, 2, 3);
    assert!(line.poll_reply(PORT, 0, 2).is_some());
    line.before_reply(PORT, u32::MAX >> 1, 1 << 31);
    assert!(line.poll_reply(PORT, 0, 2).is_none());
    line.put_reply_words(&places, PORT, &header, PACKET_SIZE, &room.words);
    let reply = line.poll_reply(PORT, 0, 2).unwrap();
    let mut packet = Packet::ZERO;
    assert!(!line.take_reply_tails(PORT, 2, &reply, (0, &mut packet), PACKET_SIZE));
    line.before_reply(PORT, u32::MAX, 2);
    assert!(line.poll_reply(PORT, 0, 2).is_none());
}
