//! How long things took.

/// Buckets of an octave.
const SUB_BUCKETS: u32 = 16;
/// The first octave starts at 2^6 = 64 ns.
const FIRST: u32 = 6;
/// The last one ends at 2^36 ns, 68.7 s.
const LAST: u32 = 36;
pub(crate) const BUCKETS: usize = ((LAST - FIRST) * SUB_BUCKETS) as usize;

/// Times in nanoseconds, in buckets of a sixteenth of an octave from 64 ns to 68.7 s; what lies
/// outside is counted apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// Empty until something is recorded.
    buckets: Vec<u64>,
    below: u64,
    above: u64,
    max: u64,
}

/// A bucket that is not empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// The shortest time in it, in ns.
    pub low_ns: u64,
    /// The first time beyond it, in ns.
    pub high_ns: u64,
    /// How many times lie in it.
    pub count: u64,
}

/// The shortest time of bucket `index`.
fn low(index: usize) -> u64 {
    let (octave, sub) = (
        index as u32 / SUB_BUCKETS,
        index as u64 % u64::from(SUB_BUCKETS),
    );
    (u64::from(SUB_BUCKETS) + sub) << (octave + FIRST - SUB_BUCKETS.ilog2())
}

impl Histogram {
    /// Counts a time.
    pub fn record(&mut self, ns: u64) {
        self.record_n(ns, 1);
    }

    /// Counts a time that stands for `n`.
    pub fn record_n(&mut self, ns: u64, n: u64) {
        self.max = self.max.max(ns);
        let count = if ns < 1 << FIRST {
            &mut self.below
        } else if ns >= 1 << LAST {
            &mut self.above
        } else {
            let octave = ns.ilog2();
            let sub = ns >> (octave - SUB_BUCKETS.ilog2()) & u64::from(SUB_BUCKETS - 1);
            let index = ((octave - FIRST) * SUB_BUCKETS) as usize + sub as usize;
            if self.buckets.is_empty() {
                self.buckets = vec![0; BUCKETS];
            }
            &mut self.buckets[index]
        };
        *count = count.saturating_add(n);
    }

    /// All that was counted.
    pub fn count(&self) -> u64 {
        // What comes from a file may hold anything.
        let all = self.buckets.iter().chain([&self.below, &self.above]);
        all.fold(0, |sum: u64, count| sum.saturating_add(*count))
    }

    /// Times below 64 ns.
    pub fn below(&self) -> u64 {
        self.below
    }

    /// Times of 68.7 s and more.
    pub fn above(&self) -> u64 {
        self.above
    }

    /// The longest time; 0 if nothing was counted.
    pub fn max_ns(&self) -> u64 {
        self.max
    }

    /// The time that `share` (0 to 1) of all lie at or below, as the upper bound of its bucket but
    /// no more than the longest; `None` if nothing was counted.
    pub fn percentile_ns(&self, share: f64) -> Option<u64> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        #[expect(
            clippy::cast_precision_loss,
            reason = "no percentile is as exact as that"
        )]
        let rank = ((count as f64 * share.clamp(0.0, 1.0)).ceil() as u64).max(1);
        let mut seen = self.below;
        if seen >= rank {
            return Some(self.max.min(1 << FIRST));
        }
        for bucket in self.buckets() {
            seen = seen.saturating_add(bucket.count);
            if seen >= rank {
                return Some(self.max.min(bucket.high_ns));
            }
        }
        Some(self.max)
    }

    /// The indices and counts of the buckets that are not empty, for the file.
    pub(crate) fn filled(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let numbered = self.buckets.iter().copied().enumerate();
        numbered.filter(|&(_, count)| count > 0)
    }

    /// A histogram as the file has it; `None` if there is no such bucket.
    pub(crate) fn from_parts(
        (below, above, max): (u64, u64, u64),
        filled: &[(usize, u64)],
    ) -> Option<Self> {
        let mut buckets = Vec::new();
        if !filled.is_empty() {
            buckets = vec![0; BUCKETS];
        }
        for &(index, count) in filled {
            *buckets.get_mut(index)? = count;
        }
        Some(Self {
            buckets,
            below,
            above,
            max,
        })
    }

    /// The buckets that are not empty, shortest times first.
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> + '_ {
        let numbered = self.buckets.iter().enumerate();
        numbered
            .filter(|&(_, &count)| count > 0)
            .map(|(index, &count)| Bucket {
                low_ns: low(index),
                high_ns: low(index + 1),
                count,
            })
    }
}
