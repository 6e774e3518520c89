//! A port for loops: its state is known at run time.
//!
//! The two sides' operations mirror each other: for each send of one there is a receive of the
//! other, and the client begins with a send. Acknowledging is lazy: a receive hands nothing back
//! by itself; a receive after a receive, or a send of the other side, does.

use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};

use rpc_bitmap::{Device, Memory};
use rpc_types::stream::{Answer, LENGTH_SIZE, REFERENCE};
use rpc_types::{Opcode, Packet, Status};

use crate::client::{Client, ClientSlot};
use crate::error::Error;
use crate::port::Held;
use crate::process::Process;
use crate::server::{Server, ServerSlot};
use crate::stream::{Cursor, Lengths, Sink};
use crate::transport::{Transport, Words};
use crate::warp::Warp;

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

    /// The start of a message on this port.
    #[inline(always)]
    pub fn cursor(&self) -> Cursor {
        let parts = self.held.process.parts(&self.held.slot);
        Cursor::new(self.payload(), parts)
    }

    /// Ends a send of the next packets of each lane's message, on packets that this side owns. Lanes
    /// that `refer` begin with these words instead, and send nothing else.
    #[inline(always)]
    pub fn end_send_part<'m, const BY_WORD: bool>(
        &mut self,
        cursor: &Cursor,
        message: impl Fn(u32) -> &'m [u8],
        refer: impl Fn(&P, u32) -> Option<[u64; 2]>,
    ) {
        debug_assert!(self.held.owned, "the other side owns the packets");
        let first = cursor.is_first();
        let process = &self.held.process;
        let empty = |lane| message(lane).is_empty() && refer(process, lane).is_none();
        if first && self.held.process.in_words(&self.held.slot) && !self.any(|lane| !empty(lane)) {
            // Only lengths, all of them zero.
            return self.end_send(LENGTH_SIZE, |_, _| ());
        }
        self.held.process.prepare(&mut self.held.slot);
        let Held { process, slot, .. } = &self.held;
        process.each(slot, |lane| {
            if let Some([told, address]) = refer(process, lane) {
                if first {
                    let mut packet = Packet::ZERO;
                    packet.words[0] = told;
                    packet.words[1] = address;
                    process.store(slot, lane, 0, &packet);
                }
                return;
            }
            let message = message(lane);
            for part in 0..cursor.parts(message.len() as u64) {
                process.store(slot, lane, part, &cursor.put::<BY_WORD>(message, part));
            }
        });
        self.post_packets();
    }

    /// Ends a receive of the next packets of each lane's message, on packets that this side owns.
    /// `false` if `sink` refuses a message.
    #[inline(always)]
    pub fn end_recv_part(
        &mut self,
        cursor: &Cursor,
        lengths: &mut P::Lengths,
        sink: &mut (impl Sink + ?Sized),
    ) -> bool {
        debug_assert!(self.held.owned, "the other side owns the packets");
        let Held { process, slot, .. } = &self.held;
        let mut accepted = true;
        process.each(slot, |lane| {
            let mut first = Packet::ZERO;
            if cursor.is_first() {
                first = process.load(slot, lane, 0);
                let length = Cursor::length(&first);
                let begun = if P::STARTS_WITH_PACKET && length & REFERENCE != 0 {
                    sink.refer(lane, length & !REFERENCE, first.words[1])
                } else {
                    sink.begin(lane, length & !REFERENCE)
                };
                accepted &= begun;
                *lengths.of(lane) = if begun { length } else { 0 };
            }
            let length = *lengths.of(lane);
            // What is referred to does not follow.
            let length = if length & REFERENCE == 0 { length } else { 0 };
            for part in 0..cursor.parts(length) {
                let packet = if cursor.is_first() && part == 0 {
                    first
                } else {
                    process.load(slot, lane, part)
                };
                cursor.take(lane, part, length, &packet, sink);
            }
        });
        self.fresh = false;
        accepted
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

    /// Sends a message of any length on each lane: on a client its own, on a server
    /// `message(lane)`. Returns when the message may be changed again.
    ///
    /// # Errors
    /// What ended the conversation.
    #[inline(always)]
    pub fn send_n<'m>(&mut self, message: impl Fn(u32) -> &'m [u8]) -> Result<(), Error> {
        let mut referred = false;
        if self.held.process.refers() {
            let process = &self.held.process;
            referred = self.any(|lane| process.reference(message(lane)).is_some());
        }
        let mut cursor = self.cursor();
        loop {
            self.own()?;
            let refer = |process: &P, lane| {
                let address = referred.then(|| process.reference(message(lane))).flatten();
                address.map(|address| [message(lane).len() as u64 | REFERENCE, address])
            };
            self.end_send_part::<true>(&cursor, &message, refer);
            cursor.advance();
            let process = &self.held.process;
            let more =
                |lane| cursor.more(message(lane).len() as u64) && refer(process, lane).is_none();
            if !self.any(more) {
                break;
            }
        }
        if referred {
            // The other side has copied what was referred to.
            return self.recv(0, |_, _| ());
        }
        Ok(())
    }

    /// As [`send_n`](Self::send_n), for messages that are short: none travels as a reference.
    ///
    /// # Errors
    /// What ended the conversation.
    #[inline(always)]
    pub fn send_packets<'m>(&mut self, message: impl Fn(u32) -> &'m [u8]) -> Result<(), Error> {
        let mut cursor = self.cursor();
        loop {
            self.own()?;
            self.end_send_part::<false>(&cursor, &message, |_, _| None);
            cursor.advance();
            if !self.any(|lane| cursor.more(message(lane).len() as u64)) {
                return Ok(());
            }
        }
    }

    /// Receives a message of any length on each lane.
    ///
    /// # Errors
    /// What ended the conversation; [`Status::TOO_LONG`] if `sink` refuses a lane's message: a
    /// server then [`fail`](Self::fail)s the call.
    #[inline(always)]
    pub fn recv_n(&mut self, sink: &mut impl Sink) -> Result<(), Error> {
        let mut lengths = P::Lengths::ZERO;
        self.recv_packets(&mut lengths, sink)?;
        if !self.held.process.refers() || !self.any(|lane| *lengths.of(lane) & REFERENCE != 0) {
            return Ok(());
        }
        // Where each lane wants it.
        let length = |lengths: &mut P::Lengths, lane| *lengths.of(lane);
        let mut places = P::Lengths::ZERO;
        self.own()?;
        let Held { process, slot, .. } = &mut self.held;
        // What the host puts there is seen behind its next hand-over.
        process.order(slot);
        // Not part of a message: each lane's in its own packet, wherever its messages' packets lie.
        process.send(slot, size_of::<Answer>(), |lane, packet| {
            let mut answer = Answer::default();
            let told = length(&mut lengths, lane);
            if told & REFERENCE != 0
                && let Some(room) = sink.room(lane)
                && let Some(address) = process.reference(room)
            {
                answer.address = address;
                answer.room = room.len() as u64;
                *places.of(lane) = answer.room.min(told & !REFERENCE).saturating_add(1);
            }
            packet.set(&answer);
        });
        self.sent();
        let mut rest = Rest {
            sink,
            lengths: &mut lengths,
            places: &mut places,
        };
        let mut lengths = P::Lengths::ZERO;
        self.recv_packets(&mut lengths, &mut rest)
    }

    #[inline(always)]
    fn recv_packets(
        &mut self,
        lengths: &mut P::Lengths,
        sink: &mut impl Sink,
    ) -> Result<(), Error> {
        let mut cursor = self.cursor();
        loop {
            self.begin_recv()?;
            self.own()?;
            let accepted = self.end_recv_part(&cursor, lengths, sink);
            if self.any(|_| !accepted) {
                return self.fail(Error::Status(Status::TOO_LONG));
            }
            cursor.advance();
            let left = |length: u64| length & REFERENCE == 0 && cursor.more(length);
            if !self.any(|lane| left(*lengths.of(lane))) {
                return Ok(());
            }
        }
    }
}

/// The second half of a message that came as a reference on some lane.
struct Rest<'r, S, L> {
    sink: &'r mut S,
    /// What the first half said.
    lengths: &'r mut L,
    /// Bytes that were put into the sink's room, and one; 0 where it gave none.
    places: &'r mut L,
}

impl<S: Sink, L: Lengths> Sink for Rest<'_, S, L> {
    #[inline(always)]
    fn begin(&mut self, lane: u32, length: u64) -> bool {
        let told = *self.lengths.of(lane);
        let place = *self.places.of(lane);
        if told & REFERENCE == 0 {
            // This one was whole.
            return length == 0;
        }
        if place > 0 {
            self.sink.filled(lane, (place - 1) as usize);
            return length == 0;
        }
        length == told & !REFERENCE
    }

    #[inline(always)]
    fn chunk(&mut self, lane: u32, bytes: &[u8]) {
        self.sink.chunk(lane, bytes);
    }
}

impl<T: Transport, P: Memory<Scope = Device>, W: Warp> DynamicPort<&Client<T, P, W>> {
    /// From now on the host sees, with each hand-over, what these lanes wrote to memory before it,
    /// and they see what the host wrote before it answered. Without this only hand-overs of more
    /// than 8 bytes do so.
    #[inline(always)]
    pub fn order(&mut self) {
        self.held.process.order(&mut self.held.slot);
    }

    /// Nobody will look for the reply to what is sent next: the port will be closed.
    #[inline(always)]
    pub(crate) const fn leave_reply(&mut self) {
        self.held.slot.leave_reply();
    }

    /// Begins another conversation on this port.
    #[inline(always)]
    pub(crate) fn begin(&mut self, opcode: Opcode) -> Result<(), Error> {
        if !self.held.owned {
            // Of the last one's end nobody wants to know more; that the run ends comes again.
            match self.held.process.wait(&mut self.held.slot) {
                Ok(_) => self.held.owned = true,
                Err(error) => return self.fail(error),
            }
        }
        self.error = None;
        self.begun = false;
        self.fresh = false;
        self.held.slot.begin(opcode);
        Ok(())
    }
}

/// A port that is closed where it is, so that what is known of it can stay in registers: dropping one
/// is a function of its own, which gets its address.
pub(crate) struct InPlace<P: Process>(ManuallyDrop<DynamicPort<P>>);

impl<'c, T: Transport, P: Memory<Scope = Device>, W: Warp> InPlace<&'c Client<T, P, W>> {
    /// A port that was just opened.
    #[inline(always)]
    pub(crate) fn new(client: &'c Client<T, P, W>, slot: ClientSlot) -> Self {
        Self(ManuallyDrop::new(DynamicPort::open(client, slot)))
    }

    /// Gives the port back.
    #[inline(always)]
    pub(crate) fn close(mut self) {
        let Held {
            process,
            slot,
            owned,
        } = &mut self.0.held;
        process.close(slot, *owned);
    }
}

impl<P: Process> Deref for InPlace<P> {
    type Target = DynamicPort<P>;

    #[inline(always)]
    fn deref(&self) -> &DynamicPort<P> {
        &self.0
    }
}

impl<P: Process> DerefMut for InPlace<P> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut DynamicPort<P> {
        &mut self.0
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
    /// [`try_open_alone`](Server::try_open_alone) has taken.
    #[inline(always)]
    pub fn has_words(&self) -> bool {
        self.held.slot.has_words()
    }

    /// Answers each lane with the first `bytes` bytes, at most 8, of its word.
    #[inline(always)]
    pub fn answer_words(&mut self, bytes: usize, words: &Words) {
        debug_assert!(self.held.owned, "the other side owns the packets");
        self.held
            .process
            .answer_words(&mut self.held.slot, bytes, words);
        self.sent();
    }

    /// Answers each lane with what `f` makes of its packet, of which `received` bytes have come and
    /// `sent` will go back. If `f` refuses a lane, nothing is answered, the port is still owned, and
    /// this gives `false`. `words` is room to work in.
    #[inline(always)]
    pub fn answer_packets(
        &mut self,
        received: usize,
        sent: usize,
        words: &mut Words,
        f: impl FnMut(u32, &mut Packet) -> bool,
    ) -> bool {
        debug_assert!(self.held.owned, "the other side owns the packets");
        let Held { process, slot, .. } = &mut self.held;
        let answered = process.answer_packets(slot, received, sent, words, f);
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
        let port = ManuallyDrop::new(self);
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
