//! The host's side.
//!
//! Nothing that the device writes is trusted: it is read once into local variables, lanes that do
//! not exist are masked off, and whatever else it holds can only make an exchange fail.

use rpc_bitmap::{Device, Memory};
use rpc_types::{Opcode, Packet, Status};

use crate::client::{POLLS_PER_STOP, spread};
use crate::dynamic::DynamicPort;
use crate::error::Error;
use crate::port::Opened;
use crate::process::Process;
use crate::stream::AllLengths;
use crate::transport::{Header, Room, Transport, WORD_BYTES, Words, lanes};
use crate::warp::host_pause;

/// Ports that are looked at together: what a server knows of them lies on a line of its own, so that
/// threads that serve different groups write nothing in common.
pub const GROUP: u32 = 4;
/// Bytes between what is known of two groups: processors fetch two lines at a time.
const GROUP_STRIDE: usize = 128;
/// Behind a group's answered numbers, a word for each port: nonzero while it is open.
const LOCKS: usize = GROUP as usize * 4;

/// The host's side: opens ports that have a request, receives first. One thread stands for all
/// lanes of a port.
#[derive(Clone, Debug)]
pub struct Server<T: Transport, L> {
    transport: T,
    places: T::Places,
    /// Groups of which no port is missing.
    whole_groups: u32,
    memory: L,
}

/// What a server remembers of an open port.
#[derive(Clone, Debug)]
pub struct ServerSlot {
    port: u32,
    header: Header,
    status: Status,
    /// The packets were written since the client handed them over.
    filled: bool,
    /// The messages have been taken, by `try_open_alone`: those in hand, no later ones.
    taken: bool,
}

impl<T: Transport, L: Memory<Scope = Device>> Server<T, L> {
    /// Bytes of memory that a server keeps for itself.
    pub fn memory_size(transport: &T) -> usize {
        transport.geometry().total_ports().div_ceil(GROUP) as usize * GROUP_STRIDE
    }

    /// The server over a layout, with memory of its own for what it knows of each port: at least
    /// [`memory_size`](Self::memory_size) zero bytes.
    ///
    /// # Panics
    /// If the memory is smaller.
    pub fn new(transport: T, memory: L) -> Self {
        // Now, and not when the last port is looked at.
        memory.load32(Self::memory_size(&transport) - size_of::<u32>());
        Self {
            places: transport.places(),
            whole_groups: transport.geometry().total_ports() / GROUP,
            transport,
            memory,
        }
    }

    /// The number of the last request that was answered on `port`. Relaxed: written by the port's
    /// holder, whom the lock orders; to all others a hint.
    #[inline(always)]
    fn answered(&self, port: u32) -> u32 {
        self.memory.load32(answered(port))
    }

    /// Before a reply: its port is the client's from now on.
    #[inline(always)]
    fn answer(&self, slot: &ServerSlot) {
        let sequence = slot.header.sequence;
        self.transport
            .before_reply(slot.port, self.answered(slot.port), sequence);
        self.memory.store32(answered(slot.port), sequence);
    }

    #[inline(always)]
    fn publish(&self, slot: &mut ServerSlot, status: Status) {
        self.answer(slot);
        self.transport
            .publish_reply(slot.port, &slot.header, status, slot.filled);
        slot.filled = false;
    }

    /// The layout.
    pub const fn transport(&self) -> &T {
        &self.transport
    }

    /// Whether `port` has a request that nobody has taken, or one that a conversation waits for:
    /// as the mailboxes are now.
    #[inline]
    pub fn is_waiting(&self, port: u32) -> bool {
        self.transport.poll_request(port, self.answered(port))
    }

    /// What is asked on `port`, if there is a request that is not answered: opcode and lanes.
    pub fn request(&self, port: u32) -> Option<(Opcode, u64)> {
        self.header(port).map(|header| (header.opcode, header.mask))
    }

    /// Opens `port` if it has a request and no other thread has it open.
    ///
    /// # Panics
    /// If there is no such port.
    #[inline]
    pub fn try_open(&self, port: u32) -> Option<Opened<&Self>> {
        let slot = self.open_slot(port)?;
        let parity = self.answered(port) & 1 != 0;
        Some(Opened::new(self, slot, parity))
    }

    /// As [`try_open`](Self::try_open), with a port that keeps the server alive.
    ///
    /// # Panics
    /// If there is no such port.
    #[cfg(feature = "std")]
    pub fn try_open_shared(
        this: &std::sync::Arc<Self>,
        port: u32,
    ) -> Option<Opened<std::sync::Arc<Self>>> {
        let slot = this.open_slot(port)?;
        let parity = this.answered(port) & 1 != 0;
        Some(Opened::new(std::sync::Arc::clone(this), slot, parity))
    }

    fn check(&self, port: u32) {
        let ports = self.transport.geometry().total_ports();
        assert!(port < ports, "there is no port {port}");
    }

    #[inline]
    fn open_slot(&self, port: u32) -> Option<ServerSlot> {
        self.check(port);
        // The cheap look first: most ports have nothing.
        // Acquire: pairs with `unlock` of the last holder.
        if !self.is_waiting(port) || self.memory.fetch_or32_acquire(lock(port), 1) != 0 {
            return None;
        }
        let header = self.header(port);
        if header.is_none() {
            self.unlock(port);
        }
        header.map(|header| ServerSlot::new(port, header))
    }

    /// Release: pairs with the acquire of whoever opens the port next. A store, since nobody else
    /// writes the lock of a port that is open.
    #[inline(always)]
    fn unlock(&self, port: u32) {
        self.memory.release_fence();
        self.memory.store32(lock(port), 0);
    }

    /// As [`try_open`](Self::try_open), for the thread that alone opens this port, and with the
    /// lanes' messages in `room` if they came in numbered words: see [`DynamicPort::has_words`]. What is
    /// there of lanes that do not take part stays.
    ///
    /// There is no atomic exchange in it, since that would wait until the replies before it have
    /// gone all the way to memory. Should two threads open a port in this way, each will take the
    /// request, and its client may get either one's reply.
    ///
    /// # Panics
    /// If there is no such port.
    #[inline(always)]
    pub fn try_open_alone(&self, port: u32, room: &mut Room) -> Option<DynamicPort<&Self>> {
        self.check(port);
        if self.memory.load32(lock(port)) != 0 {
            return None;
        }
        // Acquire: pairs with `unlock` of the last holder, who has written what comes next.
        self.memory.acquire_fence();
        let answered = self.answered(port);
        let header = self
            .transport
            .take_request(&self.places, port, answered, room)?;
        self.memory.store32(lock(port), 1);
        let mut slot = ServerSlot::new(port, header);
        slot.taken = true;
        Some(DynamicPort::open(self, slot))
    }

    /// The ports of group `group` that have a request, as [`is_waiting`](Self::is_waiting) says: a
    /// bit each, the lowest for port `group * GROUP`.
    #[inline(always)]
    pub fn waiting(&self, group: u32) -> u32 {
        let first = group * GROUP;
        if group < self.whole_groups {
            let answered = self
                .memory
                .load32_each::<{ GROUP as usize }>(group as usize * GROUP_STRIDE, 4);
            return self.transport.poll_each(&self.places, first, &answered);
        }
        self.waiting_in_part(first)
    }

    #[cold]
    fn waiting_in_part(&self, first: u32) -> u32 {
        let ports = first..self.transport.geometry().total_ports();
        let waiting = |port| u32::from(self.is_waiting(port)) << (port - first);
        ports.map(waiting).sum()
    }

    /// What tells a server that sleeps of requests of the ports whose summary word is `index`
    /// ([`Transport::announced`]).
    #[inline(always)]
    pub fn announced(&self, index: u32) -> u64 {
        self.transport.announced(&self.places, index)
    }

    /// Group `group` will be looked at soon. A hint.
    #[inline(always)]
    pub fn prefetch(&self, group: u32) {
        self.transport
            .prefetch_flags(&self.places, group * GROUP, GROUP);
    }

    /// `port`, which has a request, will be opened soon. A hint.
    #[inline(always)]
    pub fn prefetch_request(&self, port: u32) {
        self.transport.prefetch_request(&self.places, port);
    }

    /// Answers a message in each lane's word, or in packets if the client does not look there. What is
    /// longer than a word is in the tail words already.
    #[inline(always)]
    pub(crate) fn answer_words(&self, slot: &mut ServerSlot, bytes: usize, words: &Words) {
        if slot.header.by_lane {
            self.answer(slot);
            // Release: as in `send`.
            self.transport.shared().release_fence();
            self.transport
                .put_reply_words(&self.places, slot.port, &slot.header, bytes, words);
            slot.filled = false;
            return;
        }
        if bytes > 0 {
            let set = |lane: u32, packet: &mut Packet| packet.words[0] = words[lane as usize];
            self.fill(slot, bytes, set);
        }
        self.post(slot, Status::SUCCESS);
    }

    /// Answers by what `f` makes of each lane's packet: of `received` bytes before, of `sent` ones
    /// after. If `f` refuses a lane nothing is answered, and this gives `false`.
    #[inline(always)]
    pub(crate) fn answer_packets(
        &self,
        slot: &mut ServerSlot,
        received: usize,
        sent: usize,
        room: &mut Room,
        mut f: impl FnMut(u32, &mut Packet) -> bool,
    ) -> bool {
        let (received, sent) = (received.min(self.payload()), sent.min(self.payload()));
        let by_number = slot.header.by_lane;
        let taken = slot.taken && slot.header.by_number() && slot.header.bytes > WORD_BYTES;
        for lane in lanes(slot.header.mask) {
            let place = lane as usize & 63;
            let packet = &mut room.packets[place];
            if !taken {
                *packet = self.packet(slot, lane, received);
            }
            if !f(lane, packet) {
                return false;
            }
            room.words[place] = packet.words[0];
            if !by_number && sent > 0 {
                self.transport.put(slot.port, lane, packet, sent, None);
            }
        }
        if by_number {
            if sent > WORD_BYTES {
                // Before the first of these is written.
                self.answer(slot);
                self.transport
                    .put_reply_tails(&self.places, slot.port, &slot.header, sent, room);
            }
            self.answer_words(slot, sent, &room.words);
        } else {
            slot.filled = sent > 0;
            self.post(slot, Status::SUCCESS);
        }
        true
    }

    /// The request on `port`, if there is one and all of it has come.
    #[inline]
    fn header(&self, port: u32) -> Option<Header> {
        let answered = self.answered(port);
        if !self.transport.poll_request(port, answered) {
            return None;
        }
        // Acquire: pairs with the client's `publish_request`.
        self.transport.acquire();
        self.transport.header(port, answered)
    }

    #[inline]
    fn spread(&self, slot: &ServerSlot, lane: u32) -> (u32, u32) {
        let lanes = self.transport.geometry().lanes;
        spread::<T>(lanes, slot.header.mask, lane)
    }
}

/// Where the number of the last request that was answered on `port` lies.
const fn answered(port: u32) -> usize {
    (port / GROUP) as usize * GROUP_STRIDE + (port % GROUP) as usize * 4
}

/// Where the lock of `port` lies.
const fn lock(port: u32) -> usize {
    answered(port) + LOCKS
}

impl<T: Transport, L: Memory<Scope = Device>> Process for Server<T, L> {
    type Slot = ServerSlot;
    type Lengths = AllLengths;
    const STARTS_WITH_PACKET: bool = true;

    fn payload(&self) -> usize {
        T::KIND.payload()
    }

    fn wait(&self, slot: &mut ServerSlot) -> Result<Status, Error> {
        let mut polls = 0;
        loop {
            if let Some(status) = self.try_wait(slot)? {
                return Ok(status);
            }
            polls += 1;
            if polls % POLLS_PER_STOP == 0 && self.transport.stopped() {
                return Err(Error::Stopped);
            }
            host_pause(polls);
        }
    }

    #[inline]
    fn try_wait(&self, slot: &mut ServerSlot) -> Result<Option<Status>, Error> {
        let Some(header) = self.header(slot.port) else {
            return Ok(None);
        };
        let anew = header
            .opened
            .is_some_and(|opened| Some(opened) != slot.header.opened);
        if anew || header.mask != slot.header.mask {
            return Err(Error::Abandoned);
        }
        slot.header = Header {
            opcode: slot.header.opcode,
            opened: slot.header.opened,
            ..header
        };
        slot.taken = false;
        Ok(Some(Status::SUCCESS))
    }

    #[inline]
    fn post(&self, slot: &mut ServerSlot, status: Status) {
        slot.status = status;
        self.publish(slot, status);
    }

    /// A server that still owns the packets hands them back; unless it would have to say that the call
    /// failed and cannot, then the port stays its own.
    #[inline]
    fn close(&self, slot: &mut ServerSlot, owned: bool) {
        if owned {
            let status = slot.status;
            if !T::HAS_STATUS && !status.is_success() {
                return;
            }
            // What was filled and not handed over is not sent.
            slot.filled = false;
            self.publish(slot, status);
        }
        self.unlock(slot.port);
    }

    #[inline]
    fn fill(&self, slot: &mut ServerSlot, bytes: usize, mut f: impl FnMut(u32, &mut Packet)) {
        let bytes = bytes.min(self.payload());
        for lane in lanes(slot.header.mask) {
            let mut packet = Packet::ZERO;
            f(lane, &mut packet);
            self.transport.put(slot.port, lane, &packet, bytes, None);
        }
        slot.filled = true;
    }

    #[inline]
    fn send(&self, slot: &mut ServerSlot, bytes: usize, mut f: impl FnMut(u32, &mut Packet)) {
        if !slot.header.by_lane || bytes > WORD_BYTES {
            self.fill(slot, bytes, f);
            return self.post(slot, Status::SUCCESS);
        }
        self.answer(slot);
        // Release: pairs with the client's `accept` after an ordered request. What the handler did
        // with the client's memory is seen then.
        self.transport.shared().release_fence();
        for lane in lanes(slot.header.mask) {
            let mut packet = Packet::ZERO;
            f(lane, &mut packet);
            let sequence = slot.header.sequence;
            self.transport
                .put_reply_word(slot.port, lane, sequence, bytes, packet.words[0]);
        }
        slot.filled = false;
    }

    #[inline]
    fn take(&self, slot: &mut ServerSlot, bytes: usize, mut f: impl FnMut(u32, &Packet)) {
        let bytes = bytes.min(self.payload());
        for lane in lanes(slot.header.mask) {
            f(lane, &self.packet(slot, lane, bytes));
        }
    }

    #[inline]
    fn apply(&self, slot: &mut ServerSlot, bytes: usize, mut f: impl FnMut(u32, &mut Packet)) {
        let bytes = bytes.min(self.payload());
        for lane in lanes(slot.header.mask) {
            let mut packet = self.packet(slot, lane, bytes);
            f(lane, &mut packet);
            self.transport.put(slot.port, lane, &packet, bytes, None);
        }
        slot.filled = true;
    }

    #[inline]
    fn in_words(&self, slot: &ServerSlot) -> bool {
        slot.header.by_lane
    }

    fn parts(&self, slot: &ServerSlot) -> usize {
        self.spread(slot, 0).0 as usize
    }

    #[inline]
    fn each(&self, slot: &ServerSlot, f: impl FnMut(u32)) {
        lanes(slot.header.mask).for_each(f);
    }

    #[inline]
    fn load(&self, slot: &ServerSlot, lane: u32, part: usize) -> Packet {
        let mut packet = Packet::ZERO;
        if slot.header.in_packets {
            let index = self.spread(slot, lane).1 + part as u32;
            self.transport
                .take(slot.port, index, &mut packet, self.payload());
        } else if part == 0 {
            packet = self.numbered(slot, lane, self.payload());
        }
        packet
    }

    fn prepare(&self, _: &mut ServerSlot) {}

    /// The server's always do.
    fn order(&self, _: &mut ServerSlot) {}

    #[inline]
    fn store(&self, slot: &ServerSlot, lane: u32, part: usize, packet: &Packet) {
        let index = self.spread(slot, lane).1 + part as u32;
        self.transport
            .put(slot.port, index, packet, self.payload(), None);
    }

    #[inline]
    fn post_packets(&self, slot: &mut ServerSlot) {
        slot.filled = true;
        self.post(slot, Status::SUCCESS);
    }

    fn any(&self, slot: &ServerSlot, f: impl FnMut(u32) -> bool) -> bool {
        lanes(slot.header.mask).any(f)
    }

    fn index(&self, slot: &ServerSlot) -> u32 {
        slot.port
    }

    fn mask(&self, slot: &ServerSlot) -> u64 {
        slot.header.mask
    }
}

impl<T: Transport, L: Memory<Scope = Device>> Server<T, L> {
    /// The first `bytes` bytes of a lane's message, and zeros.
    #[inline(always)]
    fn packet(&self, slot: &ServerSlot, lane: u32, bytes: usize) -> Packet {
        let mut packet = Packet::ZERO;
        if slot.header.in_packets {
            self.transport.take(slot.port, lane, &mut packet, bytes);
        } else {
            packet = self.numbered(slot, lane, bytes);
        }
        packet
    }

    /// The first `bytes` bytes of a lane's message that came in numbered words, and zeros.
    #[inline(always)]
    fn numbered(&self, slot: &ServerSlot, lane: u32, bytes: usize) -> Packet {
        let mut packet = Packet::ZERO;
        let bytes = bytes.min(slot.header.bytes);
        if bytes > 0 {
            packet.words[0] = self.transport.take_word(slot.port, lane);
            self.transport
                .take_tails(slot.port, lane, &mut packet, bytes);
        }
        packet
    }
}

impl ServerSlot {
    const fn new(port: u32, header: Header) -> Self {
        Self {
            port,
            header,
            status: Status::SUCCESS,
            filled: false,
            taken: false,
        }
    }

    /// Whether the message in hand is in the lanes' words, and has been taken.
    pub(crate) const fn has_words(&self) -> bool {
        self.taken && self.header.in_words()
    }

    /// What the call asks for.
    pub const fn opcode(&self) -> Opcode {
        self.header.opcode
    }

    /// Sets what the client is told when the port is closed while the server owns it.
    pub(crate) const fn fail(&mut self, status: Status) {
        self.status = status;
    }
}
