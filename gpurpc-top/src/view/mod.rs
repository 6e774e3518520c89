//! Widgets: they draw a [`State`] and keep nothing.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::widgets::Widget;

use crate::palette::Palette;
use crate::state::{State, Tab};

mod banner;
mod events;
mod header;
pub mod help;
mod latency;
pub mod layout;
mod line;
mod opcodes;
mod output;
pub mod picker;
mod ports;
mod text;
mod warnings;

use layout::Mode;

/// The whole screen.
#[derive(Clone, Copy)]
pub struct Dashboard<'s> {
    /// What is drawn.
    pub state: &'s State,
    /// How it looks.
    pub palette: Palette,
}

impl Widget for Dashboard<'_> {
    fn render(self, area: Rect, buf: &mut Buffer) {
        let Self { state, palette } = self;
        let area = area.intersection(buf.area);
        if area.is_empty() {
            return;
        }
        let mode = layout::mode(area.width, area.height);
        if mode == Mode::Line {
            if state.help().is_some() {
                help::render(state, palette, false, area, buf);
            } else {
                line::render(state, palette, area, buf);
            }
            return;
        }
        let framed = mode == Mode::Full;
        let areas = layout::areas(area);
        header::render(state, palette, framed, areas.header, buf);
        header::tabs(state, palette, areas.tabs, buf);
        banner::render(state, palette, areas.banner, buf);
        let body = areas.body;
        match state.tab() {
            _ if state.help().is_some() => help::render(state, palette, framed, body, buf),
            Tab::Opcodes => opcodes::render(state, palette, framed, body, buf),
            Tab::Ports => ports::render(state, palette, framed, body, buf),
            Tab::Latency => latency::render(state, palette, framed, body, buf),
            Tab::Events => events::render(state, palette, framed, body, buf),
            Tab::Output => output::render(state, palette, framed, body, buf),
        }
        banner::keys(state, palette, areas.footer, buf);
    }
}
