//! A list of loaders to choose from.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::widgets::Widget;

use super::text::{left, panel, put, span};
use crate::palette::{Palette, Role};

/// A list with one line selected.
#[derive(Clone, Copy, Debug)]
pub struct Picker<'p> {
    /// What there is to choose from.
    pub choices: &'p [String],
    /// Which one is selected.
    pub selected: usize,
    /// How it looks.
    pub palette: Palette,
}

impl Widget for Picker<'_> {
    fn render(self, area: Rect, buf: &mut Buffer) {
        let area = area.intersection(buf.area);
        let inner = panel(buf, area, "which loader?", true, self.palette);
        let room = usize::from(inner.height).saturating_sub(1);
        let first = (self.selected + 1).saturating_sub(room);
        for (n, choice) in self.choices[first.min(self.choices.len())..]
            .iter()
            .take(room)
            .enumerate()
        {
            let style = if first + n == self.selected {
                self.palette.style(Role::Selected)
            } else {
                self.palette.style(Role::Text)
            };
            let text = left(&format!(" {choice}"), inner.width.into(), self.palette);
            put(buf, inner, n, span(text, style));
        }
        let keys = " arrows select, Enter watches it, q leaves";
        put(buf, inner, room, span(keys, self.palette.style(Role::Dim)));
    }
}
