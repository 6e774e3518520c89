//! Waiting for a reply.

use rpc_bitmap::{Device, Memory};
use rpc_types::{Packet, Status};

use super::{Client, ClientSlot, POLLS_PER_STOP};
use crate::error::Error;
use crate::transport::{Reply, Transport, WORD_BYTES};
use crate::warp::{Warp, is_leader};

/// Polls in which each lane looks for its own reply. After that the leader looks alone, and the
/// others when it has found its own: under load, looks are what the link is busy with.
const POLLS_BY_LANE: u32 = 6;

impl<T: Transport, P: Memory<Scope = Device>, W: Warp> Client<T, P, W> {
    /// The leader's part of a wait for a reply that comes to it alone.
    #[inline(always)]
    pub(super) fn wait_alone(&self, slot: &ClientSlot) -> Result<Status, Error> {
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
    pub(super) fn look(&self, slot: &ClientSlot) -> Option<Status> {
        let lane = self.warp.lane();
        let reply = self.transport.poll_reply(slot.port, lane, slot.sequence)?;
        // Acquire: pairs with the server's `publish_reply`. The other lanes are ordered behind
        // this by the meeting that follows.
        self.transport.acquire();
        Some(self.transport.reply_status(slot.port, &reply))
    }

    /// Every lane of the port: waits until each has its reply.
    ///
    /// The first look comes when a host that has nothing else to do has just answered. A look that
    /// comes too early costs a whole look more.
    #[inline(always)]
    pub(super) fn wait_by_lane(&self, slot: &mut ClientSlot) -> Result<Status, Error> {
        let lane = self.warp.lane();
        let leader = slot.mask & slot.mask.wrapping_neg();
        let lead = is_leader(slot.mask, lane);
        let (mut polls, mut ready, mut reply) = (0_u32, 0, None);
        self.warp.await_reply();
        loop {
            if reply.is_none() && (lead || polls < POLLS_BY_LANE || ready & leader != 0) {
                reply = self.transport.poll_reply(slot.port, lane, slot.sequence);
            }
            ready = self.warp.ballot(slot.mask, reply.is_some());
            if ready == slot.mask
                && let Some(reply) = reply
            {
                return Ok(self.accept(slot, reply));
            }
            polls += 1;
            if polls % POLLS_PER_STOP == 0
                && self.warp.any(slot.mask, lead && self.transport.stopped())
            {
                return Err(Error::Stopped);
            }
            if ready & leader == 0 && polls > POLLS_BY_LANE {
                self.warp.pause(polls);
            }
        }
    }

    /// Each lane has seen its reply.
    #[inline(always)]
    pub(super) fn accept(&self, slot: &mut ClientSlot, reply: Reply) -> Status {
        slot.any_ordered |= reply.in_packets;
        // Each lane for itself: pairs with the server's `publish_reply`, or `send`.
        if slot.ordered {
            // Acquire: the lanes may look at any memory now.
            self.transport.acquire();
        } else if slot.was_ordered || reply.in_packets {
            // Acquire: they will look at this port's packets, or write them, and only because the
            // reply is here. Where neither request nor reply was in packets there is nothing to
            // acquire: the message came with its number (A8).
            self.transport.shared().acquire_dependent();
        }
        slot.reply = reply;
        self.transport.reply_status(slot.port, &reply)
    }

    /// The first `bytes` bytes of the caller's reply that came in numbered words, and zeros.
    #[inline(always)]
    pub(super) fn numbered(&self, slot: &ClientSlot, bytes: usize) -> Packet {
        let mut packet = Packet::ZERO;
        packet.words[0] = slot.reply.word;
        if bytes > WORD_BYTES && slot.reply.bytes > WORD_BYTES {
            let mut polls = 0;
            // The server has written these before the word that has come: at most they are a moment
            // late.
            while !self.transport.take_reply_tails(
                slot.port,
                slot.sequence,
                &slot.reply,
                (self.warp.lane(), &mut packet),
                bytes,
            ) {
                polls += 1;
                self.warp.pause(polls);
            }
        }
        packet
    }
}
