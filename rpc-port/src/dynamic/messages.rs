//! Messages of any length over a port: in packets, or by reference.

use rpc_types::stream::{Answer, LENGTH_SIZE, REFERENCE};
use rpc_types::{Packet, Status};

use super::DynamicPort;
use crate::error::Error;
use crate::port::Held;
use crate::process::Process;
use crate::stream::{Cursor, Lengths, Sink};

impl<P: Process> DynamicPort<P> {
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
    /// server then `fail`s the call.
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
