//! How a service works.

use std::fmt;
use std::sync::Arc;
use std::thread::available_parallelism;

use crate::poller::groups;

/// What a poller does when no port has a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Poll {
    /// Looks again at once: the least latency, a core for each poller.
    Spin,
    /// Spins after traffic; idle, one poller sleeps between looks and the others are parked.
    #[default]
    Adaptive,
    /// Sleeps between looks: the least use of the processor, the most latency.
    Sleep,
}

/// Where a service reports what its handlers cannot: whole sentences without a newline.
#[derive(Clone)]
pub struct Report(Arc<dyn Fn(&str) + Send + Sync>);

impl Report {
    /// Reports to `f`, which may wait: one report after the other, on a thread that also writes the text
    /// for standard error.
    pub fn new(f: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(f))
    }

    pub(crate) fn say(&self, sentence: &str) {
        (self.0)(sentence);
    }
}

/// To standard error, as `gpurpc: SENTENCE`.
impl Default for Report {
    fn default() -> Self {
        use std::io::Write as _;
        Self::new(|sentence| {
            // Nobody can be told that standard error is gone.
            let _ = writeln!(std::io::stderr(), "gpurpc: {sentence}");
        })
    }
}

impl fmt::Debug for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Report")
    }
}

/// How a service works; [`default`](Self::default) suits most.
#[derive(Clone, Debug)]
pub struct Options {
    /// Poller threads: 1 to 64, and no more than there are groups of 4 ports.
    pub pollers: usize,
    /// What they do when there is nothing to do.
    pub poll: Poll,
    /// The longest message of a lane in bytes, inclusive.
    pub max_message: u64,
    /// The most bytes of messages held at once.
    pub max_in_flight: u64,
    /// Whether calls are counted; otherwise [`Service::counters`](crate::Service::counters) gives
    /// zeros.
    pub counters: bool,
    /// Messages of at least this many bytes travel by reference: the device tells where they lie,
    /// and the host copies them. 0: none does. Clients have to know of it, and of a number that
    /// is no smaller.
    pub bulk: u64,
    /// Where unknown opcodes and failing handlers are reported.
    pub report: Report,
}

/// Most poller threads.
const MAX_POLLERS: usize = 64;

impl Options {
    /// How many threads poll `ports` ports.
    pub fn pollers_for(&self, ports: u32) -> usize {
        self.pollers
            .clamp(1, MAX_POLLERS)
            .min(groups(ports) as usize)
    }
}

impl Default for Options {
    /// Half of the cores, at most 8. Adaptive; 64 MiB a message, 1 GiB in all; counted; nothing by reference; standard error.
    fn default() -> Self {
        let cores = available_parallelism().map_or(1, usize::from);
        Self {
            pollers: (cores / 2).clamp(1, 8),
            poll: Poll::Adaptive,
            max_message: 64 << 20,
            max_in_flight: 1 << 30,
            counters: true,
            bulk: 0,
            report: Report::default(),
        }
    }
}
