//! Copies between messages and the device's memory.
//!
//! They go through [`Staging`] memory of the device: the poller starts a copy and looks at it in
//! each of its passes, with all other ports in between. Where the device has none to lend, a thread
//! of the pool makes the copy, through ordinary memory. That copies see, and show, what the client
//! expects is assumption A10 of `docs/memory-model.md`: they start after the server's acquire of the
//! client's packets, and the next hand-over, a release, comes after their end.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;

use rpc_types::Status;

use super::Conversation;
use crate::budget::Reservation;
use crate::handler::Failure;
use crate::memory::{MemoryError, Staging};
use crate::messages::{Piece, Reference};

/// Copies of one conversation at a time: one is looked at, or filled, while the other runs.
const DEPTH: usize = 2;
/// The most that is copied at once through ordinary memory.
const PIECE: usize = 256 << 10;
/// The most that a poller copies by itself before it looks at other ports: some 25 us.
const FILL: usize = 256 << 10;

/// A piece of what a lane refers to.
struct Part {
    lane: u32,
    /// Where it lies on the device.
    address: u64,
    size: usize,
    offset: u64,
    /// Of the whole message.
    length: u64,
}

impl Part {
    const fn piece<'p>(&self, bytes: &'p [u8]) -> Piece<'p> {
        Piece {
            offset: self.offset,
            length: self.length,
            bytes,
        }
    }
}

/// What is left of the messages that lanes refer to.
struct Left<'r> {
    references: &'r [Reference],
    /// Bytes that were cut off the first one.
    offset: u64,
}

impl<'r> Left<'r> {
    const fn new(references: &'r [Reference]) -> Self {
        Self {
            references,
            offset: 0,
        }
    }

    fn first(&mut self) -> Option<Reference> {
        while let Some((first, others)) = self.references.split_first() {
            if self.offset < first.length {
                return Some(*first);
            }
            (self.references, self.offset) = (others, 0);
        }
        None
    }

    /// The next part, of at most `size` bytes.
    fn cut(&mut self, size: usize) -> Option<Part> {
        let first = self.first()?;
        let offset = self.offset;
        let size = (first.length - offset).min(size as u64);
        self.offset += size;
        Some(Part {
            lane: first.lane,
            // It was made sure that no address of the message is past the end of all.
            address: first.address + offset,
            size: size as usize,
            offset,
            length: first.length,
        })
    }
}

impl Conversation {
    /// Copies what lanes refer to, in pieces for `f`.
    pub(super) async fn fetch_pieces(
        &mut self,
        references: &[Reference],
        f: &mut (impl FnMut(u32, Piece<'_>) + Send),
    ) -> Result<(), Failure> {
        let mut running = VecDeque::with_capacity(DEPTH);
        let fetched = self.fetch_each(references, f, &mut running).await;
        let running = running.into_iter().map(|(_, staging)| staging).collect();
        let ended = self.all_copied(running).await;
        fetched.and(ended)
    }

    /// As [`fetch_pieces`](Self::fetch_pieces), which waits for the copies that an error leaves in
    /// `running`.
    async fn fetch_each(
        &mut self,
        references: &[Reference],
        f: &mut (impl FnMut(u32, Piece<'_>) + Send),
        running: &mut VecDeque<(Part, Box<dyn Staging>)>,
    ) -> Result<(), Failure> {
        let mut left = Left::new(references);
        let mut spare = None;
        loop {
            while running.len() < DEPTH && left.first().is_some() {
                let Some(mut staging) = spare.take().or_else(|| self.staging()) else {
                    break;
                };
                if let Some(part) = left.cut(staging.size()) {
                    staging.start_to_host(part.address, part.size)?;
                    running.push_back((part, staging));
                }
            }
            if let Some((part, mut staging)) = running.pop_front() {
                self.copied(&mut *staging).await?;
                f(part.lane, part.piece(staging.bytes()));
                spare = Some(staging);
            } else if let Some(part) = left.cut(PIECE) {
                let (bytes, _reservation) = self.fetch(part.address, part.size).await?;
                f(part.lane, part.piece(&bytes));
            } else {
                return Ok(());
            }
        }
    }

    /// Copies bytes to places on the device.
    pub(super) async fn store(&mut self, places: &[(u64, &[u8])]) -> Result<(), Failure> {
        let mut running = VecDeque::with_capacity(DEPTH);
        let stored = self.store_each(places, &mut running).await;
        let ended = self.all_copied(running.into()).await;
        stored.and(ended)
    }

    /// As [`store`](Self::store), which waits for the copies that are left in `running`.
    async fn store_each(
        &mut self,
        places: &[(u64, &[u8])],
        running: &mut VecDeque<Box<dyn Staging>>,
    ) -> Result<(), Failure> {
        for &(address, bytes) in places {
            let length = bytes.len();
            if address.checked_add(length as u64).is_none() {
                return Err(MemoryError::OutOfRange { address, length }.into());
            }
            let mut stored = 0;
            while stored < length {
                let (to, rest) = (address + stored as u64, &bytes[stored..]);
                let mut staging = None;
                if running.len() < DEPTH {
                    staging = self.staging();
                }
                if staging.is_none()
                    && let Some(mut first) = running.pop_front()
                {
                    self.copied(&mut *first).await?;
                    staging = Some(first);
                }
                if let Some(mut staging) = staging {
                    let part = &rest[..rest.len().min(staging.size())];
                    self.fill(&mut *staging, part).await;
                    staging.start_to_device(part.len(), to)?;
                    running.push_back(staging);
                    stored += part.len();
                } else {
                    let part = &rest[..rest.len().min(PIECE)];
                    self.store_part(part, to).await?;
                    stored += part.len();
                }
            }
        }
        Ok(())
    }

    /// Waits until all of `running` is over; gives the first failure. After that the client is told
    /// how its call went, and may do with its memory what it likes.
    async fn all_copied(&mut self, running: Vec<Box<dyn Staging>>) -> Result<(), Failure> {
        let mut result = Ok(());
        for mut staging in running {
            // One that fails may never be known to be over: the others are waited for all the same.
            result = result.and(self.copied(&mut *staging).await);
        }
        result
    }

    fn staging(&self) -> Option<Box<dyn Staging>> {
        let staging = Arc::clone(&self.context.memory).staging();
        staging.filter(|staging| staging.size() > 0)
    }

    /// Copies `bytes` into memory that no copy uses.
    async fn fill(&mut self, staging: &mut dyn Staging, bytes: &[u8]) {
        let parts = staging.bytes_mut().chunks_mut(FILL).zip(bytes.chunks(FILL));
        for (index, (place, part)) in parts.enumerate() {
            if index > 0 {
                self.give_way().await;
            }
            place[..part.len()].copy_from_slice(part);
        }
    }

    /// Lets the poller look at its other ports.
    async fn give_way(&mut self) {
        let mut given = false;
        poll_fn(|_| {
            if given {
                return Poll::Ready(());
            }
            given = true;
            self.exchange.waits_for_copy.store(true, Relaxed);
            Poll::Pending
        })
        .await;
    }

    /// Waits until a copy is over; gives way to other ports at least once.
    async fn copied(&mut self, staging: &mut dyn Staging) -> Result<(), Failure> {
        loop {
            self.give_way().await;
            if staging.is_done()? {
                return Ok(());
            }
        }
    }

    /// Copies from the device on a thread of the pool.
    async fn fetch(
        &mut self,
        address: u64,
        length: usize,
    ) -> Result<(Vec<u8>, Reservation), Failure> {
        let mut reservation = self.context.budget.reserve();
        if !reservation.grow(length as u64) {
            return Err(Status::TOO_LONG.into());
        }
        let memory = Arc::clone(&self.context.memory);
        let fetch = move || {
            let mut bytes = vec![0; length];
            let result = memory.copy_to_host(address, &mut bytes);
            result.map(|()| (bytes, reservation))
        };
        self.copy_in_pool(fetch).await
    }

    /// Copies to the device on a thread of the pool.
    async fn store_part(&mut self, bytes: &[u8], address: u64) -> Result<(), Failure> {
        let mut reservation = self.context.budget.reserve();
        if !reservation.grow(bytes.len() as u64) {
            return Err(Status::TOO_LONG.into());
        }
        let memory = Arc::clone(&self.context.memory);
        let bytes = bytes.to_vec();
        let store = move || {
            let result = memory.copy_to_device(&bytes, address);
            drop(reservation);
            result
        };
        self.copy_in_pool(store).await
    }

    /// Runs a copy on a thread of the pool, unless the conversation has ended before its turn comes:
    /// after the end of a run nothing more is asked of the device.
    pub(super) async fn copy_in_pool<R: Send + 'static, E: Into<Failure> + Send + 'static>(
        &mut self,
        copy: impl FnOnce() -> Result<R, E> + Send + 'static,
    ) -> Result<R, Failure> {
        let wanted = Arc::new(());
        let still = Arc::downgrade(&wanted);
        let copied = self
            .blocking(move || (still.strong_count() > 0).then(copy))
            .await;
        drop(wanted);
        match copied {
            Some(result) => result.map_err(Into::into),
            None => Err(Status::CANCELLED.into()),
        }
    }
}
