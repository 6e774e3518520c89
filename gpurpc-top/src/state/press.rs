//! What keys do.

use super::{Effect, Frozen, State, TABS, Tab, Watching};
use crate::keys::{Command, Key, command};

impl State {
    pub(super) fn pressed(&mut self, key: Key) -> Effect {
        if self.asking {
            self.asking = false;
            return match key {
                Key::Char('q' | 'y' | 'Y') | Key::Enter | Key::Ctrl('c') => self.interrupt(),
                _ => Effect::None,
            };
        }
        command(key).map_or(Effect::None, |command| self.obey(command))
    }

    fn interrupt(&mut self) -> Effect {
        if self.watching == Watching::Attached || self.is_over() {
            return Effect::Leave;
        }
        self.interrupts = self.interrupts.saturating_add(1);
        if self.interrupts > 1 {
            Effect::Kill
        } else {
            Effect::Interrupt
        }
    }

    fn quit(&mut self) -> Effect {
        match self.watching {
            _ if self.is_over() => Effect::Leave,
            Watching::Attached => Effect::Leave,
            Watching::Demo if self.interrupts == 0 => {
                self.quit = true;
                self.interrupt()
            }
            // It is ending already.
            Watching::Child | Watching::Demo if self.interrupts > 0 => Effect::None,
            Watching::Child | Watching::Demo => {
                self.asking = true;
                Effect::None
            }
        }
    }

    fn obey(&mut self, command: Command) -> Effect {
        match command {
            Command::Quit if self.help.is_some() => self.help = None,
            Command::Quit => return self.quit(),
            Command::Interrupt => return self.interrupt(),
            Command::Suspend => return Effect::Suspend,
            Command::Redraw => return Effect::Redraw,
            Command::Palette => return Effect::Palette,
            Command::Help => self.help = if self.help.is_some() { None } else { Some(0) },
            Command::Close => self.help = None,
            Command::Show(tab) => self.show(tab),
            Command::NextTab => self.turn(1),
            Command::PreviousTab => self.turn(TABS.len() - 1),
            Command::NextColumn => self.resort(|sort| sort.column = sort.column.step(false)),
            Command::PreviousColumn => self.resort(|sort| sort.column = sort.column.step(true)),
            Command::Invert => self.resort(|sort| sort.inverted = !sort.inverted),
            Command::Pause => self.pause(),
            Command::Follow => {
                self.event = None;
                self.line = None;
            }
            Command::All => self.all = !self.all,
            Command::Open => self.open(),
            Command::Up
            | Command::Down
            | Command::Left
            | Command::Right
            | Command::PageUp
            | Command::PageDown
            | Command::First
            | Command::Last => self.go(command),
        }
        Effect::None
    }

    fn show(&mut self, tab: Tab) {
        self.tab = tab;
        self.help = None;
    }

    fn turn(&mut self, by: usize) {
        let at = TABS.iter().position(|&tab| tab == self.tab).unwrap_or(0);
        self.show(TABS[(at + by) % TABS.len()]);
    }

    fn resort(&mut self, change: impl FnOnce(&mut super::Sort)) {
        change(&mut self.sort);
        self.sort.apply(&mut self.shown.rows);
    }

    fn pause(&mut self) {
        if self.frozen.take().is_some() {
            self.refresh(None);
        } else {
            self.frozen = Some(Frozen {
                since: self.now,
                events: self.events.end(),
                lines: self.output.end(),
            });
        }
    }

    fn open(&mut self) {
        match self.tab {
            Tab::Opcodes => self.tab = Tab::Latency,
            Tab::Events => {
                let (events, end) = self.events();
                let number = self.event.or_else(|| end.checked_sub(1));
                if let Some(event) = number.and_then(|number| events.get(number)) {
                    self.port = event.port as usize;
                    self.tab = Tab::Ports;
                }
            }
            Tab::Ports => {
                let ports = &self.shown.snapshot.ports;
                let opcode = ports.get(self.port()).and_then(|port| port.opcode);
                let row = self.shown.rows.iter().find(|row| row.key == opcode);
                if let (Some(row), Some(_)) = (row, opcode) {
                    self.slot = Some(row.index);
                    self.tab = Tab::Latency;
                }
            }
            Tab::Latency => self.tab = Tab::Opcodes,
            Tab::Output => {}
        }
    }
}
