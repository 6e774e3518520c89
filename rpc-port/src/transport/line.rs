//! A line of 64 bytes per request, reply words 32 bytes apart.

use rpc_bitmap::{Memory, System};
use rpc_types::layout::{REPLY_STRIDE, REQUEST_STRIDE, request};
use rpc_types::{Geometry, LayoutKind, Opcode, Packet, Status};

use super::{Header, Transport, Turn, words};

/// The layout `Line`. Shared words are only loaded and stored, so it works where the link has no
/// atomic read-modify-writes.
#[derive(Clone, Copy, Debug)]
pub struct Line<M> {
    shared: M,
    geometry: Geometry,
}

impl<M: Memory<Scope = System>> Line<M> {
    #[inline(always)]
    fn request(&self, port: u32) -> usize {
        self.geometry.requests() + port as usize * REQUEST_STRIDE
    }

    #[inline(always)]
    fn reply(&self, port: u32) -> usize {
        self.geometry.replies() + port as usize * REPLY_STRIDE
    }
}

impl<M: Memory<Scope = System>> Transport for Line<M> {
    type Shared = M;
    const KIND: LayoutKind = LayoutKind::Line;

    fn new(shared: M, geometry: Geometry) -> Self {
        Self { shared, geometry }
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
    fn poll_reply(&self, port: u32) -> Turn {
        // Flag and status come in one 8-byte access (A2): a status never belongs to another turn.
        let word = self.shared.load64(self.reply(port));
        Turn {
            parity: word & 1 != 0,
            status: Some(Status((word >> 32) as u32)),
        }
    }

    #[inline(always)]
    fn reply_status(&self, _: u32, turn: Turn) -> Status {
        turn.status.unwrap_or(Status::SUCCESS)
    }

    #[inline(always)]
    fn publish_request(&self, port: u32, sequence: u32, opening: Option<&Header>) {
        let line = self.request(port);
        if let Some(header) = opening {
            self.shared.store32(line + request::OPCODE, header.opcode.0);
            self.shared.store64(line + request::MASK, header.mask);
            self.shared.store32(line + request::OPENED, sequence);
        }
        // Release: pairs with the server's `poll_request`, then `acquire`. The server then sees
        // the packets of all lanes (which `Warp::sync` ordered before this) and the header.
        self.shared.release_fence();
        self.shared.store32(line + request::SEQUENCE, sequence);
    }

    #[inline(always)]
    fn poll_request(&self, port: u32) -> bool {
        self.shared.load32(self.request(port) + request::SEQUENCE) & 1 != 0
    }

    #[inline(always)]
    fn header(&self, port: u32) -> Header {
        let line = self.request(port);
        Header {
            opcode: Opcode(self.shared.load32(line + request::OPCODE)),
            mask: self.shared.load64(line + request::MASK),
            opened: self.opened(port),
        }
    }

    #[inline(always)]
    fn opened(&self, port: u32) -> Option<u32> {
        Some(self.shared.load32(self.request(port) + request::OPENED))
    }

    #[inline(always)]
    fn outbox(&self, port: u32) -> bool {
        // Only this side writes the word, so it finds what it wrote.
        self.shared.load64(self.reply(port)) & 1 != 0
    }

    #[inline(always)]
    fn publish_reply(&self, port: u32, status: Status) {
        let reply = self.reply(port);
        let sequence = (self.shared.load64(reply) as u32).wrapping_add(1);
        // Release: pairs with the client's `poll_reply`, then `acquire`. The client then sees the
        // packets that this thread wrote.
        self.shared.release_fence();
        self.shared
            .store64(reply, u64::from(status.0) << 32 | u64::from(sequence));
    }

    #[inline(always)]
    fn put(&self, port: u32, lane: u32, packet: &Packet, bytes: usize, _: Option<Opcode>) {
        self.shared.write(
            self.geometry.packet(port, lane),
            &packet.words[..words(bytes)],
        );
    }

    #[inline(always)]
    fn take(&self, port: u32, lane: u32, packet: &mut Packet, bytes: usize) {
        self.shared.read(
            self.geometry.packet(port, lane),
            &mut packet.words[..words(bytes)],
        );
    }
}
