//! Frames as they are drawn: text and styles, in all sizes.

mod common;

use common::{frame, state, styles, text};
use gpurpc_top::palette::Palette;

#[test]
fn look_at_them() {
    for (w, h) in [(80, 24), (200, 60)] {
        for key in ['1', '2', '3', '4', '5', '?'] {
            let mut state = state(256);
            state.press(std::time::Duration::from_secs(1), gpurpc_top::keys::Key::Char(key));
            let buffer = frame(&mut state, Palette::default(), w, h);
            println!("{}", text(&buffer));
        }
    }
    let buffer = frame(&mut state(64), Palette::default(), 40, 10);
    println!("{}{}", text(&buffer), styles(&buffer));
}
