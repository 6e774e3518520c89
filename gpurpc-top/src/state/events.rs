//! The last calls.

use std::collections::VecDeque;

use rpc_stats::Event;

/// Events that are kept.
pub const KEPT: usize = 4096;

/// The last calls, put together from what the snapshots have.
#[derive(Clone, Debug, Default)]
pub struct Events {
    events: VecDeque<Event>,
    /// Events that were there before the first one that is kept.
    gone: u64,
}

impl Events {
    /// Takes the events of a snapshot: those of the one before may be among them.
    pub fn push(&mut self, events: &[Event]) {
        let known = self.events.back().and_then(|last| {
            let at = events.iter().rposition(|event| event == last)?;
            Some(at + 1)
        });
        for event in &events[known.unwrap_or(0)..] {
            if self.events.len() == KEPT {
                self.events.pop_front();
                self.gone += 1;
            }
            self.events.push_back(*event);
        }
    }

    /// The number of the first event that is kept.
    pub fn begin(&self) -> u64 {
        self.gone
    }

    /// Events so far.
    pub fn end(&self) -> u64 {
        self.gone + self.events.len() as u64
    }

    /// Event number `number`.
    pub fn get(&self, number: u64) -> Option<&Event> {
        self.events.get(number.checked_sub(self.gone)? as usize)
    }

    /// The events from `first` to before `end`.
    pub fn range(&self, first: u64, end: u64) -> impl Iterator<Item = (u64, &Event)> {
        (first.max(self.gone)..end.min(self.end())).filter_map(|n| Some((n, self.get(n)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(times: std::ops::Range<u64>) -> Vec<Event> {
        let event = |time_ns| Event {
            time_ns,
            ..Event::default()
        };
        times.map(event).collect()
    }

    #[test]
    fn what_overlaps_is_taken_once() {
        let mut all = Events::default();
        all.push(&events(0..10));
        all.push(&events(5..15));
        all.push(&events(5..15));
        all.push(&[]);
        assert_eq!(all.end(), 15);
        all.push(&events(100..110));
        assert_eq!(all.end(), 25);
        all.push(&events(1000..10_000));
        assert_eq!((all.end(), all.begin()), (9025, 9025 - KEPT as u64));
        assert_eq!(all.get(all.end() - 1).unwrap().time_ns, 9999);
        assert_eq!(all.get(0), None);
        assert_eq!(all.range(0, u64::MAX).count(), KEPT);
    }
}
