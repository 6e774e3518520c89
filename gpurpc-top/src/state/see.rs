//! What views read.

use std::time::Duration;

use super::events::Events;
use super::output::Output;
use super::sort::Sort;
use super::{Ended, Row, Settings, Shown, State, Tab, Watching};
use crate::source::Health;

impl State {
    /// What is shown of the run.
    pub fn shown(&self) -> &Shown {
        &self.shown
    }

    /// Whether there is a snapshot yet.
    pub fn has_data(&self) -> bool {
        self.latest.is_some()
    }

    /// The rows of the opcode table in their order.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        let all = self.all;
        self.shown
            .rows
            .iter()
            .filter(move |row| all || row.calls > 0)
    }

    /// The row that is selected.
    pub fn row(&self) -> Option<&Row> {
        self.rows().find(|row| Some(row.index) == self.slot)
    }

    /// How the rows are sorted.
    pub fn sort(&self) -> Sort {
        self.sort
    }

    /// The page that is open.
    pub fn tab(&self) -> Tab {
        self.tab
    }

    /// The port that is selected.
    pub fn port(&self) -> usize {
        self.port
            .min(self.shown.ports.marks.len().saturating_sub(1))
    }

    /// The last calls, and the number behind the last one that is shown.
    pub fn events(&self) -> (&Events, u64) {
        let end = self
            .frozen
            .map_or(self.events.end(), |frozen| frozen.events);
        (&self.events, end)
    }

    /// The event that is selected, if the newest is not followed.
    pub fn event(&self) -> Option<u64> {
        self.event
    }

    /// What the program has printed, and the number behind the last line that is shown.
    pub fn output(&self) -> (&Output, u64) {
        let newest = self.frozen.map_or(self.output.end(), |frozen| frozen.lines);
        (
            &self.output,
            self.line.map_or(newest, |line| line.min(newest)),
        )
    }

    /// Whether the newest line is followed.
    pub fn follows_output(&self) -> bool {
        self.line.is_none()
    }

    /// Columns that the output is moved to the left by.
    pub fn shift(&self) -> usize {
        self.shift
    }

    /// The first line of the help, if it is open.
    pub fn help(&self) -> Option<usize> {
        self.help
    }

    /// Whether it has been asked if the program is to end.
    pub fn asking(&self) -> bool {
        self.asking
    }

    /// How often the program has been interrupted.
    pub fn interrupts(&self) -> u8 {
        self.interrupts
    }

    /// Whether the program was ended because the user quit.
    pub fn has_quit(&self) -> bool {
        self.quit && self.interrupts == 1
    }

    /// Whose run it is.
    pub fn watching(&self) -> Watching {
        self.watching
    }

    /// Limits of what is normal.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// How the loader is.
    pub fn health(&self) -> &Health {
        &self.health
    }

    /// How the program has ended.
    pub fn ended(&self) -> Option<&Ended> {
        self.ended.as_ref()
    }

    /// Whether there is nothing more to come.
    pub fn is_over(&self) -> bool {
        // A child that publishes nothing more has something to do until it has ended.
        let attached = self.watching == Watching::Attached;
        self.ended.is_some() || attached && self.health == Health::Gone
    }

    /// For how long the view has been frozen.
    pub fn paused(&self) -> Option<Duration> {
        self.frozen
            .map(|frozen| self.now.saturating_sub(frozen.since))
    }

    /// For how long a loader that is there has given no snapshot, if that is too long.
    pub fn silent(&self) -> Option<Duration> {
        let silent = self.now.saturating_sub(self.latest_at);
        let expected = self.has_data() && !self.is_over();
        (expected && silent > self.settings.silent).then_some(silent)
    }

    /// Time of the run that is shown.
    pub fn elapsed_ns(&self) -> u64 {
        self.shown.snapshot.time_ns
    }
}
