//! Which stream a handle of the device means.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use rpc_server::Conversation;

use super::stream::Stream;
use super::turn::{Turns, lock};

/// The most files that are open at once: a process may have 1024, and needs some itself.
pub(super) const MOST: usize = 1000;
/// The low bits of a handle are the stream tag of LLVM's libc.
const TAG_BITS: u32 = 2;
/// Above them the place of the file, and above that how often the place was used.
const GENERATION: u32 = 34;
const LAST_GENERATION: u32 = (1 << (u64::BITS - GENERATION)) - 1;

/// An open stream, which one call at a time has.
#[derive(Debug)]
pub(super) struct Slot {
    turns: Turns,
    /// Nobody waits for this lock: its holder has the turn. Empty once the stream is closed.
    stream: Mutex<Option<Stream>>,
    /// Its reads and writes may have to wait for somebody outside.
    pub(super) waits: bool,
    _place: Option<Place>,
}

impl Slot {
    /// A slot for `stream`.
    pub(super) fn new(stream: Option<Stream>, place: Option<Place>) -> Arc<Self> {
        let waits = stream.as_ref().is_some_and(Stream::may_wait);
        Arc::new(Self {
            turns: Turns::default(),
            stream: Mutex::new(stream),
            waits,
            _place: place,
        })
    }

    /// Waits until no other call has the stream.
    pub(super) async fn turn(self: Arc<Self>, conversation: &mut Conversation) -> Turn {
        if self.waits {
            conversation.outside(self.turns.wait()).await;
        } else {
            self.turns.wait().await;
        }
        Turn(self)
    }

    /// Writes out what waits, and puts the file where its reader stands, unless a call has the stream:
    /// whether that was done.
    pub(super) fn try_finish(&self) -> bool {
        let Ok(mut stream) = self.stream.try_lock() else {
            return false;
        };
        if let Some(stream) = &mut *stream {
            stream.flush();
            stream.end_read();
        }
        true
    }
}

/// A call's turn with a stream: it ends when this is dropped.
#[derive(Debug)]
pub(super) struct Turn(Arc<Slot>);

impl Turn {
    /// Works on the stream, which may have been closed.
    pub(super) fn with<R>(&self, f: impl FnOnce(&mut Option<Stream>) -> R) -> R {
        f(&mut lock(&self.0.stream))
    }

    /// Works on the stream where that may take time, and ends the turn.
    pub(super) async fn work<R: Send + 'static>(
        self,
        conversation: &mut Conversation,
        f: impl FnOnce(&mut Option<Stream>) -> R + Send + 'static,
    ) -> R {
        let waits = self.0.waits;
        let work = move || self.with(f);
        if waits {
            conversation.waiting(work).await
        } else {
            conversation.blocking(work).await
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.turns.pass();
    }
}

/// Streams by place and generation.
#[derive(Debug, Default)]
pub(super) struct Slots {
    entries: Mutex<Entries>,
    open: Arc<AtomicUsize>,
}

#[derive(Debug, Default)]
struct Entries {
    all: Vec<Entry>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Entry {
    generation: u32,
    slot: Option<Arc<Slot>>,
}

/// One of the files that may be open, until it is closed.
#[derive(Debug)]
pub(super) struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl Slots {
    /// A place for one file more, if there may be one.
    pub(super) fn place(&self) -> Option<Place> {
        // Relaxed: a count, nothing is published by it.
        let more = |open| (open < MOST).then_some(open + 1);
        self.open.fetch_update(Relaxed, Relaxed, more).ok()?;
        Some(Place(Arc::clone(&self.open)))
    }

    /// Keeps a file that was opened: its handle, a multiple of 4 and not 0.
    pub(super) fn insert(&self, stream: Stream, place: Place) -> u64 {
        let slot = Slot::new(Some(stream), Some(place));
        let mut entries = lock(&self.entries);
        let index = entries.free.pop().unwrap_or_else(|| {
            entries.all.push(Entry {
                generation: 0,
                slot: None,
            });
            entries.all.len() as u32 - 1
        });
        let entry = &mut entries.all[index as usize];
        entry.generation += 1;
        entry.slot = Some(slot);
        u64::from(entry.generation) << GENERATION | u64::from(index) << TAG_BITS
    }

    /// The stream of `handle`, if there is one.
    pub(super) fn get(&self, handle: u64) -> Option<Arc<Slot>> {
        let mut entries = lock(&self.entries);
        let (_, entry) = entries.find(handle)?;
        entry.slot.clone()
    }

    /// Forgets `handle`: its stream, if there was one.
    pub(super) fn remove(&self, handle: u64) -> Option<Arc<Slot>> {
        let mut entries = lock(&self.entries);
        let (index, entry) = entries.find(handle)?;
        let slot = entry.slot.take();
        // A place whose generations are used up is never used again.
        if slot.is_some() && entry.generation < LAST_GENERATION {
            entries.free.push(index);
        }
        slot
    }

    /// All that are open now.
    pub(super) fn all(&self) -> Vec<Arc<Slot>> {
        let entries = lock(&self.entries);
        entries.all.iter().filter_map(|e| e.slot.clone()).collect()
    }
}

impl Entries {
    fn find(&mut self, handle: u64) -> Option<(u32, &mut Entry)> {
        let index = (handle & ((1 << GENERATION) - 1)) >> TAG_BITS;
        let entry = self.all.get_mut(index as usize)?;
        let tag = handle & ((1 << TAG_BITS) - 1);
        let fits = tag == 0 && u64::from(entry.generation) == handle >> GENERATION;
        fits.then_some((index as u32, entry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    use crate::files::mode::Mode;

    fn insert(slots: &Slots) -> Option<u64> {
        let stream = Stream::new(File::open("/dev/null").unwrap(), Mode::READ);
        Some(slots.insert(stream, slots.place()?))
    }

    #[test]
    fn handles_mean_one_file_only() {
        let slots = Slots::default();
        let handles: Vec<_> = (0..5).map(|_| insert(&slots).unwrap()).collect();
        for (index, handle) in handles.iter().enumerate() {
            assert!(handle % 4 == 0 && *handle != 0);
            assert!(!handles[..index].contains(handle));
            assert!(slots.get(*handle).is_some_and(|slot| !slot.waits));
            for bit in 0..64 {
                let forged = handle ^ 1 << bit;
                assert!(slots.get(forged).is_none() || handles.contains(&forged));
            }
        }
        assert!(slots.remove(handles[2]).is_some() && slots.remove(handles[2]).is_none());
        let again = insert(&slots).unwrap();
        assert!(again != handles[2] && slots.get(handles[2]).is_none());
        for handle in [0, 1, 4, u64::MAX, !3, 1 << 63] {
            assert!(slots.get(handle).is_none() && slots.remove(handle).is_none());
        }
    }

    #[test]
    fn generations_are_used_once() {
        let slots = Slots::default();
        let first = insert(&slots).unwrap();
        lock(&slots.entries).all[0].generation = LAST_GENERATION;
        let last = u64::from(LAST_GENERATION) << GENERATION;
        assert!(slots.get(first).is_none() && slots.remove(last).is_some());
        let other = insert(&slots).unwrap();
        assert_eq!(other, 1 << GENERATION | 1 << TAG_BITS);
    }

    #[test]
    fn files_are_bounded() {
        let slots = Slots::default();
        let mut places: Vec<_> = (0..MOST).map(|_| slots.place().unwrap()).collect();
        assert!(slots.place().is_none());
        places.pop();
        assert!(slots.place().is_some());
    }
}
