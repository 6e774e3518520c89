//! The clocks that programs read.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// Ticks a second of the realtime counter, as the hardware has it.
pub(crate) const FREQUENCY: u64 = 100_000_000;

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// The realtime counter.
pub(crate) fn ticks() -> u64 {
    (START.elapsed().as_nanos() / 10) as u64
}

/// The cycle counter: a gigahertz.
pub(crate) fn cycles() -> u64 {
    START.elapsed().as_nanos() as u64
}

/// How long 64 cycles of a fast GPU are, times `n`.
pub(crate) fn sleep(n: u32) -> Duration {
    Duration::from_nanos(u64::from(n) * 32)
}
