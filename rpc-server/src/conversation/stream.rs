//! Messages of any length, which come and go in packets or by reference.

use rpc_port::Sink;
use rpc_port::stream::{AllLengths, Lengths};
use rpc_types::Status;
use rpc_types::stream::{Answer, REFERENCE};

use super::Conversation;
use crate::handler::Failure;
use crate::memory::MemoryError;
use crate::messages::{Growing, Handing, Messages, Piece, Receiver, Reference};
use crate::port::lanes;

impl Conversation {
    /// Receives a message of any length from each lane, none longer than
    /// [`Options::max_message`](crate::Options::max_message).
    ///
    /// # Errors
    /// [`Status::TOO_LONG`] for a longer one, or when all messages in flight are too much;
    /// [`Status::INVALID`] for one that is not where its lane says; or when the conversation is
    /// over.
    pub async fn recv_n(&mut self) -> Result<Messages, Failure> {
        self.recv_n_max(u64::MAX).await
    }

    /// As [`recv_n`](Self::recv_n), with a bound of the handler's own: `max` bytes at most.
    ///
    /// # Errors
    /// As [`recv_n`](Self::recv_n).
    pub async fn recv_n_max(&mut self, max: u64) -> Result<Messages, Failure> {
        let max = max.min(self.context.max_message);
        let sink = Growing::new(self.mask, self.context.budget.reserve(), max);
        self.recv_growing(sink).await
    }

    /// As [`recv_n_max`](Self::recv_n_max), but every message is received to its end, so that the
    /// conversation can go on: one that is too long, or that there is no room for, is dropped and
    /// its lane among the [`lost`](Messages::lost). Unless the bound was the handler's own,
    /// [`Status::TOO_LONG`] is [noted](Self::note) then.
    ///
    /// # Errors
    /// [`Status::INVALID`] for a message that is not where its lane says; or when the conversation
    /// is over.
    pub async fn recv_n_lossy(&mut self, max: u64) -> Result<Messages, Failure> {
        let bound = max.min(self.context.max_message);
        let sink = Growing::lossy(self.mask, self.context.budget.reserve(), bound);
        let messages = self.recv_growing(sink).await?;
        if messages.lost() != 0 && max >= self.context.max_message {
            self.note(Status::TOO_LONG.into());
        }
        Ok(messages)
    }

    async fn recv_growing(&mut self, mut sink: Growing) -> Result<Messages, Failure> {
        let references = self.recv_packets(&mut sink).await?;
        if !references.is_empty() {
            let memory = self.context.memory.clone();
            let fetch = move || sink.fetch(&references, &*memory).map(|()| sink);
            sink = self.copy_in_pool(fetch).await?;
            self.acknowledge().await?;
        }
        let messages = sink.finish();
        self.open()?.bytes_in += messages.bytes();
        Ok(messages)
    }

    /// Receives a message of any length from each lane, none longer than
    /// [`Options::max_message`](crate::Options::max_message), without ever holding one: `f` gets
    /// them in pieces, each lane's in order and at least one.
    ///
    /// What comes by reference is handed out in the memory that the device has copied it to, while
    /// the next piece is being copied. `f` runs in the poller: quick work only.
    ///
    /// # Errors
    /// As [`recv_n`](Self::recv_n); `f` may have had pieces of some lanes by then.
    pub async fn recv_pieces(
        &mut self,
        mut f: impl FnMut(u32, Piece<'_>) + Send,
    ) -> Result<(), Failure> {
        let mut sink = Handing::new(&mut f, self.context.max_message);
        let references = self.recv_packets(&mut sink).await?;
        let bytes = sink.bytes();
        if !references.is_empty() {
            self.fetch_pieces(&references, &mut f).await?;
            self.acknowledge().await?;
        }
        self.open()?.bytes_in += bytes;
        Ok(())
    }

    /// Sends `message(lane)`, of any length, to each lane.
    ///
    /// # Errors
    /// [`Status::INVALID`] if a lane wants its message where it has no memory; or when the
    /// conversation is over.
    pub async fn send_n<'m>(
        &mut self,
        mut message: impl Fn(u32) -> &'m [u8] + Send,
    ) -> Result<(), Failure> {
        let referred = self.referred(&message);
        let (mask, all) = (self.mask, &mut message);
        self.send_packets(all, mask & !referred, referred).await?;
        if referred != 0 {
            let declined = self.store_referred(all, referred).await?;
            self.send_packets(all, declined, 0).await?;
        }
        self.open()?.bytes_out += lanes(mask).map(|l| message(l).len() as u64).sum::<u64>();
        Ok(())
    }

    /// The lanes whose messages are long enough to go by reference.
    fn referred<'m>(&self, message: &impl Fn(u32) -> &'m [u8]) -> u64 {
        let bulk = self.context.bulk;
        if bulk == 0 {
            return 0;
        }
        lanes(self.mask)
            .filter(|&lane| message(lane).len() as u64 >= bulk)
            .fold(0, |mask, lane| mask | 1 << lane)
    }

    /// Receives what comes in packets; gives what is to be fetched.
    async fn recv_packets(
        &mut self,
        sink: &mut (impl Receiver + Send),
    ) -> Result<Vec<Reference>, Failure> {
        let mut incoming = Incoming {
            sink,
            bulk: self.context.bulk,
            references: Vec::new(),
            failure: None,
        };
        let mut cursor = self.open()?.port.cursor();
        let mut lengths = AllLengths::ZERO;
        loop {
            self.packets().await?;
            let port = &mut self.open()?.port;
            let accepted = port.end_recv_part(&cursor, &mut lengths, &mut incoming);
            if let Some(failure) = incoming.failure {
                return Err(failure);
            }
            if !accepted || incoming.sink.is_full() {
                return Err(Status::TOO_LONG.into());
            }
            cursor.advance();
            let bulk = incoming.bulk != 0;
            let left = |length: u64| !(bulk && length & REFERENCE != 0) && cursor.more(length);
            if !lanes(self.mask).any(|lane| left(*lengths.of(lane))) {
                return Ok(incoming.references);
            }
        }
    }

    /// Sends in packets: the lanes of `whole` get their messages, those of `referred` are told the
    /// length of theirs, all others get an empty one.
    // By `&mut`, as what is held while waiting has to be `Send`, and `&` would ask for `Sync`.
    async fn send_packets<'m>(
        &mut self,
        message: &mut (impl Fn(u32) -> &'m [u8] + Send),
        whole: u64,
        referred: u64,
    ) -> Result<(), Failure> {
        let mut cursor = self.open()?.port.cursor();
        loop {
            self.own().await?;
            let part = |lane| {
                if whole >> lane & 1 != 0 {
                    message(lane)
                } else {
                    &[]
                }
            };
            let refer = |lane| {
                let told = message(lane).len() as u64 | REFERENCE;
                (referred >> lane & 1 != 0).then_some([told, 0])
            };
            self.open()?.port.end_send_part(&cursor, &part, &refer);
            cursor.advance();
            if !lanes(whole).any(|lane| cursor.more(message(lane).len() as u64)) {
                return Ok(());
            }
        }
    }

    /// Copies messages to where the lanes of `referred` want them; gives the lanes that have no
    /// place for theirs.
    async fn store_referred<'m>(
        &mut self,
        message: &mut (impl Fn(u32) -> &'m [u8] + Send),
        referred: u64,
    ) -> Result<u64, Failure> {
        self.packets().await?;
        let (mut declined, mut places) = (0, Vec::new());
        self.open()?
            .port
            .end_recv(size_of::<Answer>(), &mut |lane, packet| {
                let Answer { address, room } = packet.get();
                if referred >> lane & 1 == 0 {
                    return;
                }
                if address == 0 {
                    declined |= 1 << lane;
                    return;
                }
                let message = message(lane);
                let length = room.min(message.len() as u64) as usize;
                places.push((address, &message[..length]));
            });
        self.store(&places).await?;
        Ok(declined)
    }

    /// Tells the client that its message is here, or will never be looked at again.
    async fn acknowledge(&mut self) -> Result<(), Failure> {
        self.send_with(0, |_, _| ()).await
    }
}

/// A receiver that is told of references besides.
struct Incoming<'s, S> {
    sink: &'s mut S,
    bulk: u64,
    references: Vec<Reference>,
    failure: Option<Failure>,
}

impl<S: Receiver> Sink for Incoming<'_, S> {
    fn begin(&mut self, lane: u32, length: u64) -> bool {
        self.sink.begin(lane, length)
    }

    fn chunk(&mut self, lane: u32, bytes: &[u8]) {
        self.sink.chunk(lane, bytes);
    }

    fn refer(&mut self, lane: u32, length: u64, address: u64) -> bool {
        if self.bulk == 0 {
            // Where nothing goes by reference it is a length, and too large.
            return self.sink.begin(lane, length | REFERENCE);
        }
        if !self.sink.begin(lane, length) {
            return false;
        }
        let Some(length) = self.sink.fetches(lane, length) else {
            return false;
        };
        if address.checked_add(length).is_none() {
            let length = length as usize;
            let out = MemoryError::OutOfRange { address, length };
            self.failure.get_or_insert(out.into());
            return false;
        }
        self.references.push(Reference {
            lane,
            address,
            length,
        });
        true
    }
}
