//! The device's side.
//!
//! What only the client needs to know lies in its private memory: which ports are locked, its own
//! outbox, whether a port's last call was asynchronous. So opening a port reads no host memory,
//! except for a port that may still be the server's.

use rpc_bitmap::{Bitmap, Device, Memory};
use rpc_types::layout::STAMP_BITS;
use rpc_types::{Geometry, Opcode, Packet, Status};

use crate::dynamic::{DynamicPort, InPlace};
use crate::error::Error;
use crate::port::{Opened, Port};
use crate::process::Process;
use crate::stream::OwnLength;
use crate::transport::{Request, Transport, WORD_BYTES};
use crate::warp::{Warp, is_leader};

mod ports;
mod slot;
mod wait;

use ports::{FOUND_STAMP, Holding, NOT_FOUND, PORT_MASK, STOPPED, close, encode, search, state};
pub use slot::ClientSlot;
use slot::{Filled, NO_REPLY};

/// How often a wait looks at the stop word: every so many polls.
pub const POLLS_PER_STOP: u32 = 1024;

/// The device's side: opens ports, sends first.
///
/// All operations on a port are done by all lanes of its mask together.
///
/// A typed call orders nothing but its own bytes, since it needs no fence; messages of any length do: a
/// program that passes an address by one, for the host to look behind, says so with
/// [`Procedure::ORDERS_MEMORY`](crate::Procedure::ORDERS_MEMORY).
#[derive(Clone, Debug)]
pub struct Client<T, P, W> {
    transport: T,
    private: P,
    warp: W,
    bulk: u32,
}

impl<T: Transport, P: Memory<Scope = Device>, W: Warp> Client<T, P, W> {
    /// The client over a layout and the private region of the same geometry.
    pub const fn new(transport: T, private: P, warp: W) -> Self {
        Self {
            transport,
            private,
            warp,
            bulk: 0,
        }
    }

    /// Messages of a stream that are at least `bulk` bytes long, and lie where the host can copy
    /// them, travel as their address; 0 for none.
    #[must_use]
    pub const fn with_bulk(mut self, bulk: u32) -> Self {
        self.bulk = bulk;
        self
    }

    /// Whether the host has told the device to end.
    pub fn is_stopped(&self) -> bool {
        self.transport.stopped()
    }

    /// A number for a message that goes in parts, unique while fewer than 2^32 are under way.
    pub fn message_number(&self) -> u32 {
        self.private.fetch_add32(Geometry::MESSAGES, 1)
    }

    /// Says that thread `number`, not 0, panics: 0 if it is the first to do so, its own number if it
    /// has said so before, else another.
    pub fn begin_panic(&self, number: u64) -> u64 {
        self.private
            .compare_exchange64(Geometry::PANICKING, 0, number)
    }

    /// Says that the panic has been reported: nobody's is to be reported after it.
    pub fn end_panic(&self) {
        self.private.store64(Geometry::PANICKING, u64::MAX);
    }

    /// The warp this client runs in.
    pub const fn warp(&self) -> &W {
        &self.warp
    }

    fn busy(&self) -> Bitmap<P> {
        let geometry = self.transport.geometry();
        Bitmap::new(
            self.private.clone(),
            geometry.busy(),
            geometry.total_ports(),
        )
    }

    fn in_flight(&self) -> Bitmap<P> {
        let geometry = self.transport.geometry();
        Bitmap::new(
            self.private.clone(),
            geometry.in_flight(),
            geometry.total_ports(),
        )
    }

    fn state(&self, port: u32) -> usize {
        self.transport.geometry().state(port)
    }

    fn holders(&self, port: u32) -> usize {
        self.transport.geometry().holders(port)
    }

    /// Opens a port for `opcode`, waiting until one is free.
    ///
    /// # Errors
    /// [`Error::Stopped`] when the host ends the run meanwhile.
    #[inline(always)]
    pub fn open(&self, opcode: Opcode) -> Result<Opened<&Self>, Error> {
        let slot = self.open_slot(opcode)?;
        Ok(self.opened(slot))
    }

    #[inline(always)]
    fn opened(&self, slot: ClientSlot) -> Opened<&Self> {
        let odd = slot.sequence & 1 != 0;
        Opened::new(self, slot, odd)
    }

    #[inline(always)]
    fn open_slot(&self, opcode: Opcode) -> Result<ClientSlot, Error> {
        self.slot_by(self.gather(opcode.0), opcode, false)
    }

    /// Opens a port for an opcode that is a constant wherever this is inlined: lanes that are here
    /// together want the same, since no compiler merges operations that lanes do together.
    ///
    /// It gives no port but what one is made of: a port in a `Result` goes through memory that the
    /// compiler cannot keep in registers.
    #[inline(always)]
    pub(crate) fn open_constant(&self, opcode: Opcode) -> Result<ClientSlot, Error> {
        self.slot_by(self.warp.active_mask(), opcode, false)
    }

    /// Opens a port for `opcode` if one is free now.
    #[inline(always)]
    pub fn try_open(&self, opcode: Opcode) -> Option<Opened<&Self>> {
        let mask = self.gather(opcode.0);
        let lead = is_leader(mask, self.warp.lane());
        let mut found = NOT_FOUND;
        if lead {
            let start = self.start(false);
            found = encode(self.lock(start, true));
            if found == NOT_FOUND {
                found = search(self.clone(), start, false, false);
            }
        }
        let slot = self.slot(mask, opcode, found)?;
        Some(self.opened(slot))
    }

    /// Opens the port that is kept for the panic handler, waiting until it is free.
    ///
    /// # Errors
    /// [`Error::Stopped`] when the host ends the run meanwhile.
    #[inline(always)]
    pub fn open_reserved(&self, opcode: Opcode) -> Result<Opened<&Self>, Error> {
        let slot = self.slot_by(self.gather(opcode.0), opcode, true)?;
        Ok(self.opened(slot))
    }

    /// Opens a port as [`open`](Self::open) or, if `reserved`, [`open_reserved`](Self::open_reserved)
    /// does, lets `f` use it and closes it: for code that is to be in a program once.
    ///
    /// # Errors
    /// What `f` returns; [`Error::Stopped`] when the host ends the run meanwhile.
    #[inline(always)]
    pub fn with_port<R>(
        &self,
        opcode: Opcode,
        reserved: bool,
        f: impl FnOnce(&mut DynamicPort<&Self>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let slot = self.slot_by(self.gather(opcode.0), opcode, reserved)?;
        let mut port = InPlace::new(self, slot);
        let result = f(&mut port);
        port.close();
        result
    }

    /// The lanes that are here together and have the same `value`.
    ///
    /// It may differ between lanes that run together, in a function that is called from two places: the
    /// opcode, of which a port carries one, or the port that is given back.
    #[inline(always)]
    fn gather(&self, value: u32) -> u64 {
        let mut mask = self.warp.active_mask();
        loop {
            let leaders = self.warp.broadcast(mask, value.into());
            let agrees = u64::from(value) == leaders;
            let agreed = self.warp.ballot(mask, agrees);
            if agrees {
                return agreed;
            }
            mask &= !agreed;
        }
    }

    #[inline(always)]
    fn slot_by(&self, mask: u64, opcode: Opcode, reserved: bool) -> Result<ClientSlot, Error> {
        let mut found = STOPPED;
        // The leader waits for all; they meet in `broadcast`.
        if is_leader(mask, self.warp.lane()) {
            // The warp's own port first: one atomic where callers are fewer than ports.
            let start = self.start(reserved);
            found = encode(self.lock(start, true));
            if found == NOT_FOUND {
                found = search(self.clone(), start, reserved, true);
            }
        }
        self.slot(mask, opcode, found).ok_or(Error::Stopped)
    }

    /// Every lane of `mask`: takes what the leader found.
    #[inline(always)]
    fn slot(&self, mask: u64, opcode: Opcode, found: u64) -> Option<ClientSlot> {
        let found = self.warp.broadcast(mask, found);
        if found == NOT_FOUND || found == STOPPED {
            return None;
        }
        let (port, stamp) = (
            (found >> 32) as u32 & PORT_MASK,
            (found >> FOUND_STAMP) as u32,
        );
        let sequence = found as u32;
        let mut slot = ClientSlot {
            port,
            mask,
            sequence,
            found: state(sequence, stamp),
            stamp,
            opcode,
            opening: true,
            filled: Filled::Nothing,
            by_lane: self.transport.by_lane(),
            ordered: false,
            was_ordered: false,
            any_ordered: false,
            met: false,
            reply: NO_REPLY,
        };
        self.regain(&mut slot);
        Some(slot)
    }

    /// Every lane of the port, before the first packet is written: orders that behind what the last
    /// holder of the port did with the packets.
    #[inline(always)]
    fn meet(&self, slot: &mut ClientSlot) {
        if slot.met {
            return;
        }
        slot.met = true;
        slot.any_ordered = true;
        // Acquire: the lock, read relaxed, pairs with the release of `unlock` of the last holder that
        // touched the packets; the additions since are part of that release's sequence. What follows
        // are stores to the packets, which are made because the port is locked.
        if is_leader(slot.mask, self.warp.lane()) {
            self.private.acquire_dependent();
        }
        self.warp.sync(slot.mask);
    }

    /// Every lane of the port together gives it back: cheaper than [`close`](Process::close), of which
    /// each lane may have its own.
    #[inline(always)]
    pub(crate) fn close_together(&self, slot: &mut ClientSlot, owned: bool) {
        self.warp.sync(slot.mask);
        self.let_go(slot, owned, slot.mask);
    }

    /// The lanes of `active`, which have met: they are done with the port.
    #[inline(always)]
    fn let_go(&self, slot: &mut ClientSlot, owned: bool, active: u64) {
        if !is_leader(active, self.warp.lane()) {
            return;
        }
        let mut sequence = slot.sequence;
        if owned && matches!(slot.filled, Filled::Words(_)) {
            // Written, but not handed over, so no answer says that these words have come (A9). The next
            // holder's have other numbers, and its stores come after them: release, see `close`.
            slot.order();
            sequence = slot.next();
        }
        let after = state(sequence, slot.stamp);
        if active == slot.mask && owned && !slot.any_ordered {
            self.unlock(slot.port, slot.found, after);
        } else {
            let holding = Holding {
                port: slot.port,
                mask: slot.mask,
                active,
                found: slot.found,
                after,
                owned,
                releases: slot.any_ordered || active != slot.mask,
            };
            close(self.clone(), holding);
        }
    }

    /// Every lane of the port, when this side has got it: before the sequence numbers start again, no
    /// word of the last time may be left.
    #[inline(always)]
    fn regain(&self, slot: &mut ClientSlot) {
        if slot.sequence == u32::MAX {
            self.meet(slot);
            if is_leader(slot.mask, self.warp.lane()) {
                self.transport.restart(slot.port);
            }
            self.warp.sync(slot.mask);
        }
    }

    /// Writes the caller's message: posted stores, nothing is waited for.
    #[inline(always)]
    fn put(&self, slot: &mut ClientSlot, packet: &Packet, bytes: usize) {
        let (port, lane) = (slot.port, self.warp.lane());
        let bytes = bytes.min(T::KIND.payload());
        if self.transport.by_lane() {
            // A second message under the same number: whoever reads this one has to be told by an
            // ordered hand-over.
            if slot.filled != Filled::Nothing {
                slot.order();
            }
            if bytes > 0 {
                let sequence = slot.next();
                self.transport
                    .put_word(port, lane, sequence, packet.words[0]);
                self.transport
                    .put_tails(port, lane, sequence, packet, bytes);
            }
            slot.filled = Filled::Words(bytes);
        } else {
            self.meet(slot);
            let opening = slot.opening.then_some(slot.opcode);
            self.transport.put(port, lane, packet, bytes, opening);
            slot.filled = Filled::Packets;
        }
    }

    /// Hands the leader's finding to all lanes, and what it has acquired with it.
    #[inline(always)]
    fn share(&self, mask: u64, word: u64) -> u64 {
        let word = self.warp.broadcast(mask, word);
        self.warp.sync(mask);
        word
    }

    /// How many packets a lane of a stream has, and the first of `lane`.
    #[inline(always)]
    fn spread(&self, mask: u64, lane: u32) -> (u32, u32) {
        spread::<T>(self.transport.geometry().lanes, mask, lane)
    }
}

/// How many packets each lane of `mask` has in a stream, and which is the first of `lane`.
#[inline(always)]
pub(crate) const fn spread<T: Transport>(lanes: u32, mask: u64, lane: u32) -> (u32, u32) {
    let count = mask.count_ones();
    if !T::SPREADS || count * 2 > lanes || count == 0 {
        return (1, lane);
    }
    let parts = lanes / count;
    let rank = (mask & ((1 << lane) - 1)).count_ones();
    (parts, rank * parts)
}

/// No reply yet.
const PENDING: u64 = u64::MAX;

impl<T: Transport, P: Memory<Scope = Device>, W: Warp> Process for Client<T, P, W> {
    type Slot = ClientSlot;
    type Lengths = OwnLength;
    const STARTS_WITH_PACKET: bool = false;

    fn payload(&self) -> usize {
        T::KIND.payload()
    }

    #[inline(always)]
    fn wait(&self, slot: &mut ClientSlot) -> Result<Status, Error> {
        let result = if slot.by_lane {
            self.wait_by_lane(slot)
        } else {
            let lead = is_leader(slot.mask, self.warp.lane());
            let word = if lead {
                Error::to_word(self.wait_alone(slot))
            } else {
                0
            };
            slot.reply.in_packets = true;
            Error::from_word(self.share(slot.mask, word))
        };
        self.regain(slot);
        result
    }

    #[inline(always)]
    fn try_wait(&self, slot: &mut ClientSlot) -> Result<Option<Status>, Error> {
        let lane = self.warp.lane();
        let status = if slot.by_lane {
            let reply = self.transport.poll_reply(slot.port, lane, slot.sequence);
            if self.warp.ballot(slot.mask, reply.is_some()) != slot.mask {
                return Ok(None);
            }
            match reply {
                Some(reply) => self.accept(slot, reply),
                None => return Ok(None),
            }
        } else {
            let mut word = PENDING;
            if is_leader(slot.mask, lane)
                && let Some(status) = self.look(slot)
            {
                word = Error::to_word(Ok(status));
            }
            slot.reply.in_packets = true;
            match self.share(slot.mask, word) {
                PENDING => return Ok(None),
                word => Error::from_word(word)?,
            }
        };
        self.regain(slot);
        Ok(Some(status))
    }

    #[inline(always)]
    fn post(&self, slot: &mut ClientSlot, _: Status) {
        if T::OPCODE_IN_PACKETS && slot.opening && slot.filled == Filled::Nothing {
            self.put(slot, &Packet::ZERO, 0);
        }
        slot.sequence = slot.next();
        let (bytes, in_packets) = match slot.filled {
            Filled::Nothing => (0, false),
            Filled::Words(bytes) => (bytes, false),
            Filled::Packets => (self.payload(), true),
        };
        slot.was_ordered = slot.ordered || in_packets || !slot.by_lane;
        slot.any_ordered |= slot.was_ordered;
        if slot.was_ordered {
            // All lanes' messages are written before the leader publishes.
            self.warp.sync(slot.mask);
        }
        if is_leader(slot.mask, self.warp.lane()) {
            let request = Request {
                sequence: slot.sequence,
                opcode: slot.opcode,
                mask: slot.mask,
                opening: slot.opening,
                bytes,
                in_packets,
                by_lane: slot.by_lane,
                ordered: slot.ordered,
            };
            self.transport.publish_request(slot.port, &request);
            // A server that has just served this port is awake. Stores to what others write too are
            // not free: those to one line wait for each other on the way.
            let now = self.warp.stamp().map(|now| now % (1 << STAMP_BITS));
            if now != Some(slot.stamp) {
                self.transport.announce(slot.port, slot.sequence);
                slot.stamp = now.unwrap_or(0);
            }
        }
        slot.opening = false;
        slot.filled = Filled::Nothing;
    }

    /// May be called by the lanes of a port in any number of subsets: the last one closes.
    #[inline(always)]
    fn close(&self, slot: &mut ClientSlot, owned: bool) {
        // Others of the mask may be here too that have given this port back before, and hold another.
        let active = self.gather(slot.port);
        self.warp.sync(active);
        self.let_go(slot, owned, active);
    }

    #[inline(always)]
    fn fill(&self, slot: &mut ClientSlot, bytes: usize, mut f: impl FnMut(u32, &mut Packet)) {
        let mut packet = Packet::ZERO;
        f(self.warp.lane(), &mut packet);
        self.put(slot, &packet, bytes);
    }

    #[inline(always)]
    fn take(&self, slot: &mut ClientSlot, bytes: usize, mut f: impl FnMut(u32, &Packet)) {
        let (lane, mut packet) = (self.warp.lane(), Packet::ZERO);
        if slot.reply.in_packets {
            self.transport
                .take(slot.port, lane, &mut packet, bytes.min(self.payload()));
        } else {
            packet = self.numbered(slot, bytes);
        }
        f(lane, &packet);
    }

    #[inline(always)]
    fn apply(&self, slot: &mut ClientSlot, bytes: usize, mut f: impl FnMut(u32, &mut Packet)) {
        let mut copy = Packet::ZERO;
        self.take(slot, bytes, |_, packet| copy = *packet);
        f(self.warp.lane(), &mut copy);
        self.put(slot, &copy, bytes);
    }

    #[inline(always)]
    fn in_words(&self, _: &ClientSlot) -> bool {
        self.transport.by_lane()
    }

    fn parts(&self, slot: &ClientSlot) -> usize {
        self.spread(slot.mask, self.warp.lane()).0 as usize
    }

    #[inline(always)]
    fn each(&self, _: &ClientSlot, mut f: impl FnMut(u32)) {
        f(self.warp.lane());
    }

    #[inline(always)]
    fn load(&self, slot: &ClientSlot, lane: u32, part: usize) -> Packet {
        let mut packet = Packet::ZERO;
        if slot.reply.in_packets {
            let index = self.spread(slot.mask, lane).1 + part as u32;
            self.transport
                .take(slot.port, index, &mut packet, self.payload());
        } else if part == 0 {
            // A part of a longer message is in packets, or is in a word if all there is are lengths of
            // zero. A reply of another kind, to a client that asks for a message where the host has a
            // typed procedure, is taken for an empty one.
            if slot.reply.bytes <= WORD_BYTES {
                packet.words[0] = slot.reply.word;
            }
        }
        packet
    }

    #[inline(always)]
    fn prepare(&self, slot: &mut ClientSlot) {
        self.meet(slot);
    }

    #[inline(always)]
    fn store(&self, slot: &ClientSlot, lane: u32, part: usize, packet: &Packet) {
        let index = self.spread(slot.mask, lane).1 + part as u32;
        let opening = slot.opening.then_some(slot.opcode);
        self.transport
            .put(slot.port, index, packet, self.payload(), opening);
    }

    #[inline(always)]
    fn post_packets(&self, slot: &mut ClientSlot) {
        // The same on all lanes: one whose message is over has stored nothing.
        slot.filled = Filled::Packets;
        self.post(slot, Status::SUCCESS);
    }

    #[inline(always)]
    fn order(&self, slot: &mut ClientSlot) {
        slot.order();
    }

    #[inline(always)]
    fn reference(&self, bytes: &[u8]) -> Option<u64> {
        let bulk = self.refers() && bytes.len() >= self.bulk as usize;
        if bulk {
            self.warp.global_address(bytes)
        } else {
            None
        }
    }

    #[inline(always)]
    fn refers(&self) -> bool {
        self.bulk != 0
    }

    #[inline(always)]
    fn any(&self, slot: &ClientSlot, mut f: impl FnMut(u32) -> bool) -> bool {
        self.warp.any(slot.mask, f(self.warp.lane()))
    }

    fn index(&self, slot: &ClientSlot) -> u32 {
        slot.port
    }

    fn mask(&self, slot: &ClientSlot) -> u64 {
        slot.mask
    }
}

/// A typed port of a client.
pub type ClientPort<'c, T, P, W, const I: bool, const O: bool> = Port<&'c Client<T, P, W>, I, O>;
