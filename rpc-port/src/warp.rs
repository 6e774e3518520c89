//! Lanes that act together.

#[cfg(feature = "std")]
mod team;

#[cfg(feature = "std")]
pub use team::TeamWarp;

/// What a client needs of the warp (wavefront) it runs in.
///
/// A *mask* has a bit for each lane. It is taken once per call from
/// [`active_mask`](Self::active_mask) and passed on; every lane of it then calls the same
/// operations with it in the same order. The lowest lane of a mask is its *leader*.
///
/// *The same operation* is meant literally on GPUs whose lanes run apart: lanes exchange values at
/// one instruction. Lanes that came to a function from different callers may run in it together, so
/// whatever takes a mask must not return to its caller before the mask is done with, unless it is
/// inlined into the caller. All of [`Client`](crate::Client) is.
pub trait Warp: Clone {
    /// The lanes that execute this call together, at least the caller's own.
    ///
    /// Each lane's own value: lanes with other masks may run together with it later, and a compiler must
    /// not take it for the same in all of them (A12 in `docs/memory-model.md`).
    fn active_mask(&self) -> u64;

    /// The caller's lane, below 64.
    fn lane(&self) -> u32;

    /// The leader's `value`, to every lane of `mask`.
    fn broadcast(&self, mask: u64, value: u64) -> u64;

    /// The lanes of `mask` whose `value` is true, to every lane of it.
    fn ballot(&self, mask: u64, value: bool) -> u64;

    /// Whether `value` is true in any lane of `mask`, to every lane of it.
    #[inline(always)]
    fn any(&self, mask: u64, value: bool) -> bool {
        self.ballot(mask, value) != 0
    }

    /// Waits for every lane of `mask`; what each did before is seen by all after.
    fn sync(&self, mask: u64);

    /// Called in a wait for the `polls`-th time, from 1.
    fn pause(&self, polls: u32);

    /// Called before the first look for a reply: waits as long as a host takes at best to answer, where
    /// a look takes long.
    #[inline(always)]
    fn await_reply(&self) {}

    /// The time, coarsely: it changes about twice a millisecond, and matters in its lowest 14 bits.
    /// `None` where there is no clock.
    #[inline(always)]
    fn stamp(&self) -> Option<u32> {
        None
    }

    /// Called when no port was found for the `attempts`-th time, from 1.
    #[inline(always)]
    fn back_off(&self, attempts: u32) {
        self.pause(attempts);
    }

    /// The device address of `bytes` where the host can copy them from and to.
    #[inline(always)]
    fn global_address(&self, bytes: &[u8]) -> Option<u64> {
        let _ = bytes;
        None
    }

    /// Where this warp's search for a port starts: different for warps that run at once, low where
    /// few run.
    fn port_hint(&self) -> u32;

    /// How far apart the ports lie that no other warp begins with, from its hint on.
    #[inline(always)]
    fn port_stride(&self) -> u32 {
        1
    }
}

/// Whether `lane` is the leader of `mask`.
#[inline(always)]
pub(crate) fn is_leader(mask: u64, lane: u32) -> bool {
    mask.trailing_zeros() == lane
}

/// A host thread as a warp of one lane.
#[derive(Clone, Copy, Debug, Default)]
pub struct HostWarp {
    /// Where the search for a port starts.
    pub hint: u32,
}

/// Polls of a host thread before it lets others run: with more threads than cores, spinning on
/// takes ten times as long.
const HOST_SPINS: u32 = 200;
/// Polls of a host thread before it sleeps between them.
#[cfg(feature = "std")]
const HOST_YIELDS: u32 = 20_000;
/// Its shortest and its longest sleep, in microseconds: with a hundred threads that wait for long, short
/// ones take all processors, and after longer ones a stop is seen late.
#[cfg(feature = "std")]
const HOST_NAPS: (u32, u32) = (50, 250);

/// Waits as a host thread should: spins, then yields, then sleeps, the longer the longer it waits.
#[inline]
pub fn host_pause(polls: u32) {
    // A model is to let the other side go on.
    #[cfg(loom)]
    loom::thread::yield_now();
    #[cfg(feature = "std")]
    if polls > HOST_YIELDS {
        let nap = (HOST_NAPS.0 + (polls - HOST_YIELDS) / 8).min(HOST_NAPS.1);
        return std::thread::sleep(core::time::Duration::from_micros(nap.into()));
    } else if polls > HOST_SPINS {
        return std::thread::yield_now();
    }
    let _ = polls > HOST_SPINS;
    core::hint::spin_loop();
}

impl Warp for HostWarp {
    fn active_mask(&self) -> u64 {
        1
    }

    fn lane(&self) -> u32 {
        0
    }

    fn broadcast(&self, _: u64, value: u64) -> u64 {
        value
    }

    fn ballot(&self, _: u64, value: bool) -> u64 {
        value.into()
    }

    fn sync(&self, _: u64) {}

    fn pause(&self, polls: u32) {
        host_pause(polls);
    }

    fn global_address(&self, bytes: &[u8]) -> Option<u64> {
        Some(bytes.as_ptr() as u64)
    }

    fn port_hint(&self) -> u32 {
        self.hint
    }
}
