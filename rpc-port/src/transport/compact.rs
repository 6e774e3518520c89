//! One bit per mailbox, opcodes in the packets.

use rpc_bitmap::{Bitmap, Memory, System};
use rpc_types::layout::next_sequence;
use rpc_types::packet::PACKET_WORDS;
use rpc_types::{Geometry, LayoutKind, Opcode, Packet, Status};

use super::{Header, Reply, Request, Transport};

/// The layout `Compact`. A mailbox bit is flipped by an atomic addition on a word that other
/// threads of the same side flip other bits of; each word has one writing side.
#[derive(Clone, Copy, Debug)]
pub struct Compact<M> {
    requests: Bitmap<M>,
    replies: Bitmap<M>,
    shared: M,
    geometry: Geometry,
}

const LAST: usize = PACKET_WORDS - 1;
const OPCODE_SHIFT: u32 = 48;

impl<M: Memory<Scope = System>> Compact<M> {
    fn status(&self, port: u32) -> usize {
        self.geometry.statuses() + port as usize * 4
    }

    fn opening(&self, port: u32) -> usize {
        self.geometry.openings() + port as usize * 4
    }

    fn mask(&self, port: u32) -> usize {
        self.geometry.masks() + port as usize * 8
    }
}

/// Words that hold `bytes` bytes.
#[inline(always)]
const fn words(bytes: usize) -> usize {
    bytes.div_ceil(8)
}

/// Flips a bit to `value`; it is `!value` before.
#[inline(always)]
fn flip<M: Memory>(bits: &Bitmap<M>, port: u32, value: bool) {
    if value {
        bits.claim(port);
    } else {
        bits.release(port);
    }
}

impl<M: Memory<Scope = System>> Transport for Compact<M> {
    type Shared = M;
    const KIND: LayoutKind = LayoutKind::Compact;
    const OPCODE_IN_PACKETS: bool = true;
    const SPREADS: bool = false;

    type Places = ();

    #[inline(always)]
    fn places(&self) {}

    fn new(shared: M, geometry: Geometry) -> Self {
        let ports = geometry.total_ports();
        Self {
            requests: Bitmap::new(shared.clone(), geometry.requests(), ports),
            replies: Bitmap::new(shared.clone(), geometry.replies(), ports),
            shared,
            geometry,
        }
    }

    #[inline(always)]
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    #[inline(always)]
    fn shared(&self) -> &M {
        &self.shared
    }

    #[inline(always)]
    fn publish_request(&self, port: u32, request: &Request) {
        if request.opening {
            self.shared.store64(self.mask(port), request.mask);
            self.shared.store32(self.opening(port), request.sequence);
        }
        // Release: pairs with the server's `poll_request`, then `acquire`. The server then sees
        // the packets of all lanes (which `Warp::sync` ordered before this) and the mask.
        self.shared.release_fence();
        flip(&self.requests, port, request.sequence & 1 != 0);
    }

    #[inline(always)]
    fn poll_reply(&self, port: u32, _: u32, sequence: u32) -> Option<Reply> {
        (self.replies.read(port) == (sequence & 1 != 0)).then_some(Reply {
            status: None,
            word: 0,
            bytes: 0,
            in_packets: true,
        })
    }

    #[inline(always)]
    fn reply_status(&self, port: u32, _: &Reply) -> Status {
        Status(self.shared.load32(self.status(port)))
    }

    #[inline(always)]
    fn poll_request(&self, port: u32, answered: u32) -> bool {
        self.requests.read(port) != (answered & 1 != 0)
    }

    #[inline(always)]
    fn header(&self, port: u32, answered: u32) -> Option<Header> {
        let mask = self.shared.load64(self.mask(port)) & (u64::MAX >> (64 - self.geometry.lanes));
        let lane = mask.trailing_zeros();
        let opcode = if lane < self.geometry.lanes {
            let mut word = [0];
            self.shared
                .read(self.geometry.packet(port, lane) + LAST * 8, &mut word);
            Opcode::from_compact((word[0] >> OPCODE_SHIFT) as u16)
        } else {
            // No lane, no opcode: one that nobody handles.
            Opcode(u32::MAX)
        };
        Some(Header {
            opcode,
            mask,
            sequence: next_sequence(answered),
            opened: Some(self.shared.load32(self.opening(port))),
            in_packets: true,
            bytes: LayoutKind::Compact.payload(),
            by_lane: false,
        })
    }

    #[inline(always)]
    fn publish_reply(&self, port: u32, header: &Header, status: Status, _: bool) {
        self.shared.store32(self.status(port), status.0);
        // Release: pairs with the client's `poll_reply`, then `acquire`. The client then sees the
        // packets and the status that this thread wrote.
        self.shared.release_fence();
        flip(&self.replies, port, header.sequence & 1 != 0);
    }

    #[inline(always)]
    fn put(&self, port: u32, index: u32, packet: &Packet, bytes: usize, opening: Option<Opcode>) {
        let place = self.geometry.packet(port, index);
        self.shared
            .write(place, &packet.words[..words(bytes).min(LAST)]);
        let compact = match opening {
            // An opcode without a compact form travels as one that nobody handles.
            Some(opcode) => opcode.compact().unwrap_or(u16::MAX),
            None if words(bytes) > LAST => 0,
            None => return,
        };
        let text = packet.words[LAST] & ((1 << OPCODE_SHIFT) - 1);
        self.shared.write(
            place + LAST * 8,
            &[text | u64::from(compact) << OPCODE_SHIFT],
        );
    }

    #[inline(always)]
    fn take(&self, port: u32, index: u32, packet: &mut Packet, bytes: usize) {
        self.shared.read(
            self.geometry.packet(port, index),
            &mut packet.words[..words(bytes)],
        );
    }
}
