//! What loaders lend to those who do not wait for their copies: memory that a copy engine reaches
//! beside a running kernel, allocated before the first launch.

/// Bytes of the buffer that a device keeps for copies that somebody waits for.
pub const BLOCKING: usize = 1 << 20;
/// Bytes of each buffer that is lent. A copy takes some 40 us by PCIe 5, four times what it takes to
/// start one and to see its end.
pub const SIZE: usize = 2 << 20;
/// How many are lent: two callers can have one copied while they look at another. Page-locking takes
/// about 0.2 ms for each MiB, so that these cost a start 1.6 ms.
pub const BUFFERS: usize = 4;

/// The buffers of a device that are not lent at the moment.
///
/// ```
/// use loader_core::staging::Lent;
///
/// let mut lent = Lent::default();
/// lent.add("a buffer");
/// let buffer = lent.lend(|_| true).unwrap();
/// assert!(lent.lend(|_| true).is_none());
/// // Its copy still runs.
/// lent.give_back(buffer, false);
/// assert!(lent.lend(|_| false).is_none());
/// assert!(lent.lend(|_| true).is_some());
/// ```
#[derive(Debug)]
pub struct Lent<B> {
    free: Vec<B>,
    /// Given back while a copy ran.
    parked: Vec<B>,
}

impl<B> Default for Lent<B> {
    fn default() -> Self {
        Self {
            free: Vec::new(),
            parked: Vec::new(),
        }
    }
}

impl<B> Lent<B> {
    /// One more to lend.
    pub fn add(&mut self, buffer: B) {
        self.free.push(buffer);
    }

    /// A buffer that is free; `is_done` is asked of those that came back while a copy ran, if there
    /// is no other. One of which it cannot be told stays: its copy may still run.
    pub fn lend(&mut self, is_done: impl FnMut(&mut B) -> bool) -> Option<B> {
        if self.free.is_empty() {
            self.free.extend(self.parked.extract_if(.., is_done));
        }
        self.free.pop()
    }

    /// Takes a buffer back, `idle` if no copy uses it.
    pub fn give_back(&mut self, buffer: B, idle: bool) {
        if idle {
            self.free.push(buffer);
        } else {
            self.parked.push(buffer);
        }
    }

    /// All that are here, to be freed.
    pub fn into_all(self) -> impl Iterator<Item = B> {
        self.free.into_iter().chain(self.parked)
    }
}
