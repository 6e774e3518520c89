//! What LLVM's libc expects: a word for each mailbox, opcodes in headers, no status. Its first patch
//! had no headers either.

use rpc_bitmap::{Memory, System};
use rpc_types::layout::{SUMMARY_PORTS, next_sequence};
use rpc_types::{Geometry, LayoutKind, Opcode, Packet, Status};

use super::{Header, Reply, Request, Transport};

/// The layouts of LLVM's libc, by their number. Each mailbox is a word with one writer, which is 0 or
/// 1: the parity of that side's hand-overs.
#[derive(Clone, Copy, Debug)]
pub struct LlvmOf<M, const NUMBER: u32> {
    shared: M,
    geometry: Geometry,
}

/// The layout `Llvm22`: LLVM's releases 20 to 22.
pub type Llvm22<M> = LlvmOf<M, { LayoutKind::Llvm22 as u32 }>;
/// The layout `Llvm`: since April 2026. The doorbell is never rung.
pub type Llvm<M> = LlvmOf<M, { LayoutKind::Llvm as u32 }>;
/// The layout `First`: LLVM's first patch. A call is two hand-overs of each side, the client's second
/// one an acknowledgement without a packet. The opcode is in the first one's packet, where a client
/// of ours, which has no business here, would have to put it by itself.
pub type First<M> = LlvmOf<M, { LayoutKind::First as u32 }>;

/// Bytes from one mailbox to the next.
const MAILBOX: u16 = 4;
/// Mailboxes of each side that are looked at together: more do not stay near, fewer cost checks.
const AT_ONCE: u32 = 32;

/// Where a server finds the mailboxes, worked out once.
#[derive(Clone, Copy, Debug)]
pub struct Mailboxes {
    requests: usize,
    replies: usize,
}

impl Mailboxes {
    #[inline(always)]
    const fn request(&self, port: u32) -> usize {
        self.requests + port as usize * MAILBOX as usize
    }

    #[inline(always)]
    const fn reply(&self, port: u32) -> usize {
        self.replies + port as usize * MAILBOX as usize
    }
}

/// Up to LLVM 19 the opcode had 16 bits, in the same place.
#[inline(always)]
const fn opcode(word: u32) -> Opcode {
    match word {
        0..=0xFFFF => Opcode::from_compact(word as u16),
        _ => Opcode(word),
    }
}

impl<M: Memory<Scope = System>, const NUMBER: u32> LlvmOf<M, NUMBER> {
    #[inline(always)]
    fn request(&self, port: u32) -> usize {
        self.geometry.requests() + port as usize * usize::from(MAILBOX)
    }

    #[inline(always)]
    fn reply(&self, port: u32) -> usize {
        self.geometry.replies() + port as usize * usize::from(MAILBOX)
    }

    #[inline(always)]
    fn header_at(&self, port: u32) -> usize {
        self.geometry.headers() + port as usize * rpc_types::llvm::HEADER_SIZE
    }

    /// What is asked for, and by which lanes.
    #[inline(always)]
    fn asked(&self, port: u32, sequence: u32) -> (Opcode, u64) {
        let mut words = [0; 2];
        if Self::HEADERS {
            self.shared.read(self.header_at(port), &mut words);
            return (opcode(words[1] as u32), words[0]);
        }
        if sequence & 1 == 0 {
            // The acknowledgement of a call whose handler has not waited for it.
            return (Opcode::NOOP, 1);
        }
        self.shared
            .read(self.geometry.packet(port, 0), &mut words[..1]);
        (Opcode::first(words[0]), 1)
    }

    /// Where the mailboxes of any of `N` ports from `first` on differ.
    #[inline(always)]
    fn differing<const N: usize>(&self, places: &Mailboxes, first: u32) -> u32 {
        let requests = self.shared.load32_each::<N>(places.request(first), MAILBOX);
        let replies = self.shared.load32_each::<N>(places.reply(first), MAILBOX);
        let pairs = requests.into_iter().zip(replies);
        pairs.fold(0, |any, (request, reply)| any | request ^ reply)
    }

    const HEADERS: bool = !matches!(Self::KIND, LayoutKind::First);
}

impl<M: Memory<Scope = System>, const NUMBER: u32> Transport for LlvmOf<M, NUMBER> {
    type Shared = M;
    const KIND: LayoutKind = match LayoutKind::from_number(NUMBER) {
        Some(kind) if kind.is_llvm() => kind,
        _ => panic!("no layout of LLVM's"),
    };
    const OPCODE_IN_PACKETS: bool = false;
    const SPREADS: bool = false;
    const HAS_STATUS: bool = false;
    const ANNOUNCES: bool = false;

    type Places = Mailboxes;

    fn places(&self) -> Mailboxes {
        Mailboxes {
            requests: self.geometry.requests(),
            replies: self.geometry.replies(),
        }
    }

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
    fn publish_request(&self, port: u32, request: &Request) {
        if request.opening && Self::HEADERS {
            let header = [request.mask, u64::from(request.opcode.0)];
            self.shared.write(self.header_at(port), &header);
        }
        // Release: pairs with the server's `poll_request`, then `acquire`. The server then sees
        // the packets of all lanes (which `Warp::sync` ordered before this) and the header.
        self.shared.release_fence();
        self.shared
            .store32(self.request(port), request.sequence & 1);
    }

    #[inline(always)]
    fn poll_reply(&self, port: u32, _: u32, sequence: u32) -> Option<Reply> {
        (self.shared.load32(self.reply(port)) & 1 == sequence & 1).then_some(Reply {
            status: None,
            word: 0,
            bytes: 0,
            in_packets: true,
        })
    }

    /// A call that fails is not answered.
    #[inline(always)]
    fn reply_status(&self, _: u32, _: &Reply) -> Status {
        Status::SUCCESS
    }

    #[inline(always)]
    fn poll_request(&self, port: u32, answered: u32) -> bool {
        self.shared.load32(self.request(port)) & 1 != answered & 1
    }

    #[inline(always)]
    fn header(&self, port: u32, answered: u32) -> Option<Header> {
        let sequence = next_sequence(answered);
        let (opcode, mask) = self.asked(port, sequence);
        Some(Header {
            opcode,
            mask: mask & (u64::MAX >> (64 - self.geometry.lanes)),
            sequence,
            // Nothing tells one conversation from the next.
            opened: None,
            in_packets: true,
            bytes: Self::KIND.payload(),
            by_lane: false,
        })
    }

    #[inline(always)]
    fn poll_each<const N: usize>(
        &self,
        places: &Mailboxes,
        first: u32,
        answered: &[u32; N],
    ) -> u32 {
        let requests = self.shared.load32_each::<N>(places.request(first), MAILBOX);
        let has = |(i, (request, answered)): (u32, (u32, &u32))| ((request ^ answered) & 1) << i;
        (0..).zip(requests.into_iter().zip(answered)).map(has).sum()
    }

    #[inline(always)]
    fn publish_reply(&self, port: u32, header: &Header, _: Status, _: bool) {
        // Release: pairs with the client's `poll_reply`, then `acquire`. The client then sees the
        // packets that this thread wrote.
        self.shared.release_fence();
        self.shared.store32(self.reply(port), header.sequence & 1);
    }

    #[inline(always)]
    fn put(&self, port: u32, index: u32, packet: &Packet, bytes: usize, _: Option<Opcode>) {
        let words = &packet.words[..bytes.div_ceil(8)];
        self.shared.write(self.geometry.packet(port, index), words);
    }

    #[inline(always)]
    fn take(&self, port: u32, index: u32, packet: &mut Packet, bytes: usize) {
        let words = &mut packet.words[..bytes.div_ceil(8)];
        self.shared.read(self.geometry.packet(port, index), words);
    }

    /// Clients leave no word.
    #[inline(always)]
    fn announce(&self, _: u32, _: u32) {}

    /// The ports that are the server's now, a bit each.
    #[inline(always)]
    fn announced(&self, places: &Mailboxes, index: u32) -> u64 {
        let first = index * SUMMARY_PORTS;
        let ports = first..(first + SUMMARY_PORTS).min(self.geometry.total_ports());
        // Mostly none is, and a host that idles looks at all of them: one check of bounds for many
        // words, and nothing waits for what was read before.
        let (mut any, mut rest) = (0, ports.clone());
        while rest.len() >= AT_ONCE as usize {
            any |= self.differing::<{ AT_ONCE as usize }>(places, rest.start);
            rest.start += AT_ONCE;
        }
        any = rest.fold(any, |any, port| any | self.differing::<1>(places, port));
        if any & 1 == 0 {
            return 0;
        }
        let bit = |port| u64::from(self.differing::<1>(places, port) & 1);
        ports.rev().fold(0, |bits, port| bits << 1 | bit(port))
    }
}
