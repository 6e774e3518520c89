//! One side of the protocol.

use rpc_types::{Packet, Status};

use crate::error::Error;
use crate::stream::Lengths;

/// One side of the protocol: what a [`Port`](crate::Port) asks of its client or server.
///
/// A side *owns* a port's packets when inbox and outbox are equal as it reads them (the server
/// reads its inbox inverted), else they are *lent* to the other side. The methods with a slot are
/// for the port types of this crate, which call them in the order that the protocol allows.
pub trait Process {
    /// What this side remembers of an open port.
    type Slot: core::fmt::Debug;

    /// A length for each lane that a caller stands for.
    type Lengths: Lengths;

    /// Payload bytes of a packet.
    fn payload(&self) -> usize;

    /// Waits until a lent port is owned again.
    ///
    /// # Errors
    /// When it never will be; the port stays lent.
    fn wait(&self, slot: &mut Self::Slot) -> Result<Status, Error>;

    /// Looks once whether a lent port is owned again.
    ///
    /// # Errors
    /// When it never will be; the port stays lent.
    fn try_wait(&self, slot: &mut Self::Slot) -> Result<Option<Status>, Error>;

    /// Hands an owned port over with what was filled.
    fn post(&self, slot: &mut Self::Slot, status: Status);

    /// Gives the port back; `owned` says in which state.
    fn close(&self, slot: &mut Self::Slot, owned: bool);

    /// Sets the first `bytes` payload bytes of each packet that this caller stands for: `f` gets
    /// the lane and a packet of zeros. What is filled and never handed over is not seen.
    fn fill(&self, slot: &mut Self::Slot, bytes: usize, f: impl FnMut(u32, &mut Packet));

    /// Reads the first `bytes` payload bytes of each packet that this caller stands for.
    fn take(&self, slot: &mut Self::Slot, bytes: usize, f: impl FnMut(u32, &Packet));

    /// [`take`](Self::take), then [`fill`](Self::fill) with what `f` made of it.
    fn apply(&self, slot: &mut Self::Slot, bytes: usize, f: impl FnMut(u32, &mut Packet));

    /// [`fill`](Self::fill), then [`post`](Self::post) with success.
    #[inline(always)]
    fn send(&self, slot: &mut Self::Slot, bytes: usize, f: impl FnMut(u32, &mut Packet)) {
        self.fill(slot, bytes, f);
        self.post(slot, Status::SUCCESS);
    }

    /// Whether what is sent next may travel in words, if it is short.
    fn in_words(&self, slot: &Self::Slot) -> bool;

    /// How many packets a lane of a stream has.
    fn parts(&self, slot: &Self::Slot) -> usize;

    /// Runs `f` for each lane that this caller stands for.
    fn each(&self, slot: &Self::Slot, f: impl FnMut(u32));

    /// Reads packet `part` of a lane that this caller stands for.
    fn load(&self, slot: &Self::Slot, lane: u32, part: usize) -> Packet;

    /// Before packets are stored.
    fn prepare(&self, slot: &mut Self::Slot);

    /// Writes packet `part` of a lane that this caller stands for.
    fn store(&self, slot: &Self::Slot, lane: u32, part: usize, packet: &Packet);

    /// Hands an owned port over with what was stored, on whatever lanes.
    fn post_packets(&self, slot: &mut Self::Slot);

    /// From now on hand-overs order all memory.
    fn order(&self, slot: &mut Self::Slot);

    /// The device address of `bytes`, if they are to travel as a reference.
    #[inline(always)]
    fn reference(&self, bytes: &[u8]) -> Option<u64> {
        let _ = bytes;
        None
    }

    /// Whether any message may travel as a reference.
    #[inline(always)]
    fn refers(&self) -> bool {
        false
    }

    /// Whether `f` holds for any lane of the port; every lane of a warp gets the same answer.
    fn any(&self, slot: &Self::Slot, f: impl FnMut(u32) -> bool) -> bool;

    /// The port's index.
    fn index(&self, slot: &Self::Slot) -> u32;

    /// The lanes that take part.
    fn mask(&self, slot: &Self::Slot) -> u64;

    /// Whether an open port starts with a packet to take: the server's does.
    const STARTS_WITH_PACKET: bool;
}

/// Forwards to whatever the pointer points to.
macro_rules! forward {
    () => {
        type Slot = P::Slot;
        type Lengths = P::Lengths;
        const STARTS_WITH_PACKET: bool = P::STARTS_WITH_PACKET;

        #[inline(always)]
        fn payload(&self) -> usize {
            P::payload(self)
        }
        #[inline(always)]
        fn wait(&self, slot: &mut P::Slot) -> Result<Status, Error> {
            P::wait(self, slot)
        }
        #[inline(always)]
        fn try_wait(&self, slot: &mut P::Slot) -> Result<Option<Status>, Error> {
            P::try_wait(self, slot)
        }
        #[inline(always)]
        fn post(&self, slot: &mut P::Slot, status: Status) {
            P::post(self, slot, status);
        }
        #[inline(always)]
        fn close(&self, slot: &mut P::Slot, owned: bool) {
            P::close(self, slot, owned);
        }
        #[inline(always)]
        fn fill(&self, slot: &mut P::Slot, bytes: usize, f: impl FnMut(u32, &mut Packet)) {
            P::fill(self, slot, bytes, f);
        }
        #[inline(always)]
        fn take(&self, slot: &mut P::Slot, bytes: usize, f: impl FnMut(u32, &Packet)) {
            P::take(self, slot, bytes, f);
        }
        #[inline(always)]
        fn apply(&self, slot: &mut P::Slot, bytes: usize, f: impl FnMut(u32, &mut Packet)) {
            P::apply(self, slot, bytes, f);
        }
        #[inline(always)]
        fn send(&self, slot: &mut P::Slot, bytes: usize, f: impl FnMut(u32, &mut Packet)) {
            P::send(self, slot, bytes, f);
        }
        #[inline(always)]
        fn in_words(&self, slot: &P::Slot) -> bool {
            P::in_words(self, slot)
        }
        #[inline(always)]
        fn parts(&self, slot: &P::Slot) -> usize {
            P::parts(self, slot)
        }
        #[inline(always)]
        fn each(&self, slot: &P::Slot, f: impl FnMut(u32)) {
            P::each(self, slot, f);
        }
        #[inline(always)]
        fn load(&self, slot: &P::Slot, lane: u32, part: usize) -> Packet {
            P::load(self, slot, lane, part)
        }
        #[inline(always)]
        fn prepare(&self, slot: &mut P::Slot) {
            P::prepare(self, slot);
        }
        #[inline(always)]
        fn store(&self, slot: &P::Slot, lane: u32, part: usize, packet: &Packet) {
            P::store(self, slot, lane, part, packet);
        }
        #[inline(always)]
        fn post_packets(&self, slot: &mut P::Slot) {
            P::post_packets(self, slot);
        }
        #[inline(always)]
        fn order(&self, slot: &mut P::Slot) {
            P::order(self, slot);
        }
        #[inline(always)]
        fn reference(&self, bytes: &[u8]) -> Option<u64> {
            P::reference(self, bytes)
        }
        #[inline(always)]
        fn refers(&self) -> bool {
            P::refers(self)
        }
        #[inline(always)]
        fn any(&self, slot: &P::Slot, f: impl FnMut(u32) -> bool) -> bool {
            P::any(self, slot, f)
        }
        #[inline(always)]
        fn index(&self, slot: &P::Slot) -> u32 {
            P::index(self, slot)
        }
        #[inline(always)]
        fn mask(&self, slot: &P::Slot) -> u64 {
            P::mask(self, slot)
        }
    };
}

impl<P: Process> Process for &P {
    forward!();
}

#[cfg(feature = "std")]
impl<P: Process> Process for std::sync::Arc<P> {
    forward!();
}
