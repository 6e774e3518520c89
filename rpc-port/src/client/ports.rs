//! Which port a call gets: finding one, locking it, giving it back.
//!
//! The state of a port is one word of the private region; [`Geometry::state`](rpc_types::Geometry::state)
//! says what is in it. Only the leader of a mask comes here.

use rpc_bitmap::{Device, Memory};
use rpc_types::layout::{IN_FLIGHT, LEADER_SHIFT, LOCKED, MAX_PORTS, STAMP_BITS, STAMP_SHIFT};

use super::{Client, POLLS_PER_STOP};
use crate::transport::Transport;
use crate::warp::Warp;

impl<T: Transport, P: Memory<Scope = Device>, W: Warp> Client<T, P, W> {
    /// The port to begin with.
    #[inline(always)]
    pub(super) fn start(&self, reserved: bool) -> u32 {
        let geometry = self.transport.geometry();
        let start = self.warp.port_hint();
        if reserved {
            geometry.panic_port()
        } else if start < geometry.ports {
            start
        } else {
            start.checked_rem(geometry.ports).unwrap_or(0)
        }
    }

    /// Locks `port` if it is free: its index and sequence number. One whose last call was
    /// asynchronous is free if `in_flight` and the server has answered.
    #[inline(always)]
    pub(super) fn lock(&self, port: u32, in_flight: bool) -> Option<Found> {
        let place = self.state(port);
        // Relaxed: whoever goes on to write packets acquires in `meet`.
        let before = self.private.fetch_or64(place, LOCKED);
        if before & LOCKED != 0 {
            return None;
        }
        let found = Found {
            port,
            sequence: before as u32,
            stamp: (before >> STAMP_SHIFT) as u32,
        };
        if before & IN_FLIGHT != 0 {
            // Acquire: pairs with the release in `close` of the last holder, which has read the reply
            // before this one. Where a mailbox is a bit, what it was two turns ago would pass for an
            // answer.
            self.private.acquire_dependent();
            let leader = (before >> LEADER_SHIFT) as u32 % u64::BITS;
            let answered = || self.transport.poll_reply(port, leader, found.sequence);
            if !in_flight || answered().is_none() {
                self.private.fetch_add64(place, LOCKED.wrapping_neg());
                return None;
            }
            // Acquire: pairs with the server's `publish_reply`; it reads the packets no more. The lanes
            // that write them have met this one in `meet`.
            self.transport.acquire();
            let after = LOCKED | state(found.sequence, found.stamp);
            self.private
                .fetch_add64(place, after.wrapping_sub(before | LOCKED));
            self.in_flight().clear(port);
        } else {
            self.busy().set(port);
        }
        Some(found)
    }

    /// Gives up the lock of a port whose state was `found` and is now `after`.
    ///
    /// An addition, and no store: it is part of a release's sequence, so that what an earlier holder
    /// released is handed on; and whoever tries the lock meanwhile changes nothing.
    #[inline(always)]
    pub(super) fn unlock(&self, port: u32, found: u64, after: u64) {
        self.busy().clear(port);
        let change = after.wrapping_sub(LOCKED | found);
        // Relaxed: this port's words carry their numbers and its packets were not touched, so there
        // is nothing to release. What the lanes' words hold was read by the server before it
        // answered, so no later store of another warp is overtaken by one of these (A9).
        self.private.fetch_add64(self.state(port), change);
    }

    /// Locks `port` if it seems to be free, as [`lock`](Self::lock) does: without an atomic, of which
    /// each is waited for by all that come to the same port, if it is not.
    #[inline(always)]
    pub(super) fn try_lock(&self, port: u32, in_flight: bool) -> u64 {
        if self.private.load64(self.state(port)) & LOCKED != 0 {
            return NOT_FOUND;
        }
        lock(self.clone(), port, in_flight)
    }

    /// Any port that can be had now.
    #[inline(always)]
    pub(super) fn find(&self, start: u32, reserved: bool) -> u64 {
        if reserved {
            return self.try_lock(start, true);
        }
        let ports = self.transport.geometry().ports;
        // Those that are this warp's rather than others'.
        let stride = self.warp.port_stride();
        let mut port = start;
        for _ in 0..OWN_PORTS {
            let found = self.try_lock(port, true);
            if found != NOT_FOUND {
                return found;
            }
            port = port.wrapping_add(stride);
            if port >= ports {
                port = port.checked_rem(ports).unwrap_or(0);
            }
        }
        // One that is free, then one whose last call may have been answered meanwhile.
        let (busy, in_flight) = (self.busy(), self.in_flight());
        let words = ports.div_ceil(u32::BITS);
        for step in 0..2 * words {
            let waits = step >= words;
            let index = (start / u32::BITS + step) % words;
            let mut candidates = if waits {
                in_flight.word(index)
            } else {
                !busy.word(index)
            };
            let rest = ports - index * u32::BITS;
            if rest < u32::BITS {
                candidates &= (1 << rest) - 1;
            }
            // Each warp begins at another bit: they all see the same ones.
            candidates = candidates.rotate_right(start);
            while candidates != 0 {
                let bit = candidates.trailing_zeros().wrapping_add(start) % u32::BITS;
                let found = self.try_lock(index * u32::BITS + bit, waits);
                if found != NOT_FOUND {
                    return found;
                }
                candidates &= candidates - 1;
            }
        }
        NOT_FOUND
    }
}

/// Ports that a warp looks at before it looks for any: those at its hint and at its stride from
/// there.
pub(super) const OWN_PORTS: u32 = 4;

/// The leader, where its own port was not to be had: finds another, and waits for one if it `waits`.
///
/// Here and in [`close`] the client comes by value and a call is not inlined: a program has these
/// once, and can keep its client in registers. There is no mask: the leader is alone.
#[cold]
#[inline(never)]
#[allow(clippy::needless_pass_by_value)]
pub(super) fn search<T: Transport, P: Memory<Scope = Device>, W: Warp>(
    client: Client<T, P, W>,
    start: u32,
    reserved: bool,
    waits: bool,
) -> u64 {
    let mut attempts = 0;
    loop {
        let found = client.find(start, reserved);
        if found != NOT_FOUND || !waits {
            return found;
        }
        attempts += 1;
        if attempts % POLLS_PER_STOP == 0 && client.transport.stopped() {
            return STOPPED;
        }
        client.warp.back_off(attempts);
    }
}

/// As [`Client::lock`].
#[inline(never)]
#[allow(clippy::needless_pass_by_value)]
pub(super) fn lock<T: Transport, P: Memory<Scope = Device>, W: Warp>(
    client: Client<T, P, W>,
    port: u32,
    in_flight: bool,
) -> u64 {
    encode(client.lock(port, in_flight))
}

/// A port that some of its lanes let go of.
#[derive(Clone, Copy)]
pub(super) struct Holding {
    pub(super) port: u32,
    pub(super) mask: u64,
    /// The lanes that let go of it here.
    pub(super) active: u64,
    /// The port's state, as it was found and as it is to be.
    pub(super) found: u64,
    pub(super) after: u64,
    pub(super) owned: bool,
    /// There is something to release.
    pub(super) releases: bool,
}

/// The leader of lanes that let go of a port, when that is not all there is to it: others may hold it
/// still, there is something to release, or the last call goes on.
#[inline(never)]
#[allow(clippy::needless_pass_by_value)]
pub(super) fn close<T: Transport, P: Memory<Scope = Device>, W: Warp>(
    client: Client<T, P, W>,
    holding: Holding,
) {
    let Holding { port, mask, .. } = holding;
    if holding.active != mask {
        // Acquire and release: whoever comes last is ordered behind all the others.
        let gone = client
            .private
            .fetch_or64_acq_rel(client.holders(port), holding.active);
        if gone | holding.active != mask {
            return;
        }
        // Relaxed: the port's next holder is ordered behind this by the lock.
        client.private.store64(client.holders(port), 0);
    }
    let mut after = holding.after;
    if holding.owned {
        client.busy().clear(port);
    } else {
        after |= IN_FLIGHT | u64::from(mask.trailing_zeros()) << LEADER_SHIFT;
        client.in_flight().set(port);
    }
    let change = after.wrapping_sub(LOCKED | holding.found);
    if holding.releases {
        // Release: pairs with the acquire in `meet` of the next holder, which may write the packets
        // that these lanes have read; and, for words that they have not handed over, with the branch
        // in the next holder's `lock`, behind which it writes its own (A11).
        client
            .private
            .fetch_add64_release(client.state(port), change);
    } else {
        // Relaxed, as in `unlock`.
        client.private.fetch_add64(client.state(port), change);
    }
}

/// A port that was locked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) port: u32,
    pub(super) sequence: u32,
    pub(super) stamp: u32,
}

/// The state of a port that nobody holds.
#[inline(always)]
pub(super) const fn state(sequence: u32, stamp: u32) -> u64 {
    sequence as u64 | (stamp as u64) << STAMP_SHIFT
}

pub(super) const NOT_FOUND: u64 = u64::MAX;
pub(super) const STOPPED: u64 = u64::MAX - 1;

/// Where a [`Found`] as one word has its stamp: behind the sequence number and the port.
pub(super) const FOUND_STAMP: u32 = 32 + PORT_BITS;
/// Bits of a port's number.
pub(super) const PORT_BITS: u32 = MAX_PORTS.ilog2() + 1;
pub(super) const PORT_MASK: u32 = (1 << PORT_BITS) - 1;
const _: () = assert!(FOUND_STAMP + STAMP_BITS < u64::BITS);

/// What was found as one word, which is neither [`NOT_FOUND`] nor [`STOPPED`].
#[inline(always)]
pub(super) const fn encode(found: Option<Found>) -> u64 {
    match found {
        Some(found) => {
            (found.stamp as u64) << FOUND_STAMP | (found.port as u64) << 32 | found.sequence as u64
        }
        None => NOT_FOUND,
    }
}
