//! A warp made of threads, to test what lanes do together where there is no GPU.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::vec::Vec;

use super::{Warp, host_pause};

/// One lane of a warp whose lanes are threads.
///
/// A thread cannot know who runs beside it, so the test says which lanes are converged, by
/// [`converge`](Self::converge). Clones are the same lane.
#[derive(Clone, Debug)]
pub struct TeamWarp {
    team: Arc<Team>,
    lane: u32,
    mask: Arc<AtomicU64>,
    hint: u32,
}

#[derive(Debug, Default)]
struct Team {
    meetings: Mutex<HashMap<u64, Meeting>>,
    changed: Condvar,
}

/// The lanes of one mask exchange their values.
#[derive(Debug, Default)]
struct Meeting {
    values: HashMap<u32, u64>,
    /// Lanes that still have to read `result`; nobody starts the next round before.
    readers: u32,
    result: Arc<Vec<(u32, u64)>>,
}

impl TeamWarp {
    /// The `lanes` lanes of a new warp, all converged.
    ///
    /// # Panics
    /// Unless there are 1 to 64 lanes.
    pub fn team(lanes: u32, hint: u32) -> Vec<Self> {
        assert!((1..=64).contains(&lanes), "a warp has 1 to 64 lanes");
        let team = Arc::new(Team::default());
        let mask = !0 >> (64 - lanes);
        (0..lanes)
            .map(|lane| Self {
                team: Arc::clone(&team),
                lane,
                mask: Arc::new(AtomicU64::new(mask)),
                hint,
            })
            .collect()
    }

    /// From now on this lane runs with those of `mask`.
    ///
    /// # Panics
    /// If the lane is not in `mask`.
    pub fn converge(&self, mask: u64) {
        assert!(
            mask >> self.lane & 1 == 1,
            "lane {} is not in {mask:#x}",
            self.lane
        );
        self.mask.store(mask, Ordering::Relaxed);
    }

    /// Every lane's value, by lane, to every lane of `mask`.
    fn exchange(&self, mask: u64, value: u64) -> Arc<Vec<(u32, u64)>> {
        let team = &*self.team;
        let mut meetings = team
            .meetings
            .lock()
            .expect("no lane panics while it holds the lock");
        while meetings
            .get(&mask)
            .is_some_and(|meeting| meeting.readers > 0)
        {
            meetings = team.changed.wait(meetings).expect("as above");
        }
        let meeting = meetings.entry(mask).or_default();
        meeting.values.insert(self.lane, value);
        if meeting.values.len() as u32 == mask.count_ones() {
            let mut result: Vec<_> = meeting.values.drain().collect();
            result.sort_unstable();
            meeting.result = Arc::new(result);
            meeting.readers = mask.count_ones();
            team.changed.notify_all();
        } else {
            while meetings
                .get(&mask)
                .is_none_or(|meeting| meeting.readers == 0)
            {
                meetings = team.changed.wait(meetings).expect("as above");
            }
        }
        let meeting = meetings.entry(mask).or_default();
        let result = Arc::clone(&meeting.result);
        meeting.readers -= 1;
        if meeting.readers == 0 {
            team.changed.notify_all();
        }
        result
    }
}

impl Warp for TeamWarp {
    fn active_mask(&self) -> u64 {
        self.mask.load(Ordering::Relaxed)
    }

    fn lane(&self) -> u32 {
        self.lane
    }

    fn broadcast(&self, mask: u64, value: u64) -> u64 {
        self.exchange(mask, value)[0].1
    }

    fn ballot(&self, mask: u64, value: bool) -> u64 {
        let values = self.exchange(mask, value.into());
        values
            .iter()
            .fold(0, |lanes, (lane, value)| lanes | value << lane)
    }

    fn sync(&self, mask: u64) {
        self.exchange(mask, 0);
    }

    fn pause(&self, polls: u32) {
        host_pause(polls);
    }

    fn port_hint(&self) -> u32 {
        self.hint
    }
}
