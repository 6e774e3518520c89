//! What has to be said, and the keys.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::text::{left, put, span};
use crate::palette::{Palette, Role};
use crate::source::Health;
use crate::state::{State, Tab, Watching};
use crate::units::printable;

/// What has to be said at once, if anything.
pub(super) fn message(state: &State) -> Option<(Role, String)> {
    if state.asking() {
        return Some((
            Role::Warning,
            "End the program? q or y: yes, any other key: no".to_owned(),
        ));
    }
    if let Some(ended) = state.ended() {
        let role = if ended.good { Role::Good } else { Role::Bad };
        let sentence = &ended.sentence;
        return Some((role, format!("{sentence}; q leaves")));
    }
    if state.interrupts() > 0 {
        let text = "The program was told to end; Ctrl-C kills it";
        return Some((Role::Warning, text.to_owned()));
    }
    let silent = state.silent().map(|time| time.as_secs());
    match (state.health(), silent) {
        (Health::Gone, _) if state.is_over() => Some((
            Role::Bad,
            "The loader is gone, with no word of how its program ended; q leaves".to_owned(),
        )),
        (Health::Stopped, _) => {
            let text =
                "The loader is not responding: a signal has stopped it, SIGCONT lets it go on";
            Some((Role::Warning, text.to_owned()))
        }
        (Health::Blind(why), _) => {
            Some((Role::Warning, format!("No statistics: {}", printable(why))))
        }
        (_, Some(seconds)) => Some((
            Role::Warning,
            format!("The loader is not responding: nothing new for {seconds} s"),
        )),
        _ => None,
    }
}

pub(super) fn render(state: &State, palette: Palette, area: Rect, buf: &mut Buffer) {
    let width = usize::from(area.width);
    if let Some((role, text)) = message(state) {
        let text = left(&format!(" {text}"), width, palette);
        let style = palette
            .style(role)
            .add_modifier(ratatui::style::Modifier::REVERSED);
        put(buf, area, 0, span(text, style));
    }
}

pub(super) fn keys(state: &State, palette: Palette, area: Rect, buf: &mut Buffer) {
    let quit = match state.watching() {
        Watching::Attached => "leave",
        _ if state.is_over() => "leave",
        Watching::Child | Watching::Demo => "quit",
    };
    let mut keys = vec![("?", "help"), ("q", quit), ("1-5", "tabs")];
    let pause = if state.paused().is_some() {
        "go on"
    } else {
        "pause"
    };
    keys.push(("p", pause));
    keys.extend_from_slice(match state.tab() {
        _ if state.help().is_some() => &[("Esc", "close")],
        Tab::Opcodes => &[
            ("s", "sort"),
            ("r", "reverse"),
            ("Enter", "latency"),
            ("a", "all"),
        ],
        Tab::Ports => &[("arrows", "select"), ("Enter", "latency")],
        Tab::Latency => &[("arrows", "opcode"), ("Enter", "table")],
        Tab::Events => &[("arrows", "scroll"), ("f", "follow"), ("Enter", "port")],
        Tab::Output => &[("arrows", "scroll"), ("f", "follow")],
    });
    let mut spans = Vec::new();
    for (key, what) in keys {
        spans.push(span(format!(" {key}"), palette.style(Role::Key)));
        spans.push(span(format!(" {what} "), palette.style(Role::Dim)));
    }
    put(buf, area, 0, Line::from(spans));
}
