//! Where snapshots come from.

use rpc_stats::Snapshot;

/// How the loader is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Health {
    /// Its statistics have not been found yet.
    #[default]
    Starting,
    /// It runs, as far as can be seen.
    Alive,
    /// It has been stopped by a signal.
    Stopped,
    /// It is no more.
    Gone,
    /// It runs, but there are no statistics; why.
    Blind(String),
}

/// What was found at one look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// A snapshot that is newer than the one before.
    pub snapshot: Option<Snapshot>,
    /// How the loader is.
    pub health: Health,
}

/// Gives snapshots: a loader's file, or what a test has written down.
pub trait Source {
    /// What there is now. Never waits.
    fn look(&mut self) -> Look;
}

/// Looks that were prepared, one after the other; the last one's health stays.
#[derive(Clone, Debug, Default)]
pub struct Script {
    looks: std::collections::VecDeque<Look>,
    health: Health,
}

impl Script {
    /// A script of `looks`.
    pub fn new(looks: impl IntoIterator<Item = Look>) -> Self {
        Self {
            looks: looks.into_iter().collect(),
            health: Health::Starting,
        }
    }
}

impl Source for Script {
    fn look(&mut self) -> Look {
        let look = self.looks.pop_front().unwrap_or_else(|| Look {
            snapshot: None,
            health: self.health.clone(),
        });
        self.health = look.health.clone();
        look
    }
}
