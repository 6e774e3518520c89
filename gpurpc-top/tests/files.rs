//! Files by their paths: those that are not written, for something would be lost, and statistics that a
//! monitor is told of.

#[path = "common/images.rs"]
#[allow(dead_code, unreachable_pub, reason = "other tests need the rest")]
mod images;

#[path = "common/pty.rs"]
#[allow(dead_code, unreachable_pub, reason = "other tests need the rest")]
mod pty;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use images::image;
use pty::Pty;
use rpc_stats::{RunInfo, Snapshot, Writer};
use rustix::process::{Pid, Signal, kill_process};

/// A directory of this test's own.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("gpurpc-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    /// The code and what is said on standard output and on standard error.
    fn top(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let output = self.command(arguments).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        (output.status.code(), stdout, stderr)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gpurpc-top"));
        command
            .args(arguments)
            .current_dir(&self.0)
            .env("XDG_RUNTIME_DIR", &self.0)
            .stdin(Stdio::null());
        command
    }

    #[track_caller]
    fn refused(&self, arguments: &[&str], words: &str) {
        let (code, stdout, said) = self.top(arguments);
        assert_eq!((code, stdout.as_str()), (Some(125), ""), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.contains(words), "{said} should say {words}");
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn what_would_be_lost_is_not_written() {
    let Some(exit) = image("x86_64/exit.so") else {
        return;
    };
    let folder = Folder::new("files-lost");
    let bytes = fs::read(exit).unwrap();
    fs::write(folder.file("v.so"), &bytes).unwrap();
    fs::write(folder.file("README.md"), "mine").unwrap();
    fs::hard_link(folder.file("v.so"), folder.file("hard")).unwrap();
    std::os::unix::fs::symlink("v.so", folder.file("soft")).unwrap();
    for (arguments, words) in [
        (
            &["--output", "v.so", "v.so", "7"][..],
            "--output v.so is the image",
        ),
        (
            &["--output", "soft", "v.so", "7"],
            "--output soft is the image",
        ),
        (&["--output", "hard", "./v.so", "7"], "is the image"),
        (
            &["--once", "--report", "v.so", "v.so", "7"],
            "--report v.so is the image",
        ),
        (
            &["--once", "--stats", "v.so", "v.so", "7"],
            "--stats v.so is the image",
        ),
        (
            &["--output", "new", "--report", "./new", "v.so"],
            "are one file",
        ),
        (
            &["--output", "new", "--stats", "new", "v.so"],
            "are one file",
        ),
        (
            &["--output", "README.md", "--stats", "README.md", "v.so"],
            "are one file",
        ),
        // Also what another option has is left as it is.
        (
            &["--output", "new", "--stats", "README.md", "v.so"],
            "README.md is no statistics file",
        ),
        (
            &["--output", "new", "--stats", "README.md", "--demo"],
            "no statistics file",
        ),
    ] {
        folder.refused(arguments, words);
        assert!(!folder.0.join("new").exists(), "{arguments:?}");
    }
    assert!(fs::read(folder.file("v.so")).unwrap() == bytes);
    assert_eq!(fs::read(folder.file("README.md")).unwrap(), b"mine");
    let (code, _, said) = folder.top(&["--output", "table", "--report", "report", "v.so", "7"]);
    assert_eq!(code, Some(7), "{said}");
    assert!(fs::read(folder.file("report")).unwrap().starts_with(b"{"));
    // The dashboard is not even begun.
    let path = folder.file("README.md");
    let mut pty = Pty::run(&["--demo", "--stats", &path], (100, 24), |_| ());
    pty.shows("no statistics file");
    assert_eq!(pty.end().code(), Some(125));
}

/// The demo, which runs until it is told to end.
struct Demo(Child);

impl Demo {
    fn start(folder: &Folder, stats: &str) -> Self {
        let mut command = folder.command(&["--as-loader", "--demo", "--watched", "--stats", stats]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().starts_with("the demo runs")));
        // It prints on.
        std::thread::spawn(move || lines.count());
        Self(child)
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.0), Signal::KILL);
        let _ = self.0.wait();
    }
}

#[test]
fn a_loader_is_attached_to_by_the_path_of_its_statistics() {
    let folder = Folder::new("files-attach");
    let demo = Demo::start(&folder, "123");
    for path in ["./123", &folder.file("123")] {
        let (code, stdout, said) = folder.top(&["attach", "--once", path]);
        assert_eq!(code, Some(0), "{said}");
        assert!(stdout.contains("test_increment"), "{stdout}{said}");
    }
    // Digits are a process, whatever files there are; and this one's is told by its path only.
    folder.refused(&["attach", "--once", "123"], "process 123 is no loader");
    let pid = demo.0.id().to_string();
    folder.refused(&["attach", "--once", &pid], "--stats PATH is attached to");
    folder.refused(&["attach", "--once"], "no loader of yours runs");
    folder.refused(
        &["attach", "--output", "123", "./123"],
        "--output 123 is the statistics file itself",
    );
    let path = folder.file("123");
    let mut pty = Pty::run(&["attach", &path], (100, 30), |_| ());
    pty.shows("test_increment");
    pty.type_in("q");
    assert_eq!(pty.end().code(), Some(0), "{}", pty.screen());
    pty.assert_restored();
}

#[test]
fn what_a_dead_loader_has_left_is_shown_and_nothing_else() {
    let folder = Folder::new("files-dead");
    let snapshot = Snapshot {
        run: RunInfo {
            pid: 1,
            ..RunInfo::default()
        },
        ..Snapshot::default()
    };
    let path = folder.file("kept");
    drop(Writer::create_at(path.as_ref(), &snapshot, true).unwrap());
    let (code, stdout, said) = folder.top(&["attach", "--format", "jsonl", &path]);
    assert_eq!(code, Some(0), "{said}");
    assert!(stdout.starts_with('{'), "{stdout}");
    fs::write(folder.file("text"), "some text").unwrap();
    fs::write(folder.file("empty"), "").unwrap();
    fs::write(folder.file("short"), "gpurpcst").unwrap();
    for name in ["text", "empty", "short", "."] {
        folder.refused(&["attach", "--once", name], "is no statistics file");
    }
    let newer = [&b"gpurpcst"[..], &[9, 0, 0, 0], &[0; 500]].concat();
    fs::write(folder.file("newer"), newer).unwrap();
    folder.refused(&["attach", "newer"], "has version 9");
}
