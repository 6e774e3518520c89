//! What lanes have sent.

use std::ops::Deref;

use rpc_port::stream::Sink;

use crate::budget::Reservation;
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

/// A message for each lane that takes part; they count as in flight until this is dropped.
#[derive(Debug)]
pub struct Messages {
    lanes: PerLane<Vec<u8>>,
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
}

impl Deref for Messages {
    type Target = PerLane<Vec<u8>>;

    fn deref(&self) -> &Self::Target {
        &self.lanes
    }
}

/// Messages that grow as their bytes arrive: what was announced is only compared.
pub(crate) struct Growing {
    messages: Vec<(u32, Vec<u8>)>,
    /// Lanes come in order: where the next one lies, most likely.
    next: usize,
    reservation: Reservation,
    max: u64,
    full: bool,
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
        }
    }

    /// Whether bytes came that there was no room for.
    pub(crate) const fn is_full(&self) -> bool {
        self.full
    }

    pub(crate) fn finish(self) -> Messages {
        Messages {
            lanes: PerLane::new(self.messages),
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
    fn begin(&mut self, _: u32, length: u64) -> bool {
        length <= self.max
    }

    fn chunk(&mut self, lane: u32, bytes: &[u8]) {
        if self.full || !self.reservation.grow(bytes.len() as u64) {
            self.full = true;
        } else if let Some(message) = self.of(lane) {
            if message.try_reserve(bytes.len()).is_ok() {
                message.extend_from_slice(bytes);
            } else {
                self.full = true;
            }
        }
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
        let messages = sink.finish();
        assert_eq!(messages.bytes(), 100);
        assert_eq!(
            (messages.of(0).len(), messages.of(1), messages.of(2)),
            (97, &[][..], &[2; 3][..])
        );
        assert!(!budget.reserve().grow(1));
        drop(messages);
        assert!(budget.reserve().grow(100));
    }
}
