//! What is shown: pure, with the time given to it. Looks, output and keys go in; views read it.

use std::sync::Arc;
use std::time::Duration;

use rpc_stats::Snapshot;

use crate::keys::Key;
use crate::source::{Health, Look};

pub mod events;
pub mod lints;
mod moves;
pub mod output;
pub mod ports;
mod press;
pub mod rates;
mod see;
mod shown;
pub mod sort;

pub use shown::{Row, Shown};

use events::Events;
use output::{Output, Stream};
use rates::Rates;
use sort::Sort;

/// A page of the dashboard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Tab {
    /// The opcode table, with ports and warnings below it.
    #[default]
    Opcodes,
    /// The grid of all ports and one of them in detail.
    Ports,
    /// The histogram of one opcode.
    Latency,
    /// The last calls.
    Events,
    /// What the program prints.
    Output,
}

/// All tabs, in the order of their keys.
pub const TABS: [Tab; 5] = [
    Tab::Opcodes,
    Tab::Ports,
    Tab::Latency,
    Tab::Events,
    Tab::Output,
];

impl Tab {
    /// Its title.
    pub fn title(self) -> &'static str {
        match self {
            Self::Opcodes => "Opcodes",
            Self::Ports => "Ports",
            Self::Latency => "Latency",
            Self::Events => "Events",
            Self::Output => "Output",
        }
    }
}

/// Whose run is watched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Watching {
    /// A program that was started to be watched: its output comes here.
    #[default]
    Child,
    /// The demo: it ends when nobody watches it.
    Demo,
    /// A loader that somebody else started.
    Attached,
}

/// Limits of what is normal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// An exchange that is open in one state for longer is stuck.
    pub stuck_ns: u64,
    /// A handler whose p99 is longer is slow.
    pub slow_ns: u64,
    /// A poller that does not look for longer is starved.
    pub starved_ns: u64,
    /// A loader without a new snapshot for longer does not respond.
    pub silent: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            stuck_ns: 1_000_000_000,
            slow_ns: 10_000_000,
            starved_ns: 250_000_000,
            silent: Duration::from_millis(1500),
        }
    }
}

/// What the program around the state is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    None,
    /// Leave.
    Leave,
    /// Interrupt the program.
    Interrupt,
    /// Kill it.
    Kill,
    /// Give the terminal back and stop.
    Suspend,
    /// Draw every cell.
    Redraw,
    /// Take the next palette.
    Palette,
}

/// How the program has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// What is said of it.
    pub sentence: String,
    /// Whether it went well.
    pub good: bool,
}

/// What the view was when it was frozen.
#[derive(Clone, Copy, Debug)]
struct Frozen {
    since: Duration,
    events: u64,
    lines: u64,
}

/// All that there is to show.
#[derive(Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "they have nothing to do with each other"
)]
pub struct State {
    settings: Settings,
    watching: Watching,
    now: Duration,
    size: (u16, u16),
    // What is collected.
    latest: Option<Arc<Snapshot>>,
    latest_at: Duration,
    exhausted: u32,
    rates: Rates,
    events: Events,
    output: Output,
    health: Health,
    ended: Option<Ended>,
    // What is seen of it.
    shown: Shown,
    frozen: Option<Frozen>,
    tab: Tab,
    sort: Sort,
    all: bool,
    slot: Option<usize>,
    port: usize,
    /// The event that is selected; none: the newest.
    event: Option<u64>,
    /// The line behind the last one in view; none: the newest.
    line: Option<u64>,
    shift: usize,
    help: Option<usize>,
    asking: bool,
    interrupts: u8,
    quit: bool,
    dirty: bool,
    drawn_second: u64,
}

impl State {
    /// Nothing yet, of a run that is watched so.
    pub fn new(settings: Settings, watching: Watching) -> Self {
        Self {
            settings,
            watching,
            dirty: true,
            ..Self::default()
        }
    }

    /// The terminal has this size now.
    pub fn resize(&mut self, width: u16, height: u16) {
        self.dirty |= self.size != (width, height);
        self.size = (width, height);
    }

    /// Takes what a source has found.
    pub fn observe(&mut self, now: Duration, look: Look) {
        self.now = now;
        self.dirty |= self.health != look.health;
        self.health = look.health;
        let Some(snapshot) = look.snapshot else {
            self.dirty |= self.drawn_second != self.second();
            return;
        };
        let snapshot = Arc::new(snapshot);
        self.latest_at = now;
        self.rates.push(&snapshot);
        self.events.push(&snapshot.events);
        let open = snapshot
            .ports
            .iter()
            .all(|p| p.state != rpc_stats::PortState::Idle);
        self.exhausted = if open && !snapshot.ports.is_empty() {
            self.exhausted.saturating_add(1)
        } else {
            0
        };
        // A child has more to do after that, and its end is told by `end`.
        if self.watching == Watching::Attached
            && self.ended.is_none()
            && let Some(end) = snapshot.end
        {
            self.ended = Some(Ended {
                sentence: format!("the program ended with status {}", end.code),
                good: end.code == 0,
            });
        }
        let before = self.latest.replace(snapshot);
        if self.frozen.is_none() {
            self.refresh(before.as_deref());
        }
        self.dirty |= self.drawn_second != self.second();
    }

    /// Makes what is shown of what was collected.
    fn refresh(&mut self, before: Option<&Snapshot>) {
        let Some(snapshot) = self.latest.clone() else {
            return;
        };
        // All that is not shown changes with each snapshot.
        let same = before.is_some_and(|before| {
            before.opcodes == snapshot.opcodes
                && before.ports == snapshot.ports
                && before.end == snapshot.end
                && before.dropped_events == snapshot.dropped_events
                && before.events == snapshot.events
        });
        let shown = Shown::new(
            snapshot,
            &self.rates,
            self.exhausted,
            &self.settings,
            self.sort,
        );
        self.dirty |= !same || !shown.looks_like(&self.shown);
        self.shown = shown;
        if self.slot.is_none() {
            let first = self.rows().next().map(|row| row.index);
            self.slot = first;
        }
    }

    /// Time goes on, though nothing has come.
    pub fn tick(&mut self, now: Duration) {
        self.now = now;
        self.dirty |= self.drawn_second != self.second();
    }

    /// Takes what the program has printed.
    pub fn print(&mut self, stream: Stream, bytes: &[u8]) {
        self.output.push(stream, bytes);
        self.dirty |= self.tab == Tab::Output && self.frozen.is_none();
    }

    /// Counts output that there was no room for.
    pub fn lose_output(&mut self, bytes: u64) {
        self.output.lose(bytes);
        self.dirty |= bytes > 0;
    }

    /// The program has ended.
    pub fn end(&mut self, ended: Ended) {
        self.output.close();
        self.ended = Some(ended);
        self.asking = false;
        self.dirty = true;
    }

    /// Takes a key.
    pub fn press(&mut self, now: Duration, key: Key) -> Effect {
        self.now = now;
        self.dirty = true;
        self.pressed(key)
    }

    /// Whether it looks different from what was drawn last; from now on it does not.
    pub fn take_dirty(&mut self) -> bool {
        self.drawn_second = self.second();
        std::mem::take(&mut self.dirty)
    }

    /// Whether it looks different from what was drawn last.
    pub fn is_dirty(&self) -> bool {
        self.dirty
    }

    /// It has to be drawn again.
    pub fn touch(&mut self) {
        self.dirty = true;
    }

    /// What changes with the time alone: one number for all of it.
    fn second(&self) -> u64 {
        let paused = self.paused().map_or(0, |time| time.as_secs() + 1);
        let silent = self.silent().map_or(0, |time| time.as_secs() + 1);
        let run = self.elapsed_ns() / 1_000_000_000;
        run.wrapping_add(paused << 24).wrapping_add(silent << 44)
    }
}
