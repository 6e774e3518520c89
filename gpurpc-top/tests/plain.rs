//! The plain form through its command line. The examples come from `cargo xtask images`; what is
//! missing is named and left out, or fails with `GPURPC_REQUIRE_IMAGES=1`.

#[path = "common/images.rs"]
#[allow(dead_code, unreachable_pub, reason = "other tests need the rest")]
mod images;

use std::fs::File;
use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use images::{image, left_out};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

/// Everything here has this long, on whatever machine.
const LIMIT: Duration = Duration::from_mins(2);

fn top() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpurpc-top"));
    command.stdin(Stdio::null());
    command
}

struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

fn run(command: &mut Command) -> Ran {
    let output = command.output().unwrap();
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// The cells of the row that starts with `name`.
fn row<'t>(table: &'t str, name: &str) -> Vec<&'t str> {
    let line = table.lines().find(|line| line.starts_with(name));
    line.unwrap_or_else(|| panic!("no {name} in {table}"))
        .split_whitespace()
        .collect()
}

#[test]
fn the_demo_shows_output_and_table() {
    let started = Instant::now();
    let ran = run(top().arg("--demo"));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(started.elapsed() < LIMIT);
    assert!(ran.stdout.contains("thread 0 has made"), "{}", ran.stdout);
    assert!(ran.stderr.contains("a call of an unknown opcode fails"));
    let increments = row(&ran.stderr, "test_increment");
    assert_eq!(increments[1], increments[2], "a warp has one lane");
    assert_eq!(row(&ran.stderr, "unknown")[5], "1");
    row(&ran.stderr, "test_stream");
    row(&ran.stderr, "total");
}

#[test]
fn an_image_runs_as_with_its_loader() {
    for folder in ["x86_64", "x86_64/compact"] {
        if let Some(hello) = image(&format!("{folder}/hello.so")) {
            let ran = run(top()
                .args(["--once", "--threads", "3"])
                .arg(hello)
                .args(["a", "--b"]));
            assert_eq!(ran.code, Some(0), "{}", ran.stderr);
            assert_eq!(ran.stdout.lines().count(), 5);
            assert!(ran.stdout.contains("arg 2: --b"), "{}", ran.stdout);
            assert_eq!(row(&ran.stderr, "write_to_stdout")[1], "5");
        }
        if let Some(exit) = image(&format!("{folder}/exit.so")) {
            let ran = run(top().arg("--once").arg(exit).arg("42"));
            assert_eq!(ran.code, Some(42));
            assert_eq!(row(&ran.stderr, "exit")[1], "1");
        }
        if let Some(panic) = image(&format!("{folder}/panic.so")) {
            let ran = run(top().arg(panic));
            assert_eq!(ran.code, Some(101));
            let table = ran.stderr.find("opcode").unwrap();
            assert!(ran.stderr.find("index out of bounds").unwrap() < table);
        }
    }
}

#[test]
fn an_image_comes_from_standard_input_too() {
    if let Some(exit) = image("x86_64/exit.so") {
        let image = std::fs::File::open(exit).unwrap();
        let ran = run(top().args(["--once", "-", "9"]).stdin(image));
        assert_eq!(ran.code, Some(9), "{}", ran.stderr);
    }
}

#[test]
fn ptx_goes_to_the_loader_for_nvidia() {
    if Path::new("/dev/nvidiactl").exists() {
        left_out("this is about machines without an NVIDIA driver");
        return;
    }
    let path = std::env::temp_dir().join(format!("gpurpc-top-{}.ptx", std::process::id()));
    std::fs::write(&path, ".version 8.0\n.target sm_70\n.address_size 64\n").unwrap();
    let said = refused(&["--once", path.to_str().unwrap()]);
    std::fs::remove_file(&path).unwrap();
    assert!(said.contains("NVIDIA"), "{said}");
}

/// One sentence and 125.
fn refused(arguments: &[&str]) -> String {
    let ran = run(top().args(arguments));
    assert_eq!(ran.code, Some(125), "{arguments:?}: {}", ran.stderr);
    assert_eq!(
        ran.stderr.lines().count(),
        1,
        "{arguments:?}: {}",
        ran.stderr
    );
    assert!(ran.stderr.starts_with("gpurpc-top: "), "{}", ran.stderr);
    ran.stderr
}

#[test]
fn what_cannot_run_is_refused() {
    for (arguments, words) in [
        (&["--frob"][..], "--frob"),
        (&[], "name an IMAGE"),
        (&[], "--demo runs a program"),
        (&["--once"], "attach watches a loader"),
        (&["--once", "--threads", "0"], "from 1 to"),
        (&["--format", "xml", "image"], "xml"),
        (&["-n", "3", "image"], "--batch"),
        (&["--fps", "60", "image"], "60"),
        (
            &["--once", "--output", "/no/such/folder/file", "image"],
            "/no/such/folder/file",
        ),
        (&["attach", "no-such-file"], "there is no file no-such-file"),
        (&["attach", "./1"], "there is no file ./1"),
        (&["attach", "/dev/null"], "/dev/null is no statistics file"),
        (&["attach", "/"], "/ is no statistics file"),
        (&["attach", "1"], "process 1 is no loader"),
        (
            &["attach", "1"],
            "with --stats PATH is attached to by that path",
        ),
        (&["attach", "99999999999"], "no process has this number"),
        (&["attach", ""], "give a process or a file"),
        (&["completions", "tcsh"], "tcsh"),
        (&["--demo", "image"], "cannot be used with"),
        (&["--demo", "--threads", "5000"], "--threads 5000"),
        (&["--demo", "--blocks", "4294967295"], "--blocks"),
        (&["--demo", "--device", "3"], "no CPU device 3"),
        (&["/no/such/file"], "No such file"),
        (&["--batch", "-d", "1e-9", "image"], "at least 0.001"),
        (&["/dev/null"], "is empty"),
        (&["/"], "is a directory"),
        (&[env!("CARGO_BIN_EXE_gpurpc-top")], "host program"),
    ] {
        let said = refused(arguments);
        assert!(said.contains(words), "{said} should say {words}");
    }
}

/// The demo, which has begun, and the rest of what it prints.
fn running_demo(stderr: Stdio) -> (Child, Lines<BufReader<ChildStdout>>) {
    let mut running = top()
        .arg("--demo")
        .stdout(Stdio::piped())
        .stderr(stderr)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(running.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().starts_with("the demo runs")));
    (running, lines)
}

/// The loader that it has started, where the system tells; else its end is awaited.
fn loader_of(running: &mut Child) -> Option<Pid> {
    let loader = children(running.id()).first().copied();
    if loader.is_none() {
        left_out("this system does not list a process's children");
        running.wait().unwrap();
    }
    loader
}

#[test]
fn an_interrupt_ends_the_run_with_its_table() {
    let (running, _lines) = running_demo(Stdio::piped());
    kill_process(Pid::from_child(&running), Signal::INT).unwrap();
    let output = running.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{said}");
    row(&said, "write_to_stdout");
}

/// The state letter of a process, as `ps` shows it.
fn state(pid: Pid) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    stat.rsplit(')').next()?.trim_start().chars().next()
}

fn eventually(what: &str, mut f: impl FnMut() -> bool) {
    let started = Instant::now();
    while !f() {
        assert!(started.elapsed() < LIMIT, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn the_loader_stops_and_goes_on_with_its_parent() {
    let (mut running, lines) = running_demo(Stdio::null());
    let parent = Pid::from_child(&running);
    let Some(loader) = loader_of(&mut running) else {
        return;
    };
    kill_process(parent, Signal::TSTP).unwrap();
    eventually("both stop", || {
        state(parent) == Some('T') && state(loader) == Some('T')
    });
    kill_process(parent, Signal::CONT).unwrap();
    eventually("both go on", || {
        state(parent) != Some('T') && state(loader) != Some('T')
    });
    // One that somebody else has stopped can be interrupted all the same. The parent may still be about to
    // let it go on.
    eventually("it stops", || {
        kill_process(loader, Signal::STOP).unwrap();
        state(loader) == Some('T')
    });
    kill_process(parent, Signal::INT).unwrap();
    drop(lines);
    assert_eq!(running.wait().unwrap().code(), Some(130));
}

#[test]
fn no_image_comes_from_a_terminal() {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let input = std::fs::File::open(name.to_str().unwrap()).unwrap();
    let ran = run(top().arg("-").stdin(input));
    assert_eq!(ran.code, Some(125));
    assert!(ran.stderr.contains("terminal"), "{}", ran.stderr);
}

/// The processes that `parent` has started.
fn children(parent: u32) -> Vec<Pid> {
    let list = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
    list.unwrap_or_default()
        .split_whitespace()
        .filter_map(|pid| Pid::from_raw(pid.parse().ok()?))
        .collect()
}

#[test]
fn the_loader_does_not_outlive_its_parent() {
    let (mut running, _lines) = running_demo(Stdio::null());
    let loaders = children(running.id());
    if loaders.is_empty() {
        left_out("this system does not list a process's children");
    }
    running.kill().unwrap();
    running.wait().unwrap();
    let started = Instant::now();
    for loader in loaders {
        // A zombie whose new parent does not care still counts as there: its state tells.
        while test_kill_process(loader).is_ok() && !is_dead(loader) {
            assert!(started.elapsed() < LIMIT, "it lives on");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn is_dead(pid: Pid) -> bool {
    matches!(state(pid), None | Some('Z' | 'X'))
}

#[test]
fn a_killed_loader_gives_its_signal() {
    let (mut running, _lines) = running_demo(Stdio::piped());
    let Some(loader) = loader_of(&mut running) else {
        return;
    };
    kill_process(loader, Signal::KILL).unwrap();
    let output = running.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(137));
    assert!(String::from_utf8_lossy(&output.stderr).contains("signal 9"));
}

/// Whoever holds the loader's end of the report, as a command that its program has started could.
#[test]
fn what_a_killed_loader_has_left_behind_keeps_nobody() {
    let (mut running, _lines) = running_demo(Stdio::null());
    let Some(loader) = loader_of(&mut running) else {
        return;
    };
    let of_loader = format!("/proc/{}", loader.as_raw_nonzero());
    let arguments = std::fs::read_to_string(format!("{of_loader}/cmdline")).unwrap();
    let mut arguments = arguments.split('\0');
    let number = arguments.find_map(|argument| argument.strip_prefix("--report=/dev/fd/"));
    let path = format!("{of_loader}/fd/{}", number.unwrap());
    let held = File::options().write(true).open(path).unwrap();
    kill_process(loader, Signal::KILL).unwrap();
    let mut status = None;
    eventually("it ends", || {
        status = running.try_wait().unwrap();
        status.is_some()
    });
    drop(held);
    assert_eq!(status.unwrap().code(), Some(137));
}
