//! Words of 16 bytes that carry their flag with them; packets for what is longer.

use rpc_bitmap::{Memory, System, words_here};
use rpc_types::layout::{LINE, WORD, reply, request, tail};
use rpc_types::packet::{PACKET_SIZE, TAILS, tails};
use rpc_types::{Geometry, LayoutKind, Opcode, Packet, Status};

use super::{Header, Reply, Request, Room, Transport, WORD_BYTES, Words, lanes};

mod places;
mod tails;

pub use places::Places;

/// The layout `Line`. Shared words are only loaded and stored, so it works where the link has no
/// atomic read-modify-writes.
///
/// A word that carries the number of the request it belongs to needs no order: whoever reads it in
/// one access (A8) has the message with the number. Numbers do not come again, see
/// [`next_sequence`](rpc_types::layout::next_sequence).
///
/// A client with `WORDS` off, or on a machine without such accesses, has all its messages in
/// packets and one flag that is read alone; servers serve both.
#[derive(Clone, Copy, Debug)]
pub struct LineOf<M, const WORDS: bool> {
    shared: M,
    geometry: Geometry,
    words: bool,
}

/// The layout `Line`, with words where the machine has them.
pub type Line<M> = LineOf<M, true>;

/// Both halves of a word's first 8 bytes.
#[inline(always)]
const fn pack(sequence: u32, meta: u32) -> u64 {
    (meta as u64) << 32 | sequence as u64
}

/// Clears the words of all lanes. By value, so that a caller can keep its transport in registers.
#[cold]
#[inline(never)]
#[allow(clippy::needless_pass_by_value)]
fn clear_requests<M: Memory>(shared: M, geometry: Geometry, port: u32) {
    // Not known to the compiler, which would unroll this, and images are compiled when they start.
    for lane in 0..core::hint::black_box(geometry.lanes) {
        shared.store128(geometry.request_word(port, lane), [0; 2]);
        for tail in 0..TAILS {
            let place = geometry.request_tail(port, lane) + tail * geometry.tail_row();
            shared.store128(place, [0; 2]);
        }
    }
    // Release: a lane that writes its word after it has met this one in `Warp::sync` writes it
    // after this.
    shared.release_fence();
}

/// As [`clear_requests`], what the server writes.
#[cold]
#[inline(never)]
#[allow(clippy::needless_pass_by_value)]
fn clear_replies<M: Memory>(shared: M, geometry: Geometry, port: u32) {
    // The same thread writes the reply after this, to the same words, behind a release fence. What is
    // cleared would match half a round of numbers later.
    for lane in 0..geometry.lanes {
        shared.store128(geometry.reply_word(port, lane), [0; 2]);
        for tail in 0..TAILS {
            let place = geometry.reply_tail(port, lane) + tail * geometry.tail_row();
            shared.store128(place, [0; 2]);
        }
    }
}

impl<M: Memory<Scope = System>, const WORDS: bool> LineOf<M, WORDS> {
    /// The layout over a shared region of [`Geometry::shared_size`] bytes. A client uses words of 16
    /// bytes if `words` says that both sides read and write them in one access; a server does as its
    /// client.
    pub const fn with_words(shared: M, geometry: Geometry, words: bool) -> Self {
        Self {
            shared,
            geometry,
            words,
        }
    }

    /// Whether each lane's word has come, and its tail words.
    #[inline(always)]
    fn lanes_are_here(&self, port: u32, header: &Header) -> bool {
        // Relaxed and read again by `take_word`: a word that has this number keeps it until this
        // side answers.
        let is_here =
            |lane| self.shared.load32(self.geometry.request_word(port, lane)) == header.sequence;
        lanes(header.mask).all(is_here) && self.tails_are_here(port, header)
    }

    /// What the header word says.
    #[inline(always)]
    fn read_header(&self, block: usize) -> Header {
        // Number, opcode and mask in one access (A8), or acquired after the number.
        let [flag, mask] = self.shared.load128(block);
        let (sequence, meta) = (flag as u32, (flag >> 32) as u32);
        let has = |bit| meta & bit != 0;
        Header {
            opcode: if has(request::LONG_OPCODE) {
                // Acquire: pairs with the client's `publish_request`, which released the opcode's word
                // before the header. Here, so that other opcodes do without where the header needs none.
                self.acquire();
                Opcode(self.shared.load32(block + request::OPCODE))
            } else {
                Opcode::from_compact(request::opcode(meta))
            },
            mask: mask & (u64::MAX >> (64 - self.geometry.lanes)),
            sequence,
            opened: has(request::OPENING).then_some(sequence),
            in_packets: has(request::IN_PACKETS),
            // The device's to choose.
            bytes: request::bytes(meta).min(PACKET_SIZE),
            by_lane: has(request::BY_LANE),
        }
    }
}

impl<M: Memory<Scope = System>, const WORDS: bool> Transport for LineOf<M, WORDS> {
    type Shared = M;
    const KIND: LayoutKind = LayoutKind::Line;
    const OPCODE_IN_PACKETS: bool = false;
    const SPREADS: bool = true;

    type Places = Places;

    fn places(&self) -> Places {
        Places::new(&self.geometry)
    }

    fn new(shared: M, geometry: Geometry) -> Self {
        let words = WORDS && M::WORDS && words_here();
        Self::with_words(shared, geometry, words)
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
    fn by_lane(&self) -> bool {
        WORDS && M::WORDS && self.words
    }

    #[inline(always)]
    fn put_word(&self, port: u32, lane: u32, sequence: u32, word: u64) {
        // Relaxed: pairs with the server's `take_word`, by the number in the same word (A8).
        self.shared.store128(
            self.geometry.request_word(port, lane),
            [pack(sequence, 0), word],
        );
    }

    #[inline(always)]
    fn put_tails(&self, port: u32, lane: u32, sequence: u32, packet: &Packet, bytes: usize) {
        let first = self.geometry.request_tail(port, lane);
        for tail in 0..tails(bytes) {
            // Relaxed: pairs with the server's `take_tails`, by the number in the same word (A8).
            self.shared.store128(
                first + tail * self.geometry.tail_row(),
                tail::pack(sequence, packet.tail(tail)),
            );
        }
    }

    #[inline(always)]
    fn publish_request(&self, port: u32, request: &Request) {
        let block = self.geometry.request(port);
        let mut flags = 0;
        let mut ordered = request.ordered || request.in_packets;
        if request.opening {
            flags |= request::OPENING;
        }
        if request.in_packets {
            flags |= request::IN_PACKETS;
        }
        let compact = request.opcode.compact().unwrap_or_else(|| {
            flags |= request::LONG_OPCODE;
            ordered = true;
            self.shared
                .store32(block + request::OPCODE, request.opcode.0);
            u16::MAX
        });
        if request.by_lane {
            flags |= request::BY_LANE;
        }
        if self.by_lane() {
            if ordered {
                // Release: pairs with the server's `poll_request`, then `acquire`. The server then
                // sees the packets of all lanes (which `Warp::sync` ordered before this).
                self.shared.release_fence();
            }
            // Relaxed unless ordered: opcode and mask come with the number (A8).
            let meta = request::meta(compact, flags, request.bytes);
            self.shared
                .store128(block, [pack(request.sequence, meta), request.mask]);
        } else {
            let meta = request::meta(compact, flags, request.bytes);
            self.shared.store32(block + 4, meta);
            self.shared.store64(block + 8, request.mask);
            // Release: as above; the header too is seen by then.
            self.shared.release_fence();
            self.shared.store32(block, request.sequence);
        }
    }

    #[inline(always)]
    fn poll_reply(&self, port: u32, lane: u32, sequence: u32) -> Option<Reply> {
        let place = self.geometry.reply_word(port, lane);
        let [flag, word] = if self.by_lane() {
            // Message, status and number in one access (A8).
            self.shared.load128(place)
        } else {
            // Status and number in one access (A2).
            [self.shared.load64(place), 0]
        };
        let meta = (flag >> 32) as u32;
        (flag as u32 == sequence).then_some(Reply {
            status: Some(Status(reply::status(meta))),
            word,
            bytes: reply::bytes(meta),
            in_packets: meta & reply::IN_PACKETS != 0,
        })
    }

    #[inline(always)]
    fn take_reply_tails(
        &self,
        port: u32,
        sequence: u32,
        reply: &Reply,
        (lane, packet): (u32, &mut Packet),
        bytes: usize,
    ) -> bool {
        let first = self.geometry.reply_tail(port, lane);
        let mut others = 0;
        // Of a reply that is shorter the rest is zeros. The number of turns is the caller's constant,
        // so that the packet stays in registers.
        let there = tails(reply.bytes);
        for tail in 0..tails(bytes) {
            // Number and bytes in one access (A8).
            let word = self.shared.load128(first + tail * self.geometry.tail_row());
            let (number, bytes) = tail::unpack(word);
            if tail < there {
                others |= number ^ sequence;
                packet.set_tail(tail, bytes);
            }
        }
        others == 0
    }

    #[inline(always)]
    fn reply_status(&self, _: u32, reply: &Reply) -> Status {
        reply.status.unwrap_or(Status::SUCCESS)
    }

    #[inline(always)]
    fn restart(&self, port: u32) {
        clear_requests(self.shared.clone(), self.geometry, port);
    }

    #[inline(always)]
    fn poll_request(&self, port: u32, answered: u32) -> bool {
        self.shared.load32(self.geometry.request(port)) != answered
    }

    #[inline(always)]
    fn header(&self, port: u32, _: u32) -> Option<Header> {
        let header = self.read_header(self.geometry.request(port));
        let here = !header.by_number() || self.lanes_are_here(port, &header);
        here.then_some(header)
    }

    #[inline(always)]
    fn take_request(
        &self,
        places: &Places,
        port: u32,
        answered: u32,
        room: &mut Room,
    ) -> Option<Header> {
        let block = places.request(port);
        if !self.by_lane() {
            if self.shared.load32(block) == answered {
                return None;
            }
            // The header is not one access here: it is read after its number.
            self.acquire();
        }
        let header = self.read_header(block);
        if header.sequence == answered {
            return None;
        }
        // Acquire: pairs with the client's `publish_request`.
        self.acquire();
        if !header.by_number() {
            return Some(header);
        }
        // One access (A8) each: a word with this number came with it.
        let mut others = 0;
        self.shared.load128_each::<1>(
            block + request::LANES,
            0,
            header.mask,
            |lane, [[flag, word]]| {
                others |= flag as u32 ^ header.sequence;
                room.words[lane as usize & 63] = word;
            },
        );
        if header.bytes > WORD_BYTES {
            others |= self.take_all_rows(places, port, &header, room);
        }
        (others == 0).then_some(header)
    }

    #[inline(always)]
    fn poll_each<const N: usize>(&self, places: &Places, first: u32, answered: &[u32; N]) -> u32 {
        let flags: [u32; N] = self
            .shared
            .load32_each(places.request(first), places.request_stride as u16);
        // One branch for most groups.
        let others = flags.iter().zip(answered);
        if others.fold(0, |others, (flag, answered)| others | (flag ^ answered)) == 0 {
            return 0;
        }
        let has = |(i, answered): (usize, &u32)| u32::from(flags[i] != *answered) << i;
        answered.iter().enumerate().map(has).sum()
    }

    #[inline(always)]
    fn prefetch_flags(&self, places: &Places, first: u32, count: u32) {
        let mut place = places.request(first);
        for _ in 0..count {
            self.shared.prefetch(place, false);
            place += places.request_stride;
        }
    }

    #[inline(always)]
    fn prefetch_request(&self, places: &Places, port: u32) {
        // A look at the mask, where the flag is, saves fetching what nobody writes.
        let block = places.request(port);
        let mask = self.shared.load64(block + 8) & places.lanes;
        let bytes = (u64::BITS - mask.leading_zeros()) as usize * WORD;
        for place in (0..bytes).step_by(LINE) {
            self.shared.prefetch(block + request::LANES + place, false);
        }
        for place in (0..bytes).step_by(LINE) {
            self.shared.prefetch(places.reply(port) + place, true);
        }
        let meta = (self.shared.load64(block) >> 32) as u32;
        let message = request::bytes(meta).min(PACKET_SIZE);
        if message > WORD_BYTES && meta & request::IN_PACKETS == 0 {
            // In the order in which they lie: processors go on by themselves.
            let bytes = tails(message) * places.tail_row;
            for place in (0..bytes).step_by(LINE) {
                self.shared
                    .prefetch(places.request_tail(port) + place, false);
            }
            for place in (0..bytes).step_by(LINE) {
                self.shared.prefetch(places.reply_tail(port) + place, true);
            }
        }
    }

    #[inline(always)]
    fn put_reply_words(
        &self,
        places: &Places,
        port: u32,
        header: &Header,
        bytes: usize,
        words: &Words,
    ) {
        let meta = reply::meta(Status::SUCCESS.0, 0, bytes);
        let flag = pack(header.sequence, meta);
        // Relaxed: as in `put_reply_word`.
        self.shared
            .store128_each::<1>(places.reply(port), 0, header.mask, |lane| {
                [[flag, words[lane as usize & 63]]]
            });
    }

    #[inline(always)]
    fn take_word(&self, port: u32, lane: u32) -> u64 {
        // One access (A8) to a word that `header` has seen with its number.
        self.shared.load128(self.geometry.request_word(port, lane))[1]
    }

    #[inline(always)]
    fn take_tails(&self, port: u32, lane: u32, packet: &mut Packet, bytes: usize) {
        let first = self.geometry.request_tail(port, lane);
        for tail in 0..tails(bytes) {
            // One access (A8) to a word that `header` has seen with its number.
            let word = self.shared.load128(first + tail * self.geometry.tail_row());
            packet.set_tail(tail, tail::unpack(word).1);
        }
    }

    #[inline(always)]
    fn put_reply_tails(
        &self,
        places: &Places,
        port: u32,
        header: &Header,
        bytes: usize,
        room: &Room,
    ) {
        self.put_all_rows(places, port, header, bytes, room);
    }

    #[inline(always)]
    fn put_reply_word(&self, port: u32, lane: u32, sequence: u32, bytes: usize, word: u64) {
        let meta = reply::meta(Status::SUCCESS.0, 0, bytes);
        // Relaxed: pairs with `poll_reply` of the same lane, by the number in the same word (A8).
        self.shared.store128(
            self.geometry.reply_word(port, lane),
            [pack(sequence, meta), word],
        );
    }

    #[inline(always)]
    fn publish_reply(&self, port: u32, header: &Header, status: Status, in_packets: bool) {
        let status = if status.0 > reply::MAX_STATUS {
            Status::SERVER_ERROR
        } else {
            status
        };
        let flags = if in_packets { reply::IN_PACKETS } else { 0 };
        let flag = pack(header.sequence, reply::meta(status.0, flags, 0));
        // Release: pairs with the client's `poll_reply`, then `acquire`. The client then sees the
        // packets that this thread wrote.
        self.shared.release_fence();
        if header.by_lane {
            for lane in lanes(header.mask) {
                self.shared
                    .store128(self.geometry.reply_word(port, lane), [flag, 0]);
            }
        } else if header.mask != 0 {
            let leader = header.mask.trailing_zeros();
            self.shared
                .store64(self.geometry.reply_word(port, leader), flag);
        }
    }

    #[inline(always)]
    fn put(&self, port: u32, index: u32, packet: &Packet, bytes: usize, _: Option<Opcode>) {
        let (units, _) = packet.words.as_chunks::<2>();
        for (unit, words) in units.iter().enumerate().take(bytes.div_ceil(WORD)) {
            self.shared
                .write16(self.geometry.unit(port, index, unit), *words);
        }
    }

    #[inline(always)]
    fn take(&self, port: u32, index: u32, packet: &mut Packet, bytes: usize) {
        let (units, _) = packet.words.as_chunks_mut::<2>();
        for (unit, words) in units.iter_mut().enumerate().take(bytes.div_ceil(WORD)) {
            *words = self.shared.read16(self.geometry.unit(port, index, unit));
        }
    }

    #[inline(always)]
    fn before_reply(&self, port: u32, answered: u32, sequence: u32) {
        // Whenever the numbers enter their other half, so what was left of this half the last time is
        // gone long before it could match: a client looks for a reply as soon as it has published the
        // request, and to clear only when number 2 is answered would be too late for that one.
        if (sequence ^ answered) >> 31 != 0 {
            clear_replies(self.shared.clone(), self.geometry, port);
        }
    }
}
