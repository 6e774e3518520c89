//! What lanes have sent.

use std::ops::Deref;

use rpc_port::stream::Sink;
use rpc_types::Status;
use rpc_types::packet::MAX_LANES;

use crate::budget::Reservation;
use crate::handler::Failure;
use crate::memory::DeviceMemory;
use crate::port::lanes;

/// A value for each lane that takes part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerLane<T> {
    values: Vec<(u32, T)>,
}

impl<T> PerLane<T> {
    /// Values by lane, lowest lane first.
    pub(crate) const fn new(values: Vec<(u32, T)>) -> Self {
        Self { values }
    }

    /// Lanes and values, lowest lane first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (u32, &T)> {
        self.values.iter().map(|(lane, value)| (*lane, value))
    }

    /// The value of `lane`, if it takes part.
    pub fn get(&self, lane: u32) -> Option<&T> {
        self.values
            .iter()
            .find(|(own, _)| *own == lane)
            .map(|(_, value)| value)
    }

    /// The value of the lowest lane.
    pub fn lowest(&self) -> Option<&T> {
        self.values.first().map(|(_, value)| value)
    }
}

impl PerLane<u64> {
    /// The number of `lane`: 0 if it does not take part.
    pub(crate) fn of(&self, lane: u32) -> u64 {
        self.get(lane).copied().unwrap_or_default()
    }
}

/// A message for each lane that takes part; they count as in flight until this is dropped.
#[derive(Debug)]
pub struct Messages {
    lanes: PerLane<Vec<u8>>,
    lost: u64,
    _reservation: Reservation,
}

impl Messages {
    /// Bytes of all lanes.
    pub(crate) fn bytes(&self) -> u64 {
        self.iter().map(|(_, message)| message.len() as u64).sum()
    }

    /// The message of `lane`; empty if it does not take part.
    pub fn of(&self, lane: u32) -> &[u8] {
        self.lanes.get(lane).map_or(&[], Vec::as_slice)
    }

    /// Takes the message of `lane` away, which leaves an empty one. It counts as in flight still.
    pub fn take(&mut self, lane: u32) -> Vec<u8> {
        let mut values = self.lanes.values.iter_mut();
        let own = values.find(|(own, _)| *own == lane);
        own.map_or_else(Vec::new, |(_, message)| std::mem::take(message))
    }

    /// The lanes whose message was received and dropped, a bit each: see
    /// [`Conversation::recv_n_lossy`](crate::Conversation::recv_n_lossy).
    pub const fn lost(&self) -> u64 {
        self.lost
    }
}

impl Deref for Messages {
    type Target = PerLane<Vec<u8>>;

    fn deref(&self) -> &Self::Target {
        &self.lanes
    }
}

/// A part of a lane's message, for who does not need all of it at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece<'p> {
    /// Bytes of the message before this part.
    pub offset: u64,
    /// Bytes of the whole message, as its lane has announced it.
    pub length: u64,
    /// The part.
    pub bytes: &'p [u8],
}

impl Piece<'_> {
    /// Whether nothing of the message comes after this part.
    pub const fn is_last(&self) -> bool {
        self.offset + self.bytes.len() as u64 == self.length
    }
}

/// A message that a lane has sent by reference: where it lies on the device, as the device says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reference {
    pub(crate) lane: u32,
    pub(crate) address: u64,
    pub(crate) length: u64,
}

/// What takes the packets of a message on each lane.
pub(crate) trait Receiver: Sink {
    /// The message on `lane`, which has begun, is to be fetched: no byte of it will come. How much
    /// of it there is room for: all or nothing of it. `None` to receive no more.
    fn fetches(&mut self, lane: u32, length: u64) -> Option<u64>;

    /// Whether bytes came that there was no room for.
    fn is_full(&self) -> bool;
}

/// Messages that grow as their bytes arrive: what was announced is only compared.
pub(crate) struct Growing {
    messages: Vec<(u32, Vec<u8>)>,
    /// Lanes come in order: where the next one lies, most likely.
    next: usize,
    reservation: Reservation,
    max: u64,
    full: bool,
    /// What there is no room for is dropped lane by lane, and the messages are received to their end.
    lossy: bool,
    /// The lanes that this has come to.
    lost: u64,
}

impl Growing {
    /// Empty messages for the lanes of `mask`, of `max` bytes each at most.
    pub(crate) fn new(mask: u64, reservation: Reservation, max: u64) -> Self {
        Self {
            messages: lanes(mask).map(|lane| (lane, Vec::new())).collect(),
            next: 0,
            reservation,
            max,
            full: false,
            lossy: false,
            lost: 0,
        }
    }

    /// As [`new`](Self::new), and a message that there is no room for is lost alone.
    pub(crate) fn lossy(mask: u64, reservation: Reservation, max: u64) -> Self {
        Self {
            lossy: true,
            ..Self::new(mask, reservation, max)
        }
    }

    /// There is no room for the message of `lane`: whether to go on.
    fn lose(&mut self, lane: u32) -> bool {
        if self.lossy {
            self.lost |= 1 << lane;
            if let Some(message) = self.of(lane) {
                *message = Vec::new();
            }
        } else {
            self.full = true;
        }
        self.lossy
    }

    const fn is_lost(&self, lane: u32) -> bool {
        self.lost >> lane & 1 != 0
    }

    /// Copies from the device what was referred to. May block.
    pub(crate) fn fetch(
        &mut self,
        references: &[Reference],
        memory: &dyn DeviceMemory,
    ) -> Result<(), Failure> {
        for reference in references {
            let length = reference.length as usize;
            let Some(message) = self.of(reference.lane).filter(|_| length > 0) else {
                continue;
            };
            if message.try_reserve_exact(length).is_err() {
                return Err(Status::TOO_LONG.into());
            }
            message.resize(length, 0);
            memory.copy_to_host(reference.address, message)?;
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> Messages {
        Messages {
            lanes: PerLane::new(self.messages),
            lost: self.lost,
            _reservation: self.reservation,
        }
    }

    fn of(&mut self, lane: u32) -> Option<&mut Vec<u8>> {
        if self
            .messages
            .get(self.next)
            .is_none_or(|(own, _)| *own != lane)
        {
            self.next = self.messages.iter().position(|(own, _)| *own == lane)?;
        }
        let place = self.next;
        self.next += 1;
        Some(&mut self.messages[place].1)
    }
}

impl Sink for Growing {
    fn begin(&mut self, lane: u32, length: u64) -> bool {
        length <= self.max || self.lossy && self.lose(lane)
    }

    fn chunk(&mut self, lane: u32, bytes: &[u8]) {
        if self.full || self.is_lost(lane) {
            return;
        }
        if !self.reservation.grow(bytes.len() as u64) {
            self.lose(lane);
        } else if let Some(message) = self.of(lane) {
            if message.try_reserve(bytes.len()).is_ok() {
                message.extend_from_slice(bytes);
            } else {
                self.lose(lane);
            }
        }
    }
}

impl Receiver for Growing {
    fn fetches(&mut self, lane: u32, length: u64) -> Option<u64> {
        if self.is_lost(lane) {
            return Some(0);
        }
        if self.reservation.grow(length) {
            return Some(length);
        }
        self.lossy.then(|| {
            self.lose(lane);
            0
        })
    }

    fn is_full(&self) -> bool {
        self.full
    }
}

/// Hands over each part of a message as it comes.
pub(crate) struct Handing<'f, F> {
    f: &'f mut F,
    max: u64,
    /// For each lane the length of its message, and how much of it has come.
    progress: [(u64, u64); MAX_LANES as usize],
    bytes: u64,
}

impl<'f, F: FnMut(u32, Piece<'_>)> Handing<'f, F> {
    /// To `f`, messages of at most `max` bytes.
    pub(crate) const fn new(f: &'f mut F, max: u64) -> Self {
        Self {
            f,
            max,
            progress: [(0, 0); MAX_LANES as usize],
            bytes: 0,
        }
    }

    /// Bytes of all messages.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl<F: FnMut(u32, Piece<'_>)> Sink for Handing<'_, F> {
    fn begin(&mut self, lane: u32, length: u64) -> bool {
        if length > self.max {
            return false;
        }
        self.progress[lane as usize] = (length, 0);
        self.bytes += length;
        if length == 0 {
            // Its lane took part all the same.
            self.chunk(lane, &[]);
        }
        true
    }

    fn chunk(&mut self, lane: u32, bytes: &[u8]) {
        let (length, offset) = self.progress[lane as usize];
        self.progress[lane as usize].1 += bytes.len() as u64;
        (self.f)(
            lane,
            Piece {
                offset,
                length,
                bytes,
            },
        );
    }
}

impl<F: FnMut(u32, Piece<'_>)> Receiver for Handing<'_, F> {
    fn fetches(&mut self, _: u32, length: u64) -> Option<u64> {
        Some(length)
    }

    fn is_full(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;

    #[test]
    fn what_is_announced_is_not_allocated() {
        let budget = Budget::new(100);
        let mut sink = Growing::new(0b101, budget.reserve(), 1 << 40);
        assert!(sink.begin(0, 1 << 40) && !sink.begin(2, (1 << 40) + 1));
        assert!(!sink.begin(2, u64::MAX));
        assert!(sink.begin(2, 0));
        sink.chunk(0, &[1; 50]);
        sink.chunk(2, &[2; 3]);
        sink.chunk(0, &[3; 47]);
        assert!(!sink.is_full());
        assert!(
            sink.messages
                .iter()
                .all(|(_, message)| message.capacity() < 200)
        );
        sink.chunk(0, &[4]);
        assert!(sink.is_full());
        let mut messages = sink.finish();
        assert_eq!(messages.bytes(), 100);
        assert_eq!(
            (messages.of(0).len(), messages.of(1), messages.of(2)),
            (97, &[][..], &[2; 3][..])
        );
        assert_eq!((messages.take(0).len(), messages.take(1).len()), (97, 0));
        assert_eq!(messages.bytes(), 3);
        assert!(!budget.reserve().grow(1));
        drop(messages);
        assert!(budget.reserve().grow(100));
    }
}
