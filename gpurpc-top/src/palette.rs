//! Colours and glyphs. Nothing is told by colour alone.

use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::border;

use crate::state::ports::Mark;

/// Which colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Colours {
    /// The terminal's own 16.
    #[default]
    Default,
    /// Those of Okabe and Ito, which people with any colour vision tell apart.
    ColourBlind,
    /// None: bold, dim and reversed only.
    Mono,
}

/// How things look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Palette {
    /// Colours.
    pub colours: Colours,
    /// Glyphs of ASCII only.
    pub ascii: bool,
}

/// What a piece of text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Nothing in particular.
    Text,
    /// Less important.
    Dim,
    /// The program's name, the title of a panel.
    Title,
    /// A number that matters.
    Value,
    /// A bar.
    Bar,
    /// All is well.
    Good,
    /// Worth a look.
    Warning,
    /// Something is wrong.
    Bad,
    /// The row that keys act on.
    Selected,
    /// The line with the headings of columns.
    Heading,
    /// A heading by which the rows are sorted; the tab that is open.
    Current,
    /// A key, where keys are listed.
    Key,
}

impl Palette {
    /// The next colours, for the key that changes them.
    #[must_use]
    pub fn next(self) -> Self {
        let colours = match self.colours {
            Colours::Default => Colours::ColourBlind,
            Colours::ColourBlind => Colours::Mono,
            Colours::Mono => Colours::Default,
        };
        Self { colours, ..self }
    }

    /// The style of `role`.
    pub fn style(self, role: Role) -> Style {
        let colour = |default: Color, safe: Color| match self.colours {
            Colours::Default => Style::new().fg(default),
            Colours::ColourBlind => Style::new().fg(safe),
            Colours::Mono => Style::new(),
        };
        let bold = Modifier::BOLD;
        match role {
            Role::Text => Style::new(),
            Role::Dim => match self.colours {
                Colours::Mono => Style::new().add_modifier(Modifier::DIM),
                _ => Style::new().fg(Color::DarkGray),
            },
            Role::Title => colour(Color::Cyan, SKY).add_modifier(bold),
            Role::Value => Style::new().add_modifier(bold),
            Role::Bar => colour(Color::Cyan, SKY),
            Role::Good => colour(Color::Green, GREEN),
            Role::Warning => colour(Color::Yellow, ORANGE).add_modifier(bold),
            Role::Bad => colour(Color::Red, VERMILION).add_modifier(bold),
            Role::Selected => Style::new().add_modifier(Modifier::REVERSED),
            Role::Heading => Style::new().add_modifier(Modifier::UNDERLINED),
            Role::Current => colour(Color::Cyan, SKY)
                .add_modifier(bold)
                .add_modifier(Modifier::REVERSED),
            Role::Key => colour(Color::Yellow, ORANGE),
        }
    }

    /// The style of a port's cell.
    pub fn mark_style(self, mark: Mark) -> Style {
        match mark {
            Mark::Idle => self.style(Role::Dim),
            Mark::Waiting => match self.colours {
                Colours::Default => Style::new().fg(Color::Yellow),
                Colours::ColourBlind => Style::new().fg(YELLOW),
                Colours::Mono => Style::new(),
            },
            Mark::InHandler => self.style(Role::Good).add_modifier(Modifier::BOLD),
            Mark::MidExchange => match self.colours {
                Colours::Default => Style::new().fg(Color::Blue),
                Colours::ColourBlind => Style::new().fg(BLUE),
                Colours::Mono => Style::new().add_modifier(Modifier::BOLD),
            },
            Mark::Stuck => self.style(Role::Bad).add_modifier(Modifier::REVERSED),
        }
    }

    /// The glyph of a port's cell.
    pub fn mark(self, mark: Mark) -> &'static str {
        match (mark, self.ascii) {
            (Mark::Idle, false) => "·",
            (Mark::Idle, true) => ".",
            (Mark::Waiting, false) => "○",
            (Mark::Waiting, true) => "w",
            (Mark::InHandler, false) => "●",
            (Mark::InHandler, true) => "h",
            (Mark::MidExchange, false) => "◐",
            (Mark::MidExchange, true) => "m",
            (Mark::Stuck, false) => "‼",
            (Mark::Stuck, true) => "!",
        }
    }

    /// Lines around panels.
    pub fn border(self) -> border::Set<'static> {
        if self.ascii { ASCII } else { border::ROUNDED }
    }

    /// A rule.
    pub fn rule(self) -> &'static str {
        if self.ascii { "-" } else { "─" }
    }

    /// Between two things in a line.
    pub fn dot(self) -> &'static str {
        if self.ascii { "|" } else { "·" }
    }

    /// The head of the column by which is sorted.
    pub fn arrow(self, descending: bool) -> &'static str {
        match (descending, self.ascii) {
            (true, false) => "▼",
            (false, false) => "▲",
            (true, true) => "v",
            (false, true) => "^",
        }
    }

    /// What stands before a warning.
    pub fn bang(self) -> &'static str {
        if self.ascii { "!" } else { "▲" }
    }

    /// What stands where something was cut off.
    pub fn ellipsis(self) -> &'static str {
        if self.ascii { "~" } else { "…" }
    }

    /// `text` in the glyphs that there are: units have a letter that ASCII has not.
    pub fn text(self, text: String) -> String {
        if self.ascii && !text.is_ascii() {
            text.chars()
                .map(|c| match c {
                    'µ' => 'u',
                    '×' => 'x',
                    '≥' => '>',
                    '–' | '—' => '-',
                    '·' => '|',
                    '…' => '~',
                    _ if c.is_ascii() => c,
                    _ => '?',
                })
                .collect()
        } else {
            text
        }
    }

    /// A bar of `eighths` eighths of a cell, lying.
    pub fn bar(self, eighths: usize) -> String {
        if self.ascii {
            return "#".repeat(eighths.div_ceil(8));
        }
        let parts = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
        "█".repeat(eighths / 8) + parts[eighths % 8]
    }

    /// A cell of a chart, `level` from 0 to 8 high.
    pub fn column(self, level: usize) -> &'static str {
        let glyphs = if self.ascii {
            [" ", ".", ".", ":", "-", "=", "+", "*", "#"]
        } else {
            [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"]
        };
        glyphs[level.min(8)]
    }
}

const ORANGE: Color = Color::Rgb(230, 159, 0);
const SKY: Color = Color::Rgb(86, 180, 233);
const GREEN: Color = Color::Rgb(0, 158, 115);
const YELLOW: Color = Color::Rgb(240, 228, 66);
const BLUE: Color = Color::Rgb(0, 114, 178);
const VERMILION: Color = Color::Rgb(213, 94, 0);

const ASCII: border::Set<'static> = border::Set {
    top_left: "+",
    top_right: "+",
    bottom_left: "+",
    bottom_right: "+",
    vertical_left: "|",
    vertical_right: "|",
    horizontal_top: "-",
    horizontal_bottom: "-",
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::ports::MARKS;

    #[test]
    fn states_differ_without_colour() {
        for ascii in [false, true] {
            let palette = Palette {
                ascii,
                ..Palette::default()
            };
            for a in MARKS {
                assert!(!ascii || palette.mark(a).is_ascii());
                for b in MARKS {
                    assert_eq!(palette.mark(a) == palette.mark(b), a == b);
                }
            }
        }
    }

    #[test]
    fn mono_has_no_colour() {
        let palette = Palette {
            colours: Colours::Mono,
            ascii: false,
        };
        for mark in MARKS {
            assert_eq!(palette.mark_style(mark).fg, None);
        }
        assert_eq!(palette.style(Role::Dim).fg, None);
    }
}
