//! The device's side.
//!
//! What only the client needs to know lies in its private memory: which ports are locked, its own
//! outbox, whether a port's last call was asynchronous. So opening a port reads no host memory,
//! except for a port that may still be the server's.

use rpc_bitmap::{Bitmap, Device, Memory};
use rpc_types::{Opcode, Packet, Status};

use crate::error::Error;
use crate::port::{Opened, Port};
use crate::process::Process;
use crate::stream::OwnLength;
use crate::transport::{Header, Transport};
use crate::warp::{Warp, is_leader};

/// How often a wait looks at the stop word: every so many polls.
pub const POLLS_PER_STOP: u32 = 1024;

const IN_FLIGHT: u64 = 1 << 32;

/// The device's side: opens ports, sends first.
///
/// All operations on a port are done by all lanes of its mask together.
#[derive(Clone, Debug)]
pub struct Client<T, P, W> {
    transport: T,
    private: P,
    warp: W,
}

/// What a client remembers of an open port; the same in all its lanes.
///
/// Packets are not kept here: a lane fills or takes one in registers and copies it at once.
#[derive(Debug)]
pub struct ClientSlot {
    port: u32,
    mask: u64,
    /// Sequence number of the last hand-over.
    sequence: u32,
    opcode: Opcode,
    /// Nothing was handed over yet.
    opening: bool,
    /// The packet was written since the last hand-over.
    filled: bool,
}

impl<T: Transport, P: Memory<Scope = Device>, W: Warp> Client<T, P, W> {
    /// The client over a layout and the private region of the same geometry.
    pub const fn new(transport: T, private: P, warp: W) -> Self {
        Self {
            transport,
            private,
            warp,
        }
    }

    /// The layout.
    pub const fn transport(&self) -> &T {
        &self.transport
    }

    /// The private region.
    pub const fn private(&self) -> &P {
        &self.private
    }

    /// The warp this client runs in.
    pub const fn warp(&self) -> &W {
        &self.warp
    }

    fn locks(&self) -> Bitmap<P> {
        let geometry = self.transport.geometry();
        Bitmap::new(
            self.private.clone(),
            geometry.locks(),
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
        self.transport.geometry().states() + port as usize * 8
    }

    fn holders(&self, port: u32) -> usize {
        self.transport.geometry().holders() + port as usize * 8
    }

    /// Opens a port for `opcode`, waiting until one is free.
    ///
    /// # Errors
    /// [`Error::Stopped`] when the host ends the run meanwhile.
    #[inline(always)]
    pub fn open(&self, opcode: Opcode) -> Result<Opened<&Self>, Error> {
        let ports = self.transport.geometry().ports;
        self.open_by(opcode, |attempt| {
            self.find(self.warp.port_hint().wrapping_add(attempt), ports)
        })
    }

    /// Opens a port for `opcode` if one is free now.
    #[inline(always)]
    pub fn try_open(&self, opcode: Opcode) -> Option<Opened<&Self>> {
        let mask = self.gather(opcode);
        let lead = is_leader(mask, self.warp.lane());
        let ports = self.transport.geometry().ports;
        let found = if lead {
            self.find(self.warp.port_hint(), ports)
        } else {
            None
        };
        self.opened(mask, opcode, encode(found))
    }

    /// Opens the port that is kept for the panic handler, waiting until it is free.
    ///
    /// # Errors
    /// [`Error::Stopped`] when the host ends the run meanwhile.
    #[inline(always)]
    pub fn open_reserved(&self, opcode: Opcode) -> Result<Opened<&Self>, Error> {
        let port = self.transport.geometry().panic_port();
        self.open_by(opcode, |_| {
            if self.locks().try_claim(port) {
                self.reclaim(port)
            } else {
                None
            }
        })
    }

    /// The lanes that are here together and want the same.
    ///
    /// The opcode may differ between lanes that run together (a function that takes it as an
    /// argument, called from two places), and a port carries one.
    #[inline(always)]
    fn gather(&self, opcode: Opcode) -> u64 {
        let mut mask = self.warp.active_mask();
        loop {
            let leaders = self.warp.broadcast(mask, opcode.0.into());
            let agrees = u64::from(opcode.0) == leaders;
            let agreed = self.warp.ballot(mask, agrees);
            if agrees {
                return agreed;
            }
            mask &= !agreed;
        }
    }

    #[inline(always)]
    fn open_by(
        &self,
        opcode: Opcode,
        find: impl Fn(u32) -> Option<(u32, u32)>,
    ) -> Result<Opened<&Self>, Error> {
        let mask = self.gather(opcode);
        let mut found = STOPPED;
        // The leader waits for all; they meet in `broadcast`.
        if is_leader(mask, self.warp.lane()) {
            let mut attempt = 0;
            found = loop {
                let found = encode(find(attempt));
                if found != NOT_FOUND {
                    break found;
                }
                attempt += 1;
                if attempt.is_multiple_of(POLLS_PER_STOP) && self.transport.stopped() {
                    break STOPPED;
                }
                self.warp.pause(attempt);
            };
        }
        self.opened(mask, opcode, found).ok_or(Error::Stopped)
    }

    /// Every lane of `mask`: takes what the leader found.
    #[inline(always)]
    fn opened(&self, mask: u64, opcode: Opcode, found: u64) -> Option<Opened<&Self>> {
        let found = self.warp.broadcast(mask, found);
        if found == NOT_FOUND || found == STOPPED {
            return None;
        }
        let (port, sequence) = ((found >> 32) as u32, found as u32);
        if is_leader(mask, self.warp.lane()) {
            // Relaxed: the lanes that clear bits of it have met the leader in `sync` below.
            self.private.store64(self.holders(port), mask);
        }
        self.warp.sync(mask);
        let slot = ClientSlot {
            port,
            mask,
            sequence,
            opcode,
            opening: true,
            filled: false,
        };
        Some(Opened::new(self, slot, sequence & 1 != 0))
    }

    /// Locks a port that this side owns, searching from `start`: its index and sequence number.
    #[inline(always)]
    fn find(&self, start: u32, ports: u32) -> Option<(u32, u32)> {
        let (locks, in_flight) = (self.locks(), self.in_flight());
        // First those whose last call was answered, then those that may still be the server's.
        if let Some(port) = locks.claim_any(start, ports, |word| !in_flight.word(word)) {
            return self.reclaim(port);
        }
        let port = locks.claim_any(start, ports, |word| in_flight.word(word))?;
        self.reclaim(port)
    }

    /// A port that this thread has just locked, unless it still belongs to the server.
    #[inline(always)]
    fn reclaim(&self, port: u32) -> Option<(u32, u32)> {
        // Ordered behind the last holder's store by the lock: its release, our acquire.
        let state = self.private.load64(self.state(port));
        let sequence = state as u32;
        if state & IN_FLIGHT != 0 {
            if self.transport.poll_reply(port).parity != (sequence & 1 != 0) {
                self.locks().unlock(port);
                return None;
            }
            // Acquire: pairs with the server's `publish_reply`; it reads the packets no more.
            self.transport.acquire();
            self.private.store64(self.state(port), sequence.into());
            self.in_flight().clear(port);
        }
        Some((port, sequence))
    }

    /// The leader's part of a wait.
    #[inline(always)]
    fn wait_alone(&self, slot: &ClientSlot) -> Result<Status, Error> {
        let mut polls = 0;
        loop {
            if let Some(status) = self.look(slot) {
                return Ok(status);
            }
            polls += 1;
            if polls % POLLS_PER_STOP == 0 && self.transport.stopped() {
                return Err(Error::Stopped);
            }
            self.warp.pause(polls);
        }
    }

    #[inline(always)]
    fn look(&self, slot: &ClientSlot) -> Option<Status> {
        let turn = self.transport.poll_reply(slot.port);
        if turn.parity != (slot.sequence & 1 != 0) {
            return None;
        }
        // Acquire: pairs with the server's `publish_reply`. The other lanes are ordered behind
        // this by the meeting that follows.
        self.transport.acquire();
        Some(self.transport.reply_status(slot.port, turn))
    }

    /// Writes the caller's packet: posted stores, nothing is waited for.
    #[inline(always)]
    fn put(&self, slot: &mut ClientSlot, packet: &Packet, bytes: usize) {
        let opening = slot.opening.then_some(slot.opcode);
        let bytes = bytes.min(T::KIND.payload());
        self.transport
            .put(slot.port, self.warp.lane(), packet, bytes, opening);
        slot.filled = true;
    }

    /// Hands the leader's finding to all lanes, and what it has acquired with it.
    #[inline(always)]
    fn share(&self, mask: u64, word: u64) -> u64 {
        let word = self.warp.broadcast(mask, word);
        self.warp.sync(mask);
        word
    }
}

const NOT_FOUND: u64 = u64::MAX;
const STOPPED: u64 = u64::MAX - 1;
const PENDING: u64 = u64::MAX;

/// A port and its sequence number as one word; ports are far below `u32::MAX`.
const fn encode(found: Option<(u32, u32)>) -> u64 {
    match found {
        Some((port, sequence)) => (port as u64) << 32 | sequence as u64,
        None => NOT_FOUND,
    }
}

impl<T: Transport, P: Memory<Scope = Device>, W: Warp> Process for Client<T, P, W> {
    type Slot = ClientSlot;
    type Lengths = OwnLength;
    const STARTS_WITH_PACKET: bool = false;

    fn payload(&self) -> usize {
        T::KIND.payload()
    }

    #[inline(always)]
    fn wait(&self, slot: &mut ClientSlot) -> Result<Status, Error> {
        let lead = is_leader(slot.mask, self.warp.lane());
        let word = if lead {
            Error::to_word(self.wait_alone(slot))
        } else {
            0
        };
        Error::from_word(self.share(slot.mask, word))
    }

    #[inline(always)]
    fn try_wait(&self, slot: &mut ClientSlot) -> Result<Option<Status>, Error> {
        let mut word = PENDING;
        if is_leader(slot.mask, self.warp.lane())
            && let Some(status) = self.look(slot)
        {
            word = Error::to_word(Ok(status));
        }
        match self.share(slot.mask, word) {
            PENDING => Ok(None),
            word => Error::from_word(word).map(Some),
        }
    }

    #[inline(always)]
    fn post(&self, slot: &mut ClientSlot, _: Status) {
        if slot.opening && !slot.filled {
            // Where the opcode travels in the packets, each has one.
            self.put(slot, &Packet::ZERO, 0);
        }
        slot.sequence = slot.sequence.wrapping_add(1);
        // All lanes' packets are written before the leader publishes.
        self.warp.sync(slot.mask);
        if is_leader(slot.mask, self.warp.lane()) {
            let header = Header {
                opcode: slot.opcode,
                mask: slot.mask,
                opened: None,
            };
            let opening = slot.opening.then_some(&header);
            self.transport
                .publish_request(slot.port, slot.sequence, opening);
        }
        slot.opening = false;
        slot.filled = false;
    }

    /// May be called by the lanes of a port in any number of subsets: the last one closes.
    #[inline(always)]
    fn close(&self, slot: &mut ClientSlot, owned: bool) {
        let active = self.warp.active_mask() & slot.mask;
        // These lanes are done with the packets, and with their private copies of the state.
        self.warp.sync(active);
        if !is_leader(active, self.warp.lane()) {
            return;
        }
        if active != slot.mask {
            // Acquire and release: whoever clears the last bit is ordered behind all the others.
            let before = self
                .private
                .fetch_and64_acq_rel(self.holders(slot.port), !active);
            if before & !active != 0 {
                return;
            }
        }
        let in_flight = if owned { 0 } else { IN_FLIGHT };
        self.private
            .store64(self.state(slot.port), in_flight | u64::from(slot.sequence));
        if !owned {
            self.in_flight().set(slot.port);
        }
        self.locks().unlock(slot.port);
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
        self.transport
            .take(slot.port, lane, &mut packet, bytes.min(self.payload()));
        f(lane, &packet);
    }

    #[inline(always)]
    fn apply(&self, slot: &mut ClientSlot, bytes: usize, mut f: impl FnMut(u32, &mut Packet)) {
        let (lane, mut packet) = (self.warp.lane(), Packet::ZERO);
        self.transport
            .take(slot.port, lane, &mut packet, bytes.min(self.payload()));
        f(lane, &mut packet);
        self.put(slot, &packet, bytes);
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
