//! A port for loops: its state is known at run time.
//!
//! The two sides' operations mirror each other: for each send of one there is a receive of the
//! other, and the client begins with a send. Acknowledging is lazy: a receive hands nothing back
//! by itself; a receive after a receive, or a send of the other side, does.

use rpc_bitmap::{Device, Memory};
use rpc_types::{Opcode, Packet, Status};

use crate::error::Error;
use crate::port::Held;
use crate::process::Process;
use crate::server::{Server, ServerSlot};
use crate::transport::{Room, Transport, WORD_BYTES, Words};

mod client;
mod messages;

pub(crate) use client::InPlace;

/// An open port whose state is known at run time.
///
/// Closures get the lane and its packet: on a client they run once, for the caller's own lane, on a
/// server once for each lane of the mask. After an error every further operation returns that
/// error.
#[derive(Debug)]
#[must_use = "dropping a port closes it"]
pub struct DynamicPort<P: Process> {
    held: Held<P>,
    /// The packets in hand have not been received yet.
    fresh: bool,
    /// Something was handed over: there can be an answer.
    begun: bool,
    error: Option<Error>,
}

impl<P: Process> DynamicPort<P> {
    #[inline(always)]
    pub(crate) fn new(held: Held<P>) -> Self {
        Self {
            held,
            fresh: P::STARTS_WITH_PACKET,
            begun: P::STARTS_WITH_PACKET,
            error: None,
        }
    }

    /// A port that was just opened.
    #[inline(always)]
    pub(crate) fn open(process: P, slot: P::Slot) -> Self {
        let owned = true;
        Self::new(Held {
            process,
            slot,
            owned,
        })
    }

    /// The port's index.
    pub fn index(&self) -> u32 {
        self.held.process.index(&self.held.slot)
    }

    /// The lanes that take part.
    pub fn mask(&self) -> u64 {
        self.held.process.mask(&self.held.slot)
    }

    /// Payload bytes of a packet.
    #[inline(always)]
    pub fn payload(&self) -> usize {
        self.held.process.payload()
    }

    /// Whether `f` holds for any lane of the port; every lane of a warp gets the same answer.
    #[inline(always)]
    pub fn any(&self, f: impl FnMut(u32) -> bool) -> bool {
        self.held.process.any(&self.held.slot, f)
    }

    /// Gives the port back, as dropping it does. On a client whose last operation was a send this
    /// is an asynchronous call: nobody waits for the server.
    pub fn close(self) {}

    #[inline(always)]
    fn fail<R>(&mut self, error: Error) -> Result<R, Error> {
        self.error = Some(error);
        Err(error)
    }

    #[inline(always)]
    fn turn(&mut self, status: Status) -> Result<(), Error> {
        self.held.owned = true;
        if status.is_success() {
            Ok(())
        } else {
            self.fail(Error::Status(status))
        }
    }

    /// Waits until this side owns the packets.
    #[inline(always)]
    fn own(&mut self) -> Result<(), Error> {
        if let Some(error) = self.error {
            return Err(error);
        }
        if self.held.owned {
            return Ok(());
        }
        match self.held.process.wait(&mut self.held.slot) {
            Ok(status) => self.turn(status),
            Err(error) => self.fail(error),
        }
    }

    #[inline(always)]
    fn post(&mut self) {
        self.held.process.post(&mut self.held.slot, Status::SUCCESS);
        self.sent();
    }

    #[inline(always)]
    fn post_packets(&mut self) {
        self.held.process.post_packets(&mut self.held.slot);
        self.sent();
    }

    #[inline(always)]
    const fn sent(&mut self) {
        self.held.owned = false;
        self.fresh = false;
        self.begun = true;
    }

    // The pieces, for callers that cannot block.

    /// Looks once whether this side owns the packets.
    ///
    /// # Errors
    /// What ended the conversation.
    #[inline(always)]
    pub fn poll_own(&mut self) -> Result<bool, Error> {
        if let Some(error) = self.error {
            return Err(error);
        }
        if self.held.owned {
            return Ok(true);
        }
        match self.held.process.try_wait(&mut self.held.slot) {
            Ok(Some(status)) => self.turn(status).map(|()| true),
            Ok(None) => Ok(false),
            Err(error) => self.fail(error),
        }
    }

    /// Begins a receive: hands back the packets that were received before, if this side has them.
    ///
    /// # Errors
    /// What ended the conversation; [`Error::NothingSent`] on a client that has sent nothing.
    #[inline(always)]
    pub fn begin_recv(&mut self) -> Result<(), Error> {
        if let Some(error) = self.error {
            return Err(error);
        }
        if !self.begun {
            return self.fail(Error::NothingSent);
        }
        if self.held.owned && !self.fresh {
            self.post();
        }
        Ok(())
    }

    /// Ends a receive on packets that this side owns: reads the first `bytes` payload bytes.
    #[inline(always)]
    pub fn end_recv(&mut self, bytes: usize, f: impl FnMut(u32, &Packet)) {
        debug_assert!(self.held.owned, "the other side owns the packets");
        self.held.process.take(&mut self.held.slot, bytes, f);
        self.fresh = false;
    }

    /// Ends a send on packets that this side owns: sets the first `bytes` payload bytes and hands
    /// them over.
    #[inline(always)]
    pub fn end_send(&mut self, bytes: usize, f: impl FnMut(u32, &mut Packet)) {
        debug_assert!(self.held.owned, "the other side owns the packets");
        self.held.process.send(&mut self.held.slot, bytes, f);
        self.sent();
    }

    // The operations.

    /// Sends the first `bytes` payload bytes of each packet, as `f` sets them.
    ///
    /// # Errors
    /// What ended the conversation.
    #[inline(always)]
    pub fn send(&mut self, bytes: usize, f: impl FnMut(u32, &mut Packet)) -> Result<(), Error> {
        self.own()?;
        self.end_send(bytes, f);
        Ok(())
    }

    /// Receives the first `bytes` payload bytes of each packet.
    ///
    /// # Errors
    /// What ended the conversation; [`Error::NothingSent`] on a client that has sent nothing.
    #[inline(always)]
    pub fn recv(&mut self, bytes: usize, f: impl FnMut(u32, &Packet)) -> Result<(), Error> {
        self.begin_recv()?;
        self.own()?;
        self.end_recv(bytes, f);
        Ok(())
    }

    /// Sends `sent` bytes, then receives `received` bytes.
    ///
    /// # Errors
    /// What ended the conversation.
    #[inline(always)]
    pub fn send_and_recv(
        &mut self,
        sent: usize,
        fill: impl FnMut(u32, &mut Packet),
        received: usize,
        used: impl FnMut(u32, &Packet),
    ) -> Result<(), Error> {
        self.send(sent, fill)?;
        self.recv(received, used)
    }

    /// Receives `bytes` bytes and sends back what `f` makes of them.
    ///
    /// # Errors
    /// What ended the conversation.
    #[inline(always)]
    pub fn recv_and_send(
        &mut self,
        bytes: usize,
        f: impl FnMut(u32, &mut Packet),
    ) -> Result<(), Error> {
        self.begin_recv()?;
        self.own()?;
        self.held.process.apply(&mut self.held.slot, bytes, f);
        self.post();
        Ok(())
    }
}

impl<P: Process<Slot = ServerSlot>> DynamicPort<P> {
    /// What the call asks for.
    pub fn opcode(&self) -> Opcode {
        self.held.slot.opcode()
    }

    /// Ends the conversation with `status`: the client is told when this side has, or gets, the
    /// packets. Gives back the port if they are still the client's.
    ///
    /// # Errors
    /// The port, lent: to be asked again when its client has handed it over.
    pub fn end(mut self, status: Status) -> Result<(), Self> {
        match self.poll_own() {
            Ok(false) => Err(self),
            Ok(true) => {
                self.held.slot.fail(status);
                Ok(())
            }
            Err(_) => Ok(()),
        }
    }
}

/// A call that is answered at once, on a port that was just opened.
impl<T: Transport, L: Memory<Scope = Device>> DynamicPort<&Server<T, L>> {
    /// Whether each lane's message is a word, which
    /// [`try_open_alone`](Server::try_open_alone) has taken: not so of a later message.
    #[inline(always)]
    pub fn has_words(&self) -> bool {
        self.held.slot.has_words()
    }

    /// Answers each lane with the first `bytes` bytes of its word: with all 8 of them if that is more.
    #[inline(always)]
    pub fn answer_words(&mut self, bytes: usize, words: &Words) {
        debug_assert!(self.held.owned, "the other side owns the packets");
        self.held
            .process
            .answer_words(&mut self.held.slot, bytes.min(WORD_BYTES), words);
        self.sent();
    }

    /// Answers each lane with what `f` makes of its packet, of which `received` bytes have come and
    /// `sent` will go back. If `f` refuses a lane, nothing is answered, the port is still owned, and
    /// this gives `false`. `room` is what [`try_open_alone`](Server::try_open_alone) has taken; later
    /// messages are read anew.
    #[inline(always)]
    pub fn answer_packets(
        &mut self,
        received: usize,
        sent: usize,
        room: &mut Room,
        f: impl FnMut(u32, &mut Packet) -> bool,
    ) -> bool {
        debug_assert!(self.held.owned, "the other side owns the packets");
        let Held { process, slot, .. } = &mut self.held;
        let answered = process.answer_packets(slot, received, sent, room, f);
        if answered {
            self.sent();
        }
        answered
    }

    /// The same port, which keeps the server alive.
    #[cfg(feature = "std")]
    pub fn shared(
        self,
        server: &std::sync::Arc<Server<T, L>>,
    ) -> DynamicPort<std::sync::Arc<Server<T, L>>> {
        // Not closed: it goes on as the other one.
        let port = std::mem::ManuallyDrop::new(self);
        DynamicPort {
            held: Held {
                process: std::sync::Arc::clone(server),
                slot: port.held.slot.clone(),
                owned: port.held.owned,
            },
            fresh: port.fresh,
            begun: port.begun,
            error: port.error,
        }
    }
}
