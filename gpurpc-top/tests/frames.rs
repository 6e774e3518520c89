//! Frames as they are drawn: text and styles, in all sizes.

#[path = "common/mod.rs"]
mod common;

use std::time::Duration;

use common::{ended, frame, look, snapshot, state, styles, text, watched};
use gpurpc_top::keys::{BINDINGS, Key};
use gpurpc_top::palette::{Colours, Palette};
use gpurpc_top::source::{Health, Look, Script, Source};
use gpurpc_top::state::output::Stream;
use gpurpc_top::state::{Effect, Ended, Settings, State, Watching};
use rpc_stats::Snapshot;

const SIZES: [(u16, u16); 3] = [(40, 10), (80, 24), (200, 60)];

/// Text and styles of a frame as one snapshot.
fn check(name: &str, state: &mut State, palette: Palette, (width, height): (u16, u16)) {
    let buffer = frame(state, palette, width, height);
    let both = format!("{}\n{}", text(&buffer), styles(&buffer));
    insta::assert_snapshot!(format!("{name}_{width}x{height}"), both);
}

fn second(n: u64) -> Duration {
    Duration::from_secs(n)
}

fn press(state: &mut State, keys: &str) {
    for key in keys.chars() {
        assert_eq!(state.press(second(2), Key::Char(key)), Effect::None);
    }
}

#[test]
fn tabs_in_all_sizes() {
    for size in SIZES {
        for (key, name) in [
            ("1", "opcodes"),
            ("2", "ports"),
            ("3", "latency"),
            ("4", "events"),
            ("5", "output"),
            ("?", "help"),
        ] {
            let mut state = state(64);
            state.print(
                Stream::Out,
                "one\ttwo \u{65e5}\u{672c} \x1b[31mred\n".as_bytes(),
            );
            state.print(Stream::Err, b"\xff broken\n");
            press(&mut state, key);
            check(name, &mut state, Palette::default(), size);
        }
    }
}

/// A file may say anything.
#[test]
fn numbers_of_any_size() {
    let wild = |tick| {
        let mut wild = snapshot(64, tick);
        (wild.run.blocks, wild.run.threads) = ([u32::MAX; 3], [u32::MAX; 3]);
        wild.dropped_events = u64::MAX;
        for opcode in &mut wild.opcodes {
            opcode.name = " ".repeat(70_000);
            opcode.server_ns = u64::MAX;
            (opcode.calls, opcode.lanes, opcode.errors) = (u64::MAX, u64::MAX, u64::MAX);
            (opcode.bytes_in, opcode.bytes_out) = (u64::MAX, u64::MAX);
            for ns in [0, 1000, 1100, 1 << 30, 1 << 40] {
                opcode.latency.record_n(ns, u64::MAX);
                opcode.wait.record_n(ns, u64::MAX);
            }
        }
        for port in &mut wild.ports {
            (port.calls, port.bytes_in, port.bytes_out) = (u64::MAX, u64::MAX, u64::MAX);
            (port.latency_ns, port.since_ns) = (u64::MAX, u64::MAX);
        }
        for event in &mut wild.events {
            (event.latency_ns, event.wait_ns, event.sampled) = (u64::MAX, u64::MAX, u32::MAX);
            (event.time_ns, event.poller, event.port) = (u64::MAX, u32::MAX, u32::MAX);
        }
        wild
    };
    let mut state = State::new(Settings::default(), Watching::Attached);
    for (tick, time) in [(0, 0), (10, 1), (3, 2)] {
        state.observe(second(time), look(wild(tick)));
        for key in ["1", "2", "3", "4", "5"] {
            press(&mut state, key);
            for (width, height) in SIZES.into_iter().chain([(1, 1), (9, 60)]) {
                frame(&mut state, Palette::default(), width, height);
            }
        }
    }
}

#[test]
fn ports_in_all_numbers() {
    for ports in [0, 1, 64, 4096, 16384] {
        for key in ["1", "2"] {
            let mut state = state(ports);
            press(&mut state, key);
            check(
                &format!("{ports}_ports_{key}"),
                &mut state,
                Palette::default(),
                (80, 24),
            );
        }
    }
    let mut many = state(4096);
    press(&mut many, "2");
    check("4096_ports", &mut many, Palette::default(), (200, 60));
}

#[test]
fn palettes() {
    let mono = Palette {
        colours: Colours::Mono,
        ascii: false,
    };
    let safe = Palette {
        colours: Colours::ColourBlind,
        ascii: false,
    };
    let ascii = Palette {
        colours: Colours::Mono,
        ascii: true,
    };
    for size in SIZES {
        check("mono", &mut state(64), mono, size);
        check("colour_blind", &mut state(64), safe, size);
        check("ascii", &mut state(64), ascii, size);
        for key in "12345?".chars() {
            let mut state = state(64);
            press(&mut state, &key.to_string());
            let buffer = frame(&mut state, ascii, size.0, size.1);
            assert!(text(&buffer).is_ascii(), "{}", text(&buffer));
            let buffer = frame(&mut state, mono, size.0, size.1);
            assert!(!styles(&buffer).contains("Rgb") && !styles(&buffer).contains("Red"));
        }
    }
}

#[test]
fn before_anything_is_known() {
    for size in SIZES {
        let mut state = State::new(Settings::default(), Watching::Child);
        check("nothing", &mut state, Palette::default(), size);
    }
    let mut state = State::new(Settings::default(), Watching::Child);
    state.observe(second(0), look(Snapshot::default()));
    check("no_calls", &mut state, Palette::default(), (80, 24));
    // Of one sample there is no rate.
    let mut state = State::new(Settings::default(), Watching::Child);
    state.observe(second(0), look(snapshot(8, 0)));
    let shown = text(&frame(&mut state, Palette::default(), 80, 24));
    assert!(shown.contains("- calls/s"), "{shown}");
}

#[test]
fn banners() {
    let said = |state: &mut State| text(&frame(state, Palette::default(), 80, 24));
    let mut alive = state(64);
    press(&mut alive, "q");
    assert!(said(&mut alive).contains("End the program?"));
    assert_eq!(alive.press(second(2), Key::Char('x')), Effect::None);
    assert!(!said(&mut alive).contains("End the program?"));
    press(&mut alive, "q");
    assert_eq!(alive.press(second(2), Key::Char('y')), Effect::Interrupt);
    assert!(said(&mut alive).contains("told to end"));
    assert_eq!(alive.press(second(2), Key::Ctrl('c')), Effect::Kill);

    // Stopped, silent, gone: within two seconds, the last frame stays.
    let bare = |health| Look {
        snapshot: None,
        health,
    };
    let mut silent = state(64);
    silent.observe(second(2), bare(Health::Alive));
    assert!(!said(&mut silent).contains("not responding"));
    silent.observe(second(3), bare(Health::Alive));
    assert!(said(&mut silent).contains("not responding: nothing new for 2 s"));
    silent.observe(second(3), bare(Health::Stopped));
    assert!(said(&mut silent).contains("SIGCONT"));
    // It publishes nothing more, and has not ended: nobody leaves who would wait for it unseen.
    silent.observe(second(4), bare(Health::Gone));
    assert!(said(&mut silent).contains("not responding: nothing new for 3 s"));
    press(&mut silent, "q");
    assert_eq!(silent.press(second(5), Key::Char('q')), Effect::Interrupt);
    let mut gone = watched(Watching::Attached, 64);
    gone.observe(second(4), bare(Health::Gone));
    assert!(said(&mut gone).contains("The loader is gone"));
    assert!(said(&mut gone).contains("test_increment"));
    assert_eq!(gone.press(second(5), Key::Char('q')), Effect::Leave);

    let mut blind = State::new(Settings::default(), Watching::Child);
    blind.observe(second(0), bare(Health::Blind("no\x1b space".to_owned())));
    assert!(said(&mut blind).contains("No statistics: no\\u{1b} space"));

    // A run shorter than a frame: all there is comes at once.
    let mut short = State::new(Settings::default(), Watching::Child);
    short.observe(second(0), look(ended(snapshot(64, 0), 3)));
    // What it published last is not its end: nobody leaves who would wait for that unseen.
    assert_eq!(short.press(second(0), Key::Char('q')), Effect::None);
    assert_eq!(short.press(second(0), Key::Esc), Effect::None);
    short.end(Ended {
        sentence: "The program ended with status 3 after 0:00".to_owned(),
        good: false,
    });
    check("ended", &mut short, Palette::default(), (80, 24));
    let attached =
        State::new(Settings::default(), Watching::Attached).press(second(0), Key::Char('q'));
    assert_eq!(attached, Effect::Leave);
}

#[test]
fn a_pause_freezes_what_is_seen() {
    let mut state = state(64);
    let frozen = |state: &mut State| {
        let shown = text(&frame(state, Palette::default(), 80, 24));
        // The first line has the time of the pause.
        shown.split_once('\n').map(|(_, rest)| rest.to_owned())
    };
    press(&mut state, "p");
    let before = frozen(&mut state);
    state.observe(second(9), look(snapshot(64, 90)));
    assert_eq!(frozen(&mut state), before);
    let first = text(&frame(&mut state, Palette::default(), 80, 24));
    assert!(first.contains("PAUSED 0:07"), "{first}");
    press(&mut state, "p");
    assert_ne!(frozen(&mut state), before);
}

#[test]
fn the_selection_follows_its_row() {
    let mut state = state(64);
    press(&mut state, "jj");
    let name = state.row().map(|row| row.name.clone());
    assert!(name.is_some());
    for _ in 0..12 {
        press(&mut state, "sr");
        assert_eq!(state.row().map(|row| row.name.clone()), name);
    }
    state.observe(second(9), look(snapshot(64, 90)));
    assert_eq!(state.row().map(|row| row.name.clone()), name);
}

#[test]
fn only_changes_are_drawn() {
    let mut script = Script::new([look(snapshot(64, 0)), look(snapshot(64, 1))]);
    let mut state = State::new(Settings::default(), Watching::Child);
    state.observe(second(0), script.look());
    assert!(state.take_dirty());
    assert!(!state.take_dirty());
    state.observe(Duration::from_millis(100), script.look());
    assert!(state.take_dirty());
    // Nothing more happens. When the rates have become zero there is nothing to draw but, once a
    // second each, the time of the run and that of a stuck port.
    let mut drawn = 0;
    for tick in 2..62 {
        let mut same = snapshot(64, 1);
        same.sequence = tick;
        same.time_ns += tick * 100_000_000;
        state.observe(Duration::from_millis(tick * 100), look(same));
        drawn += u32::from(state.take_dirty() && tick >= 22);
    }
    assert!(drawn <= 9, "{drawn} of 40");
}

#[test]
fn nothing_panics_in_any_size() {
    let keys: Vec<Key> = BINDINGS
        .iter()
        .flat_map(|binding| binding.keys)
        .copied()
        .collect();
    let sizes = [0, 1, 3, 10, 40, 60, 61, 100, 180];
    for ports in [0, 1, 64, 16384] {
        for tab in ['1', '2', '3', '4', '5', '?'] {
            let mut state = state(ports);
            state.print(Stream::Out, b"x\n");
            for width in sizes {
                for height in [0, 1, 3, 9, 10, 20, 24, 50] {
                    state.press(second(2), Key::Char(tab));
                    // Of all keys some, others for each size.
                    for n in 0..3 {
                        let at = usize::from(width) * 7 + usize::from(height) * 3 + n * 11;
                        state.press(second(2), keys[at % keys.len()]);
                        frame(&mut state, Palette::default(), width, height);
                    }
                }
            }
        }
    }
}
