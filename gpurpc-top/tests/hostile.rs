//! Names, terminals and surroundings that nobody asked for. Images come from `cargo xtask images`; what
//! is missing is named and left out, or fails with `GPURPC_REQUIRE_IMAGES=1`.

#[path = "common/images.rs"]
#[allow(dead_code, unreachable_pub, reason = "other tests need the rest")]
mod images;

#[path = "common/pty.rs"]
#[allow(dead_code, unreachable_pub, reason = "other tests need the rest")]
mod pty;

use std::ffi::OsStr;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use images::image;
use pty::{LONG, Pty, children, process_state};
use rustix::process::{Pid, Signal, kill_process};

const TOP: &str = env!("CARGO_BIN_EXE_gpurpc-top");

/// Clears the screen, sets the window's title, changes the direction of writing; a wide character.
const NAME: &str = "a b\n\x1b[2J\x1b]0;title\x07\u{202e}日.so";

fn top() -> Command {
    let mut command = Command::new(TOP);
    command.stdin(Stdio::null());
    command
}

/// Runs a line of the shell, in which `$TOP` is the program.
fn shell(line: &str) -> Output {
    let mut command = Command::new("sh");
    command.args(["-c", line]).env("TOP", TOP);
    command.stdin(Stdio::null()).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn names_are_text_to_the_terminal() {
    let no_such = format!("/no/such/{NAME}");
    for arguments in [
        &["--once", &no_such][..],
        &["--once", "--output", &no_such, "image"],
        &["--once", "--format", NAME, "image"],
    ] {
        let output = top().args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(125));
        let said = said(&output);
        assert_eq!(said.lines().count(), 1, "{said:?}");
        let line = said.trim_end();
        assert!(!line.contains(char::is_control), "{said:?}");
        assert!(!line.contains('\u{202e}'), "{said:?}");
    }
}

#[test]
fn an_image_of_any_name_is_shown_from_its_first_frame_on() {
    let Some(hello) = image("x86_64/hello.so") else {
        return;
    };
    let folder = std::env::temp_dir().join(format!("gpurpc-name-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let other: &OsStr = OsStr::from_bytes(b"bad\xff.so");
    for (name, shown) in [
        (OsStr::new(NAME), "a b\\n\\u{1b}[2J\\u{1b}]0;title\\u{7}"),
        // The byte that is no text is a replacement character, which the test's terminal leaves out.
        (other, "bad"),
    ] {
        let path = folder.join(name);
        std::fs::copy(&hello, &path).unwrap();
        // It is over before anybody has looked, and is known all the same.
        let mut pty = Pty::run(&[], (100, 24), |command| {
            command.arg(path);
        });
        pty.shows("ended with status 0");
        pty.shows(shown);
        pty.shows("1 block");
        pty.shows("write_to_stdo");
        pty.type_in("q");
        assert_eq!(pty.end().code(), Some(0));
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_a_program_prints_is_text_to_the_terminal() {
    let Some(args) = image("x86_64/args.so") else {
        return;
    };
    let mut pty = Pty::run(&[], (80, 24), |command| {
        command.arg(args).args([NAME, "\u{301}\u{301}x", "t\tab"]);
        command.arg("日本語".repeat(60));
    });
    pty.shows("ended with status 5");
    pty.type_in("5");
    // One line of the program is several; the title of the window is none of its business.
    pty.shows("argv[1] = a b");
    pty.shows("\\x1b[2J\\x1b]0;title\\x07\\u{202e}日.so");
    for (width, height) in [(40, 10), (20, 5), (1, 1), (61, 12)] {
        pty.resize(width, height);
        pty.type_in("\x1b[C");
        std::thread::sleep(Duration::from_millis(150));
        assert_eq!(pty.child.try_wait().unwrap(), None, "{width}x{height}");
    }
    pty.type_in("q");
    assert_eq!(pty.end().code(), Some(5));
}

#[test]
fn a_flood_is_drained_and_bounded() {
    let Some(args) = image("x86_64/args.so") else {
        return;
    };
    let mut pty = Pty::run(
        &["--threads", "16", "--timeout", "300"],
        (80, 24),
        |command| {
            // Some 10 MiB; two fifths of it are lines without anything in them.
            command.arg(args);
            for n in 0..5 {
                let text = if n % 2 == 0 { "x" } else { "\n" };
                command.arg(text.repeat((128 << 10) - 1));
            }
        },
    );
    pty.type_in("5p");
    pty.shows("PAUSED");
    pty.shows("ended with status");
    pty.shows("dropped");
    let status = std::fs::read_to_string(format!("/proc/{}/status", pty.pid().as_raw_nonzero()));
    let most = status.unwrap_or_default();
    let most = most.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let most = most.and_then(|kib| kib.trim().strip_suffix(" kB")?.parse().ok());
    assert!(most.unwrap_or(0) < 64 << 10, "{most:?} KiB");
    pty.type_in("pq");
    pty.end();
    pty.assert_restored();
}

#[test]
fn terminals_of_any_size() {
    for size in [(0, 0), (u16::MAX, u16::MAX), (u16::MAX, 1), (1, u16::MAX)] {
        let mut pty = Pty::run(&["--demo"], (80, 24), |_| ());
        pty.shows("test_increment");
        pty.resize_without_looking(size);
        for key in ["1", "2", "3", "4", "5", "?", "?"] {
            pty.type_in(key);
            std::thread::sleep(Duration::from_millis(120));
        }
        assert_eq!(pty.child.try_wait().unwrap(), None, "{size:?}");
        pty.type_in("q");
        assert_eq!(pty.end().code(), Some(0), "{size:?}");
        pty.assert_restored();
    }
    // One that does not say its size has the usual one.
    let mut pty = Pty::run(&["--demo"], (80, 24), |_| ());
    pty.resize_without_looking((0, 0));
    pty.shows("test_increment");
    pty.type_in("q");
    assert_eq!(pty.end().code(), Some(0));
}

#[test]
fn terminals_of_no_kind_get_the_table() {
    for term in [None, Some("")] {
        let mut pty = Pty::run(&["--demo"], (80, 24), |command| {
            match term {
                Some(term) => command.env("TERM", term),
                None => command.env_remove("TERM"),
            };
        });
        assert_eq!(pty.end().code(), Some(0));
        pty.shows("test_increment");
        pty.assert_restored();
    }
}

#[test]
fn a_terminal_that_takes_nothing_keeps_nobody() {
    let mut pty = Pty::run(&["--demo"], (200, 60), |_| ());
    pty.shows("test_increment");
    let loader = children(pty.pid())[0];
    pty.stop_reading();
    // Frames until there is no room for the next one.
    std::thread::sleep(Duration::from_secs(3));
    for key in ["1", "2", "3", "4", "2", "1", "2", "\x0c"] {
        pty.type_in(key);
        std::thread::sleep(Duration::from_millis(250));
    }
    pty.signal(Signal::TERM);
    assert_eq!(pty.end().code(), Some(143));
    let started = Instant::now();
    while !matches!(process_state(loader), None | Some('Z' | 'X')) {
        assert!(started.elapsed() < LONG, "the loader lives on");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Nor when the loop is over, and its last words are on their way.
#[test]
fn a_terminal_that_takes_nothing_at_the_end_keeps_nobody() {
    let Some(args) = image("x86_64/args.so") else {
        return;
    };
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let mut pty = Pty::run(&[], (80, 24), |command| {
            command.arg(&args);
            command.args(vec!["more than a terminal has room for ".repeat(400); 30]);
        });
        pty.shows("ended with status 31");
        pty.stop_reading();
        pty.type_in("q");
        // It has left the loop when lines are typed with an echo again.
        pty.is_cooked();
        pty.signal(signal);
        assert_eq!(pty.end().code(), Some(code));
    }
}

/// Below `stty tostop` the loader, which is in the background, would be stopped by what it says.
#[test]
fn a_terminal_that_stops_the_background() {
    for (arguments, code) in [("--once /no/such/image", 125), ("--demo --once", 0)] {
        let mut pty = Pty::shell(&format!("stty tostop; exec \"$TOP\" {arguments}"), (80, 24));
        assert_eq!(pty.end().code(), Some(code), "{}", pty.screen());
    }
}

#[test]
fn outputs_that_nobody_reads_or_that_are_full() {
    let output =
        shell("{ \"$TOP\" --batch -d 0.2 --format json --demo; echo $? >&2; } | head -c 10");
    assert_eq!(output.stdout, b"[\n{\"v\":1,\"");
    assert!(said(&output).ends_with("0\n"), "{}", said(&output));
    for line in [
        "\"$TOP\" --once --output /dev/full --demo",
        "\"$TOP\" --format json --demo > /dev/full",
        "\"$TOP\" --batch --format json --demo > /dev/full",
        "\"$TOP\" --batch --format csv --demo > /dev/full",
    ] {
        let output = shell(line);
        assert_eq!(output.status.code(), Some(125), "{line}");
        let said = said(&output);
        assert_eq!(
            said.matches("cannot be written").count(),
            1,
            "{line}: {said}"
        );
    }
    // The program's own code counts for more.
    if let Some(exit) = image("x86_64/exit.so") {
        let file = ["--once", "--output", "/dev/full"];
        let output = top().args(file).arg(exit).arg("42").output().unwrap();
        assert_eq!(output.status.code(), Some(42));
        assert!(said(&output).contains("cannot be written"));
    }
}

#[test]
fn signals_that_were_ignored_before() {
    let output = shell("trap '' CHLD; exec \"$TOP\" --once --demo");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    for (before, code) in [("trap '' HUP;", 0), ("", 129)] {
        let mut running = Command::new("sh")
            .args(["-c", &format!("{before} exec \"$TOP\" --once --demo")])
            .env("TOP", TOP)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut first = [0; 8];
        let mut out = running.stdout.take().unwrap();
        out.read_exact(&mut first).unwrap();
        kill_process(Pid::from_child(&running), Signal::HUP).unwrap();
        let mut rest = Vec::new();
        out.read_to_end(&mut rest).unwrap();
        let status = running.wait().unwrap();
        // Tests may themselves run under nohup.
        let inherited = before.is_empty() && status.code() == Some(0) && is_hup_ignored();
        assert!(
            status.code() == Some(code) || inherited,
            "{before} {status}"
        );
    }
}

fn is_hup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).is_ok_and(|mask| mask & 1 == 1))
}

/// Two demos in a directory of their own, and what is set for whoever looks for them.
fn two_demos(name: &str) -> (tempdir::Folder, [Pty; 2]) {
    let folder = tempdir::Folder::new(name);
    let demos = [(); 2].map(|()| {
        let pty = Pty::run(&["--demo"], (80, 24), |command| {
            command.env("XDG_RUNTIME_DIR", &folder.0);
        });
        pty.shows("test_increment");
        pty
    });
    (folder, demos)
}

mod tempdir {
    use std::os::unix::fs::DirBuilderExt;
    use std::path::PathBuf;

    pub(crate) struct Folder(pub(crate) PathBuf);

    impl Folder {
        pub(crate) fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&path);
            let mut builder = std::fs::DirBuilder::new();
            builder.mode(0o700).create(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}

#[test]
fn the_list_of_loaders_bears_what_the_dashboard_bears() {
    let (folder, demos) = two_demos("gpurpc-list");
    let list = || {
        let pty = Pty::run(&["attach"], (80, 24), |command| {
            command.env("XDG_RUNTIME_DIR", &folder.0);
        });
        pty.shows("which loader?");
        pty
    };
    for (key, code) in [("q", 0), ("\x1b", 0), ("\x03", 130)] {
        let mut pty = list();
        pty.type_in(key);
        assert_eq!(pty.end().code(), Some(code), "{key:?}");
        pty.assert_restored();
    }
    for (signal, code) in [
        (Signal::TERM, 143),
        (Signal::HUP, 129),
        (Signal::INT, 130),
        (Signal::QUIT, 131),
    ] {
        let mut pty = list();
        pty.signal(signal);
        assert_eq!(pty.end().code(), Some(code));
        pty.assert_restored();
    }
    let mut pty = list();
    for (width, height) in [(1, 1), (3, 3), (200, 60)] {
        pty.resize(width, height);
        std::thread::sleep(Duration::from_millis(100));
    }
    pty.shows("which loader?");
    pty.type_in("\x1a");
    let started = Instant::now();
    while process_state(pty.pid()) != Some('T') {
        assert!(started.elapsed() < LONG, "it does not stop");
        std::thread::sleep(Duration::from_millis(5));
    }
    pty.assert_restored();
    pty.signal(Signal::CONT);
    pty.shows("which loader?");
    // Two watch one loader.
    pty.type_in("\x1b[B\r");
    let mut second = list();
    second.type_in("\x1b[B\r");
    pty.shows("test_increment");
    second.shows("test_increment");
    for mut watcher in [pty, second] {
        watcher.type_in("q");
        assert_eq!(watcher.end().code(), Some(0));
        watcher.assert_restored();
    }
    let mut pty = list();
    pty.hang_up();
    assert_eq!(pty.end().code(), Some(129));
    for mut demo in demos {
        demo.type_in("q");
        assert_eq!(demo.end().code(), Some(0));
    }
}

#[test]
fn watching_at_intervals_ends_when_nobody_reads() {
    let (folder, demos) = two_demos("gpurpc-intervals");
    let loader = children(demos[0].pid())[0].as_raw_nonzero();
    let line = format!("\"$TOP\" attach --batch -d 0.1 {loader} | head -n 1");
    let mut command = Command::new("sh");
    command.args(["-c", &line]).env("TOP", TOP);
    command.env("XDG_RUNTIME_DIR", &folder.0);
    let mut running = command.stdout(Stdio::null()).spawn().unwrap();
    let started = Instant::now();
    while running.try_wait().unwrap().is_none() {
        if started.elapsed() > LONG {
            running.kill().unwrap();
            panic!("it writes for nobody");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    drop(demos);
}
