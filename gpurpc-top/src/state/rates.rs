//! How much there is in a second.

use std::collections::VecDeque;

use rpc_stats::Snapshot;

/// Rates are taken over about this time, so that they can be read.
const WINDOW_NS: u64 = 1_000_000_000;
/// A point of the history is taken this often.
const POINT_NS: u64 = 1_000_000_000;
/// Points of the history that are kept.
const POINTS: usize = 240;

struct Sample {
    time_ns: u64,
    calls: Vec<u64>,
    bytes_in: u64,
    bytes_out: u64,
}

/// What all opcodes have together, in a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Throughput {
    /// Calls.
    pub calls: f64,
    /// Bytes that the host received.
    pub bytes_in: f64,
    /// Bytes that it sent.
    pub bytes_out: f64,
}

/// Rates over the last second.
#[derive(Default)]
pub struct Rates {
    samples: VecDeque<Sample>,
    /// Calls and time of the history's last point.
    point: Option<(u64, u64)>,
    history: VecDeque<u64>,
}

impl Rates {
    /// Takes a snapshot into account.
    pub fn push(&mut self, snapshot: &Snapshot) {
        let sample = Sample {
            time_ns: snapshot.time_ns,
            calls: snapshot.opcodes.iter().map(|o| o.calls).collect(),
            bytes_in: sum(snapshot.opcodes.iter().map(|o| o.bytes_in)),
            bytes_out: sum(snapshot.opcodes.iter().map(|o| o.bytes_out)),
        };
        let calls = sum(sample.calls.iter().copied());
        match self.point {
            None => self.point = Some((calls, sample.time_ns)),
            Some((before, then)) if sample.time_ns.saturating_sub(then) >= POINT_NS => {
                let rate = per_second(calls.saturating_sub(before), sample.time_ns - then);
                if self.history.len() == POINTS {
                    self.history.pop_front();
                }
                self.history.push_back(rate as u64);
                self.point = Some((calls, sample.time_ns));
            }
            Some(_) => {}
        }
        // The one that has just left the window stays: it is the window's beginning.
        let old = |sample: &Sample, now: u64| now.saturating_sub(sample.time_ns) >= WINDOW_NS;
        while self.samples.len() >= 2 && old(&self.samples[1], sample.time_ns) {
            self.samples.pop_front();
        }
        if self
            .samples
            .back()
            .is_none_or(|last| last.time_ns < sample.time_ns)
        {
            self.samples.push_back(sample);
        }
    }

    fn ends(&self) -> Option<(&Sample, &Sample, u64)> {
        let (first, last) = (self.samples.front()?, self.samples.back()?);
        let time = last.time_ns.checked_sub(first.time_ns)?;
        (time > 0).then_some((first, last, time))
    }

    /// Calls of the opcode at `index`; `None` before there are two samples.
    pub fn of(&self, index: usize) -> Option<f64> {
        let (first, last, time) = self.ends()?;
        let before = first.calls.get(index).copied().unwrap_or(0);
        Some(per_second(
            last.calls.get(index)?.saturating_sub(before),
            time,
        ))
    }

    /// All together; `None` before there are two samples.
    pub fn total(&self) -> Option<Throughput> {
        let (first, last, time) = self.ends()?;
        let calls = |sample: &Sample| sum(sample.calls.iter().copied());
        let rate = |before: u64, after: u64| per_second(after.saturating_sub(before), time);
        Some(Throughput {
            calls: rate(calls(first), calls(last)),
            bytes_in: rate(first.bytes_in, last.bytes_in),
            bytes_out: rate(first.bytes_out, last.bytes_out),
        })
    }

    /// Calls in each of the last seconds, the newest last.
    pub fn history(&self) -> impl ExactSizeIterator<Item = u64> + DoubleEndedIterator + '_ {
        self.history.iter().copied()
    }
}

pub(crate) fn sum(values: impl Iterator<Item = u64>) -> u64 {
    values.fold(0, u64::saturating_add)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a rate is shown with three digits"
)]
fn per_second(count: u64, ns: u64) -> f64 {
    count as f64 * 1e9 / ns as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use rpc_stats::OpcodeStats;

    fn at(ms: u64, calls: u64) -> Snapshot {
        Snapshot {
            time_ns: ms * 1_000_000,
            opcodes: vec![OpcodeStats {
                calls,
                bytes_in: calls * 8,
                ..OpcodeStats::default()
            }],
            ..Snapshot::default()
        }
    }

    #[test]
    fn two_samples_make_a_rate() {
        let mut rates = Rates::default();
        assert_eq!(rates.of(0), None);
        rates.push(&at(0, 100));
        assert_eq!(rates.of(0), None);
        assert_eq!(rates.total(), None);
        rates.push(&at(0, 100));
        assert_eq!(rates.of(0), None, "the same one again");
        rates.push(&at(500, 150));
        assert_eq!(rates.of(0), Some(100.0));
        assert_eq!(rates.of(7), None);
        assert_eq!(rates.total().map(|total| total.bytes_in), Some(800.0));
    }

    #[test]
    fn the_window_moves_on() {
        let mut rates = Rates::default();
        for tick in 0..100 {
            rates.push(&at(
                tick * 100,
                if tick < 50 { tick * 1000 } else { 49_000 },
            ));
        }
        assert_eq!(rates.of(0), Some(0.0));
        assert!(rates.samples.len() <= 12);
        let history: Vec<_> = rates.history().collect();
        assert_eq!(history.len(), 9);
        assert_eq!((history[0], history[8]), (10_000, 0));
    }
}
