//! Which handler serves which opcode.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use rpc_port::Procedure;
use rpc_port::transport::{Room, WORD_BYTES};
use rpc_types::packet::PACKET_SIZE;
use rpc_types::{Opcode, Packet, Status};

use crate::conversation::Conversation;
use crate::handler::{Call, Failure, Flow};
use crate::port::{Answer, lanes};

pub(crate) type Talk = Pin<Box<dyn Future<Output = Result<Flow, Failure>> + Send>>;
/// The words are those of the lanes, if the port has them, and room to work in.
type ProcedureFn = dyn Fn(Call<'_>, &mut dyn Answer, &mut Room) -> Result<(), Status> + Send + Sync;
type ConversationFn = dyn Fn(Conversation) -> Talk + Send + Sync;

pub(crate) enum Kind {
    Procedure {
        run: Box<ProcedureFn>,
        /// Bytes of a lane's request and reply.
        bytes: [usize; 2],
    },
    Conversation(Box<ConversationFn>),
}

pub(crate) struct Entry {
    pub(crate) opcode: Opcode,
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
}

/// Handlers by opcode. It is built before a layout is known and serves any.
#[derive(Default)]
pub struct Table {
    entries: Vec<Entry>,
    at_drain: Vec<Box<dyn Fn() + Send + Sync>>,
}

impl Table {
    /// A table without handlers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Serves the procedure `C` by `f`: once for each lane, lowest first, in the poller thread
    /// itself. So `f` is quick and never waits.
    ///
    /// # Errors
    /// A status that `f` returns for a lane is the whole call's: no further lane is served, and no
    /// lane gets a reply.
    pub fn procedure<C: Procedure>(
        &mut self,
        f: impl Fn(&Call<'_>, C::Request) -> Result<C::Reply, Status> + Send + Sync + 'static,
    ) {
        let [received, sent] = [size_of::<C::Request>(), size_of::<C::Reply>()];
        let run = move |mut call: Call<'_>, port: &mut dyn Answer, room: &mut Room| {
            let short = received <= WORD_BYTES && sent <= WORD_BYTES;
            if short && (received == 0 || port.has_words()) {
                // What most calls are: without a packet, or a step through the port for each lane.
                for lane in lanes(call.mask) {
                    call.lane = lane;
                    let word = &mut room.words[lane as usize];
                    let request = &bytemuck::bytes_of(word)[..received];
                    let reply = f(&call, bytemuck::pod_read_unaligned(request))?;
                    *word = 0;
                    bytemuck::bytes_of_mut(word)[..sent]
                        .copy_from_slice(bytemuck::bytes_of(&reply));
                }
                port.answer_words(sent, &room.words);
                return Ok(());
            }
            let mut result = Ok(());
            port.answer_packets(received, sent, room, &mut |lane, packet| {
                call.lane = lane;
                match f(&call, packet.get()) {
                    Ok(reply) => {
                        *packet = Packet::ZERO;
                        packet.set(&reply);
                    }
                    Err(status) => result = Err(status),
                }
                result.is_ok()
            });
            result
        };
        self.insert(Entry {
            opcode: C::OPCODE,
            name: C::NAME,
            kind: Kind::Procedure {
                run: Box::new(run),
                bytes: [received, sent],
            },
        });
    }

    /// Serves `opcode` by `f` as a [`procedure`](Self::procedure) of whole packets: `f` finds a
    /// lane's request in its packet and leaves the reply there, both of as many bytes as the layout
    /// has room for. What is behind those is zero, and goes nowhere.
    ///
    /// # Errors
    /// As for [`procedure`](Self::procedure).
    pub fn packets(
        &mut self,
        opcode: Opcode,
        name: &'static str,
        f: impl Fn(&Call<'_>, &mut Packet) -> Result<(), Status> + Send + Sync + 'static,
    ) {
        let run = move |mut call: Call<'_>, port: &mut dyn Answer, room: &mut Room| {
            let mut result = Ok(());
            port.answer_packets(PACKET_SIZE, PACKET_SIZE, room, &mut |lane, packet| {
                call.lane = lane;
                result = f(&call, packet);
                result.is_ok()
            });
            result
        };
        self.insert(Entry {
            opcode,
            name,
            kind: Kind::Procedure {
                run: Box::new(run),
                bytes: [PACKET_SIZE; 2],
            },
        });
    }

    /// Serves `opcode` by `f`: a conversation that may wait for its client as often as it likes,
    /// and for blocking work through [`Conversation::blocking`]. It is polled by a poller thread,
    /// which must not be held up between two `await`s.
    pub fn conversation<F, Fut>(&mut self, opcode: Opcode, name: &'static str, f: F)
    where
        F: Fn(Conversation) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Flow, Failure>> + Send + 'static,
    {
        let start = move |conversation| Box::pin(f(conversation)) as Talk;
        self.insert(Entry {
            opcode,
            name,
            kind: Kind::Conversation(Box::new(start)),
        });
    }

    /// Runs `f` when a service over this table is drained, after the last call was served; at the same
    /// time as the others that are to run then, none of which waits for another.
    pub fn at_drain(&mut self, f: impl Fn() + Send + Sync + 'static) {
        self.at_drain.push(Box::new(f));
    }

    /// Whether `opcode` has a handler.
    pub fn contains(&self, opcode: Opcode) -> bool {
        self.entries.iter().any(|entry| entry.opcode == opcode)
    }

    /// A later handler replaces an earlier one of the same opcode.
    fn insert(&mut self, entry: Entry) {
        match self
            .entries
            .iter_mut()
            .find(|old| old.opcode == entry.opcode)
        {
            Some(old) => *old = entry,
            None => self.entries.push(entry),
        }
    }

    pub(crate) fn freeze(self) -> Frozen {
        let size = (self.entries.len() * 2).next_power_of_two().max(2);
        let mut index = vec![EMPTY; size].into_boxed_slice();
        for (slot, entry) in self.entries.iter().enumerate() {
            let mut place = hash(entry.opcode, size);
            while index[place].1 != NONE {
                place = (place + 1) & (size - 1);
            }
            index[place] = (entry.opcode.0, slot as u32);
        }
        Frozen {
            entries: self.entries,
            at_drain: self.at_drain,
            index,
        }
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.entries.iter().map(|entry| entry.name))
            .finish()
    }
}

const NONE: u32 = u32::MAX;
const EMPTY: (u32, u32) = (0, NONE);

fn hash(opcode: Opcode, size: usize) -> usize {
    // Fibonacci hashing: opcodes of one kind differ in their low bits only.
    (opcode.0.wrapping_mul(0x9E37_79B9) >> 16) as usize & (size - 1)
}

/// A table that changes no more: found by one or two probes, since a call costs a lookup.
pub(crate) struct Frozen {
    pub(crate) entries: Vec<Entry>,
    at_drain: Vec<Box<dyn Fn() + Send + Sync>>,
    /// Opcode and slot, open addressing, at most half full.
    index: Box<[(u32, u32)]>,
}

impl Frozen {
    /// How many functions are to run when the last call was served.
    pub(crate) const fn hooks(&self) -> usize {
        self.at_drain.len()
    }

    /// Runs one of them.
    pub(crate) fn drained(&self, hook: usize) {
        if let Some(hook) = self.at_drain.get(hook) {
            hook();
        }
    }

    /// The slot of an opcode: that of all unknown ones comes last.
    pub(crate) fn slot(&self, opcode: Opcode) -> usize {
        let mut place = hash(opcode, self.index.len());
        loop {
            match self.index[place] {
                (_, NONE) => return self.entries.len(),
                (known, slot) if known == opcode.0 => return slot as usize,
                _ => place = (place + 1) & (self.index.len() - 1),
            }
        }
    }

    pub(crate) fn name(&self, opcode: Opcode) -> Option<&'static str> {
        self.entries
            .get(self.slot(opcode))
            .map(|entry| entry.name)
            .or(opcode.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rpc_port::procedure::Increment;

    #[test]
    fn every_opcode_is_found_and_later_handlers_replace() {
        let mut table = Table::new();
        for n in 0..300 {
            table.conversation(Opcode::user(n), "old", |_| async { Ok(Flow::Continue) });
            table.conversation(Opcode::user(n), "new", |_| async { Ok(Flow::Continue) });
        }
        table.procedure::<Increment>(|_, n| Ok(n + 1));
        let table = table.freeze();
        assert_eq!(table.entries.len(), 301);
        for n in 0..300 {
            assert_eq!(table.slot(Opcode::user(n)), n as usize);
            assert_eq!(table.name(Opcode::user(n)), Some("new"));
        }
        assert_eq!(table.slot(Opcode::TEST_INCREMENT), 300);
        for opcode in [Opcode::user(300), Opcode(0), Opcode(u32::MAX)] {
            assert_eq!(table.slot(opcode), 301);
        }
        assert_eq!(Table::new().freeze().slot(Opcode(0)), 0);
    }
}
