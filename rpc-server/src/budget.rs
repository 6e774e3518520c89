//! How many bytes of messages are held at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A number of bytes that many reservations share.
#[derive(Debug)]
pub(crate) struct Budget {
    used: AtomicU64,
    limit: u64,
}

impl Budget {
    pub(crate) fn new(limit: u64) -> Arc<Self> {
        Arc::new(Self {
            used: AtomicU64::new(0),
            limit,
        })
    }

    /// An empty reservation.
    pub(crate) fn reserve(self: &Arc<Self>) -> Reservation {
        Reservation {
            budget: Arc::clone(self),
            bytes: 0,
        }
    }
}

/// Bytes taken from what all messages in flight share, until this is dropped.
#[derive(Debug)]
pub struct Reservation {
    budget: Arc<Budget>,
    bytes: u64,
}

impl Reservation {
    /// Takes `bytes` more if there are as many left; whether there were.
    #[must_use]
    pub fn grow(&mut self, bytes: u64) -> bool {
        // Relaxed: a count, nothing is published by it.
        let taken = self.budget.used.fetch_update(Relaxed, Relaxed, |used| {
            used.checked_add(bytes)
                .filter(|&sum| sum <= self.budget.limit)
        });
        if taken.is_ok() {
            self.bytes += bytes;
        }
        taken.is_ok()
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_inclusive_and_comes_back() {
        let budget = Budget::new(10);
        let mut first = budget.reserve();
        assert!(first.grow(4) && first.grow(6));
        let mut second = budget.reserve();
        assert!(!second.grow(1) && !second.grow(u64::MAX));
        drop(first);
        assert!(second.grow(10));
    }
}
