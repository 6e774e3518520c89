//! The real program in a pseudo-terminal: keys, sizes, signals, ends. The terminal is given back
//! whatever happens.

#[path = "common/pty.rs"]
#[allow(dead_code, unreachable_pub, reason = "other tests need the rest")]
mod pty;

use std::time::{Duration, Instant};

use gpurpc_top::keys::{BINDINGS, Command, Key};
use pty::{LONG, Pty, children, process_state};
use rustix::process::{Pid, Signal, kill_process};

fn demo(size: (u16, u16)) -> Pty {
    let pty = Pty::run(&["--demo"], size, |_| ());
    pty.shows("test_increment");
    pty
}

/// What a terminal sends for a key.
fn bytes(key: Key) -> String {
    match key {
        Key::Char(c) => c.to_string(),
        Key::Ctrl(c) => char::from(c as u8 & 0x1F).to_string(),
        Key::Up => "\x1b[A".to_owned(),
        Key::Down => "\x1b[B".to_owned(),
        Key::Right => "\x1b[C".to_owned(),
        Key::Left => "\x1b[D".to_owned(),
        Key::PageUp => "\x1b[5~".to_owned(),
        Key::PageDown => "\x1b[6~".to_owned(),
        Key::Home => "\x1b[H".to_owned(),
        Key::End => "\x1b[F".to_owned(),
        Key::Enter => "\r".to_owned(),
        Key::Tab => "\t".to_owned(),
        Key::BackTab => "\x1b[Z".to_owned(),
        Key::Esc => "\x1b".to_owned(),
    }
}

#[test]
fn every_key_every_size_and_out() {
    let mut pty = demo((80, 24));
    for tab in ["1", "2", "3", "4", "5"] {
        pty.type_in(tab);
        for binding in BINDINGS {
            for (&key, command) in binding.keys.iter().zip(binding.commands) {
                let leaves = matches!(
                    command,
                    Command::Quit | Command::Interrupt | Command::Suspend
                );
                if !leaves {
                    pty.type_in(&bytes(key));
                    // An escape is one if nothing follows it at once.
                    let pause = if key == Key::Esc { 60 } else { 5 };
                    std::thread::sleep(Duration::from_millis(pause));
                }
            }
        }
    }
    // Whatever is open now: this is the table.
    std::thread::sleep(Duration::from_millis(100));
    pty.type_in("\x1b");
    std::thread::sleep(Duration::from_millis(100));
    pty.type_in("1");
    pty.shows("OPCODE");
    pty.type_in("?");
    pty.shows("this help");
    for (width, height) in [
        (200, 60),
        (100, 20),
        (60, 10),
        (59, 10),
        (40, 10),
        (20, 5),
        (3, 2),
        (1, 1),
        (1, 60),
        (200, 1),
    ] {
        pty.resize(width, height);
        std::thread::sleep(Duration::from_millis(250));
        assert_eq!(pty.child.try_wait().unwrap(), None, "{width}x{height}");
    }
    pty.resize(80, 24);
    pty.type_in("q");
    std::thread::sleep(Duration::from_millis(250));
    pty.shows("OPCODE");
    pty.type_in("2");
    pty.shows("mid-exchange");
    pty.type_in("5gf");
    pty.shows("thread 0 has made");
    pty.type_in("q");
    assert_eq!(pty.end().code(), Some(0), "{}", pty.screen());
    pty.assert_restored();
    // The table stays, and so do the last lines.
    pty.shows("test_increment");
    pty.shows("thread 0 has made");
}

#[test]
fn an_interrupt_ends_it_and_a_second_one_kills() {
    let mut pty = demo((80, 24));
    pty.type_in("\x03");
    // The demo's loader takes the interrupt at its word.
    assert_eq!(pty.end().code(), Some(130), "{}", pty.screen());
    pty.assert_restored();

    let mut pty = demo((80, 24));
    let loader = children(pty.pid());
    assert_eq!(loader.len(), 1);
    // One that is stopped over and over does not end.
    kill_process(loader[0], Signal::STOP).unwrap();
    pty.type_in("\x03\x03");
    assert!(
        matches!(pty.end().code(), Some(137 | 130)),
        "{}",
        pty.screen()
    );
    pty.assert_restored();
}

#[test]
fn signals_give_the_terminal_back() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::HUP, 129), (Signal::QUIT, 131)] {
        let mut pty = demo((80, 24));
        let loaders = children(pty.pid());
        pty.signal(signal);
        assert_eq!(pty.end().code(), Some(code), "{}", pty.screen());
        pty.assert_restored();
        for loader in loaders {
            assert!(matches!(process_state(loader), None | Some('Z' | 'X')));
        }
    }
}

#[test]
fn a_terminal_that_goes_away_ends_it() {
    let mut pty = demo((80, 24));
    let loaders = children(pty.pid());
    pty.hang_up();
    assert_eq!(pty.end().code(), Some(129));
    for loader in loaders {
        assert!(matches!(process_state(loader), None | Some('Z' | 'X')));
    }
}

#[test]
fn a_panic_gives_the_terminal_back() {
    let mut pty = Pty::run(&["--demo"], (80, 24), |command| {
        command
            .env("GPURPC_TOP_TEST_PANIC", "1")
            .env("RUST_BACKTRACE", "0");
    });
    assert_eq!(pty.end().code(), Some(125), "{}", pty.screen());
    pty.assert_restored();
    pty.shows("GPURPC_TOP_TEST_PANIC is set");
    pty.shows("mistake in this program");
}

fn eventually(what: &str, mut f: impl FnMut() -> bool) {
    let started = Instant::now();
    while !f() {
        assert!(started.elapsed() < LONG, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn it_stops_and_goes_on_as_any_program() {
    for key in [true, false] {
        let mut pty = demo((80, 24));
        let loader = children(pty.pid())[0];
        if key {
            pty.type_in("\x1a");
        } else {
            pty.signal(Signal::TSTP);
        }
        eventually("both stop", || {
            process_state(pty.pid()) == Some('T') && process_state(loader) == Some('T')
        });
        pty.assert_restored();
        pty.signal(Signal::CONT);
        eventually("both go on", || {
            process_state(pty.pid()) != Some('T') && process_state(loader) != Some('T')
        });
        pty.shows("OPCODE");
        eventually("the terminal is taken", || !pty.is_restored());
        pty.type_in("q");
        assert_eq!(pty.end().code(), Some(0), "{}", pty.screen());
        pty.assert_restored();
    }
}

/// Says `text` within two seconds, ten times as many on a machine that has none to spare, after this
/// was done to the loader.
#[track_caller]
fn says_soon(pty: &Pty, text: &str, loader: Pid, signal: Signal) {
    let asked = Instant::now();
    kill_process(loader, signal).unwrap();
    pty.shows(text);
    let took = asked.elapsed();
    println!("{text:?} was there after {took:?}");
    assert!(took < Duration::from_secs(20), "{text}: after {took:?}");
}

#[test]
fn a_loader_that_is_killed_leaves_its_last_frame() {
    let mut pty = demo((80, 24));
    let loader = children(pty.pid())[0];
    says_soon(&pty, "ended by signal 9", loader, Signal::KILL);
    assert!(pty.screen().contains("test_increment"), "the last frame");
    pty.type_in("q");
    assert_eq!(pty.end().code(), Some(137));
    pty.assert_restored();
}

#[test]
fn a_loader_that_is_stopped_is_said_not_to_respond() {
    let mut pty = demo((80, 24));
    let loader = children(pty.pid())[0];
    says_soon(&pty, "not responding", loader, Signal::STOP);
    assert!(pty.screen().contains("test_increment"), "the last frame");
    kill_process(loader, Signal::CONT).unwrap();
    pty.wait_for("it responds", |screen| !screen.contains("not responding"));
    pty.type_in("q");
    assert_eq!(pty.end().code(), Some(0));
}

#[test]
fn one_that_is_attached_leaves_the_program_alone() {
    let pty = demo((80, 24));
    let loader = children(pty.pid())[0];
    let number = loader.as_raw_nonzero().to_string();
    let mut watcher = Pty::run(&["attach", &number], (100, 30), |_| ());
    watcher.shows("test_increment");
    watcher.type_in("5");
    watcher.shows("where the loader was started");
    watcher.type_in("q");
    assert_eq!(watcher.end().code(), Some(0));
    watcher.assert_restored();
    let mut watcher = Pty::run(&["attach", &number], (100, 30), |_| ());
    watcher.shows("test_increment");
    says_soon(&watcher, "The loader is gone", loader, Signal::KILL);
    assert!(
        watcher.screen().contains("test_increment"),
        "the last frame"
    );
    watcher.type_in("\x03");
    assert_eq!(watcher.end().code(), Some(130));
    pty.shows("ended by signal 9");
}

#[test]
fn what_cannot_start_is_said_in_the_terminal() {
    let mut pty = Pty::run(&["/no/such/image"], (80, 24), |_| ());
    assert_eq!(pty.end().code(), Some(125));
    pty.assert_restored();
    pty.shows("No such file");
}

#[test]
fn without_a_change_nothing_is_drawn() {
    let mut pty = demo((80, 24));
    let loader = children(pty.pid())[0];
    kill_process(loader, Signal::KILL).unwrap();
    pty.shows("ended by signal 9");
    std::thread::sleep(Duration::from_millis(300));
    let before = pty.written();
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(pty.written(), before);
    pty.type_in("q");
    pty.end();
}

#[test]
fn an_image_from_standard_input_leaves_the_keys_to_the_terminal() {
    // Not an image, so it ends at once; but the terminal is asked for keys, not the pipe.
    let mut pty = Pty::shell("echo nothing | \"$TOP\" -", (80, 24));
    assert_eq!(pty.end().code(), Some(125), "{}", pty.screen());
    pty.assert_restored();
    let mut pty = Pty::shell("echo nothing | \"$TOP\" --demo", (80, 24));
    pty.shows("test_increment");
    pty.type_in("q");
    assert_eq!(pty.end().code(), Some(0), "{}", pty.screen());
    pty.assert_restored();
}

#[test]
fn without_statistics_there_is_still_a_dashboard() {
    let mut pty = Pty::run(&["--stats", "off", "--demo"], (80, 24), |_| ());
    pty.shows("No statistics: they are off");
    pty.type_in("5");
    pty.shows("thread 0 has made");
    pty.type_in("q");
    assert_eq!(pty.end().code(), Some(0), "{}", pty.screen());
    pty.assert_restored();
}

#[test]
fn a_dumb_terminal_gets_the_table() {
    let mut pty = Pty::run(&["--demo"], (80, 24), |command| {
        command.env("TERM", "dumb");
    });
    assert_eq!(pty.end().code(), Some(0));
    pty.shows("test_increment");
}
