//! The host's side.
//!
//! Nothing that the device writes is trusted: it is read once into local variables, lanes that do
//! not exist are masked off, and whatever else it holds can only make an exchange fail.

use rpc_bitmap::{Bitmap, Device, Memory};
use rpc_types::{Opcode, Packet, Status};

use crate::client::POLLS_PER_STOP;
use crate::error::Error;
use crate::port::Opened;
use crate::process::Process;
use crate::stream::AllLengths;
use crate::transport::{Header, Transport};
use crate::warp::host_pause;

/// The host's side: opens ports that have a request, receives first. One thread stands for all
/// lanes of a port.
#[derive(Clone, Debug)]
pub struct Server<T, L> {
    transport: T,
    locks: Bitmap<L>,
}

/// What a server remembers of an open port.
#[derive(Debug)]
pub struct ServerSlot {
    port: u32,
    header: Header,
    status: Status,
}

/// Lanes of `mask`, lowest first.
fn lanes(mut mask: u64) -> impl Iterator<Item = u32> {
    core::iter::from_fn(move || {
        let lane = mask.trailing_zeros();
        mask &= mask.wrapping_sub(1);
        (lane < 64).then_some(lane)
    })
}

impl<T: Transport, L: Memory<Scope = Device>> Server<T, L> {
    /// Bytes of memory that a server's locks take.
    pub fn locks_size(transport: &T) -> usize {
        transport.geometry().total_ports().div_ceil(32) as usize * 4
    }

    /// The server over a layout, with memory of its own for a lock per port: at least
    /// [`locks_size`](Self::locks_size) zero bytes.
    pub fn new(transport: T, locks: L) -> Self {
        let ports = transport.geometry().total_ports();
        Self {
            transport,
            locks: Bitmap::new(locks, 0, ports),
        }
    }

    /// The layout.
    pub const fn transport(&self) -> &T {
        &self.transport
    }

    /// Whether `port` has a request that nobody has taken, or one that a conversation waits for:
    /// as the mailboxes are now.
    #[inline]
    pub fn is_waiting(&self, port: u32) -> bool {
        // The server's inbox, read inverted, equals its outbox: the server owns the packets.
        self.transport.poll_request(port) != self.transport.outbox(port)
    }

    /// Opens `port` if it has a request and no other thread has it open.
    ///
    /// # Panics
    /// If there is no such port.
    #[inline]
    pub fn try_open(&self, port: u32) -> Option<Opened<&Self>> {
        let slot = self.open_slot(port)?;
        let parity = self.transport.outbox(port);
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
        let parity = this.transport.outbox(port);
        Some(Opened::new(std::sync::Arc::clone(this), slot, parity))
    }

    #[inline]
    fn open_slot(&self, port: u32) -> Option<ServerSlot> {
        assert!(port < self.locks.bits(), "there is no port {port}");
        // The cheap look first: most ports have nothing.
        if !self.is_waiting(port) || !self.locks.try_claim(port) {
            return None;
        }
        if !self.is_waiting(port) {
            self.locks.unlock(port);
            return None;
        }
        // Acquire: pairs with the client's `publish_request`.
        self.transport.acquire();
        let mut header = self.transport.header(port);
        header.mask &= u64::MAX >> (64 - self.transport.geometry().lanes);
        Some(ServerSlot {
            port,
            header,
            status: Status::SUCCESS,
        })
    }
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
        if !self.is_waiting(slot.port) {
            return Ok(None);
        }
        // Acquire: pairs with the client's `publish_request`.
        self.transport.acquire();
        if self.transport.opened(slot.port) != slot.header.opened {
            return Err(Error::Abandoned);
        }
        Ok(Some(Status::SUCCESS))
    }

    #[inline]
    fn post(&self, slot: &mut ServerSlot, status: Status) {
        slot.status = status;
        self.transport.publish_reply(slot.port, status);
    }

    /// A server that still owns the packets hands them back.
    #[inline]
    fn close(&self, slot: &mut ServerSlot, owned: bool) {
        if owned {
            self.transport.publish_reply(slot.port, slot.status);
        }
        // Release: pairs with the acquire of the thread that opens the port next.
        self.locks.unlock(slot.port);
    }

    #[inline]
    fn fill(&self, slot: &mut ServerSlot, bytes: usize, mut f: impl FnMut(u32, &mut Packet)) {
        let bytes = bytes.min(self.payload());
        for lane in lanes(slot.header.mask) {
            let mut packet = Packet::ZERO;
            f(lane, &mut packet);
            self.transport.put(slot.port, lane, &packet, bytes, None);
        }
    }

    #[inline]
    fn take(&self, slot: &mut ServerSlot, bytes: usize, mut f: impl FnMut(u32, &Packet)) {
        let bytes = bytes.min(self.payload());
        for lane in lanes(slot.header.mask) {
            let mut packet = Packet::ZERO;
            self.transport.take(slot.port, lane, &mut packet, bytes);
            f(lane, &packet);
        }
    }

    #[inline]
    fn apply(&self, slot: &mut ServerSlot, bytes: usize, mut f: impl FnMut(u32, &mut Packet)) {
        let bytes = bytes.min(self.payload());
        for lane in lanes(slot.header.mask) {
            let mut packet = Packet::ZERO;
            self.transport.take(slot.port, lane, &mut packet, bytes);
            f(lane, &mut packet);
            self.transport.put(slot.port, lane, &packet, bytes, None);
        }
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

impl ServerSlot {
    /// What the call asks for.
    pub const fn opcode(&self) -> Opcode {
        self.header.opcode
    }

    /// Sets what the client is told when the port is closed while the server owns it.
    pub(crate) const fn fail(&mut self, status: Status) {
        self.status = status;
    }
}
