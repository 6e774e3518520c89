//! The keys: one table dispatches them and is the help.

use crate::state::Tab;

/// A key, apart from what a terminal library calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// A character.
    Char(char),
    /// A letter with Ctrl.
    Ctrl(char),
    /// An arrow.
    Up,
    /// An arrow.
    Down,
    /// An arrow.
    Left,
    /// An arrow.
    Right,
    /// A page up.
    PageUp,
    /// A page down.
    PageDown,
    /// To the first.
    Home,
    /// To the last.
    End,
    /// Enter.
    Enter,
    /// Tab.
    Tab,
    /// Shift-Tab.
    BackTab,
    /// Escape.
    Esc,
}

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Leave; where a program is run, asked first.
    Quit,
    /// Interrupt at once; a second time: kill.
    Interrupt,
    /// Stop, as any program does on Ctrl-Z.
    Suspend,
    /// Show or hide the help.
    Help,
    /// Show a tab.
    Show(Tab),
    /// The next tab.
    NextTab,
    /// The one before.
    PreviousTab,
    /// Move the selection.
    Up,
    /// Move the selection.
    Down,
    /// Move the selection.
    Left,
    /// Move the selection.
    Right,
    /// Move the selection by a page.
    PageUp,
    /// Move the selection by a page.
    PageDown,
    /// To the first.
    First,
    /// To the last.
    Last,
    /// More of what is selected.
    Open,
    /// Close what is open.
    Close,
    /// Sort by the next column.
    NextColumn,
    /// Sort by the one before.
    PreviousColumn,
    /// Turn the order round.
    Invert,
    /// Freeze the view.
    Pause,
    /// Follow the newest event or line.
    Follow,
    /// Show opcodes that were never called, too.
    All,
    /// Other colours.
    Palette,
    /// Draw everything again.
    Redraw,
}

/// A line of the help.
#[derive(Clone, Copy, Debug)]
pub struct Binding {
    /// The keys.
    pub keys: &'static [Key],
    /// Their names.
    pub shown: &'static str,
    /// What each of them asks for.
    pub commands: &'static [Command],
    /// What that is.
    pub help: &'static str,
}

/// All keys.
pub const BINDINGS: &[Binding] = &[
    Binding {
        keys: &[Key::Char('q')],
        shown: "q",
        commands: &[Command::Quit],
        help: "quit; a program that runs is asked to end first",
    },
    Binding {
        keys: &[Key::Ctrl('c')],
        shown: "Ctrl-C",
        commands: &[Command::Interrupt],
        help: "interrupt the program; a second time kills it",
    },
    Binding {
        keys: &[Key::Ctrl('z')],
        shown: "Ctrl-Z",
        commands: &[Command::Suspend],
        help: "stop; `fg` goes on",
    },
    Binding {
        keys: &[Key::Char('?')],
        shown: "?",
        commands: &[Command::Help],
        help: "this help",
    },
    Binding {
        keys: &[
            Key::Char('1'),
            Key::Char('2'),
            Key::Char('3'),
            Key::Char('4'),
            Key::Char('5'),
        ],
        shown: "1-5",
        commands: &[
            Command::Show(Tab::Opcodes),
            Command::Show(Tab::Ports),
            Command::Show(Tab::Latency),
            Command::Show(Tab::Events),
            Command::Show(Tab::Output),
        ],
        help: "opcodes, ports, latency, events, output",
    },
    Binding {
        keys: &[Key::Tab, Key::BackTab],
        shown: "Tab, Shift-Tab",
        commands: &[Command::NextTab, Command::PreviousTab],
        help: "the next, the previous of them",
    },
    Binding {
        keys: &[
            Key::Up,
            Key::Char('k'),
            Key::Down,
            Key::Char('j'),
            Key::Left,
            Key::Char('h'),
            Key::Right,
            Key::Char('l'),
        ],
        shown: "arrows, hjkl",
        commands: &[
            Command::Up,
            Command::Up,
            Command::Down,
            Command::Down,
            Command::Left,
            Command::Left,
            Command::Right,
            Command::Right,
        ],
        help: "select a row or a port, scroll",
    },
    Binding {
        keys: &[Key::PageUp, Key::PageDown],
        shown: "PgUp, PgDn",
        commands: &[Command::PageUp, Command::PageDown],
        help: "the same by pages",
    },
    Binding {
        keys: &[Key::Home, Key::Char('g'), Key::End, Key::Char('G')],
        shown: "Home g, End G",
        commands: &[Command::First, Command::First, Command::Last, Command::Last],
        help: "the first, the last",
    },
    Binding {
        keys: &[Key::Enter],
        shown: "Enter",
        commands: &[Command::Open],
        help: "the latency of the opcode, the port of the event",
    },
    Binding {
        keys: &[Key::Esc],
        shown: "Esc",
        commands: &[Command::Close],
        help: "close the help, take back `q`",
    },
    Binding {
        keys: &[Key::Char('s'), Key::Char('S')],
        shown: "s, S",
        commands: &[Command::NextColumn, Command::PreviousColumn],
        help: "sort by the next, the previous column",
    },
    Binding {
        keys: &[Key::Char('r')],
        shown: "r",
        commands: &[Command::Invert],
        help: "reverse the order",
    },
    Binding {
        keys: &[Key::Char('p'), Key::Char(' ')],
        shown: "p, space",
        commands: &[Command::Pause, Command::Pause],
        help: "pause: the view is frozen, counting goes on",
    },
    Binding {
        keys: &[Key::Char('f')],
        shown: "f",
        commands: &[Command::Follow],
        help: "follow the newest event or line",
    },
    Binding {
        keys: &[Key::Char('a')],
        shown: "a",
        commands: &[Command::All],
        help: "all opcodes, or those called only",
    },
    Binding {
        keys: &[Key::Char('c')],
        shown: "c",
        commands: &[Command::Palette],
        help: "colours: default, colour-blind safe, none",
    },
    Binding {
        keys: &[Key::Ctrl('l')],
        shown: "Ctrl-L",
        commands: &[Command::Redraw],
        help: "draw everything again",
    },
];

/// What `key` asks for.
pub fn command(key: Key) -> Option<Command> {
    BINDINGS.iter().find_map(|binding| {
        let at = binding.keys.iter().position(|&k| k == key)?;
        binding.commands.get(at).copied()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_has_one_command() {
        let mut seen: Vec<Key> = Vec::new();
        for binding in BINDINGS {
            assert_eq!(
                binding.keys.len(),
                binding.commands.len(),
                "{}",
                binding.shown
            );
            for (&key, &asked) in binding.keys.iter().zip(binding.commands) {
                assert!(!seen.contains(&key), "{key:?}");
                assert_eq!(command(key), Some(asked));
                seen.push(key);
            }
        }
        assert_eq!(command(Key::Char('Z')), None);
    }
}
