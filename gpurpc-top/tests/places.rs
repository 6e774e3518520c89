//! Where statistics cannot lie: the run is what it is without them, with one warning and a table. And
//! what is left of those that were killed.

#[path = "common/images.rs"]
#[allow(dead_code, unreachable_pub, reason = "other tests need the rest")]
mod images;

#[path = "common/pty.rs"]
#[allow(dead_code, unreachable_pub, reason = "other tests need the rest")]
mod pty;

use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use images::left_out;
use pty::{LONG, Pty, children, process_state};
use rustix::process::{Signal, getuid, kill_process};

const TOP: &str = env!("CARGO_BIN_EXE_gpurpc-top");

/// A directory of this test's own.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("gpurpc-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        let mut builder = std::fs::DirBuilder::new();
        builder.mode(0o700).create(&path).unwrap();
        Self(path)
    }

    /// The names of the statistics in it.
    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.join("gpurpc"));
        let names = entries.into_iter().flatten().flatten();
        names
            .map(|entry| entry.file_name().into_string().unwrap())
            .collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn top(runtime: &Path) -> Command {
    let mut command = Command::new(TOP);
    command.env("XDG_RUNTIME_DIR", runtime).stdin(Stdio::null());
    command
}

/// Code 0 and the table, whatever else; how often it is said that there are no statistics, and all
/// that is said.
#[track_caller]
fn demo(command: &mut Command) -> (usize, String) {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    let table = said.lines().find(|line| line.starts_with("test_increment"));
    assert!(table.is_some(), "{said}");
    (said.matches("no statistics are published").count(), said)
}

#[track_caller]
fn refused(command: &mut Command, words: &str) {
    let (warnings, said) = demo(command.args(["--once", "--demo"]));
    assert_eq!(warnings, 1, "{said}");
    assert!(said.contains(words), "{said}");
}

#[test]
fn a_directory_that_is_none() {
    let folder = Folder::new("place-none");
    let place = folder.0.join("gpurpc");
    std::fs::write(&place, "").unwrap();
    refused(&mut top(&folder.0), "Not a directory");
    std::fs::remove_file(&place).unwrap();
    let other = folder.0.join("other");
    std::fs::create_dir(&other).unwrap();
    symlink(&other, &place).unwrap();
    refused(&mut top(&folder.0), "cannot be used");
    assert_eq!(
        std::fs::read_dir(&other).unwrap().count(),
        0,
        "not followed"
    );
    let attach = top(&folder.0).args(["attach", "--once"]).output().unwrap();
    assert_eq!(attach.status.code(), Some(125));
    assert!(String::from_utf8_lossy(&attach.stderr).contains("cannot be used"));
}

#[test]
fn a_directory_of_somebody_else() {
    if !getuid().is_root() {
        left_out("only root can give a directory away");
        return;
    }
    let folder = Folder::new("place-foreign");
    let place = folder.0.join("gpurpc");
    std::fs::create_dir(&place).unwrap();
    chown(&place, Some(12345), None).unwrap();
    refused(&mut top(&folder.0), "belongs to user 12345");
    // One that is not this user's counts as not being set.
    chown(&folder.0, Some(12345), None).unwrap();
    let (warnings, said) = demo(top(&folder.0).args(["--once", "--demo"]));
    assert_eq!(warnings, 0, "{said}");
}

#[test]
fn no_directory_at_all() {
    let folder = Folder::new("place-tmp");
    let (warnings, said) = demo(
        top(Path::new("relative"))
            .env("TMPDIR", &folder.0)
            .args(["--once", "--demo"]),
    );
    assert_eq!(warnings, 0, "{said}");
    let own = folder.0.join(format!("gpurpc-{}", getuid().as_raw()));
    let mode = std::fs::metadata(own).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o700);
    refused(
        top(Path::new("")).env("TMPDIR", folder.0.join("no such")),
        "No such file",
    );
}

#[test]
fn a_directory_that_cannot_be_written() {
    let folder = Folder::new("place-read-only");
    std::fs::set_permissions(&folder.0, PermissionsExt::from_mode(0o555)).unwrap();
    if !getuid().is_root() {
        refused(&mut top(&folder.0), "Permission denied");
        return;
    }
    // Root is asked nothing: somebody else has to.
    let run = |arguments: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--clear-groups"]);
        command.args(arguments).stdin(Stdio::null());
        command
            .env_remove("XDG_RUNTIME_DIR")
            .env("TMPDIR", &folder.0);
        command
    };
    if !run(&["test", "-x", TOP])
        .status()
        .is_ok_and(|s| s.success())
    {
        left_out("another user cannot run the program where it lies");
        return;
    }
    refused(&mut run(&[TOP]), "Permission denied");
}

/// Runs a demo with its statistics in `folder`, which is an empty file system then.
fn in_tmpfs(folder: &Folder, options: &str) -> Option<Command> {
    let mount = format!("mount -t tmpfs -o mode=700,{options} tmpfs \"$DIR\"");
    let command = |line: &str| {
        let mut command = Command::new("unshare");
        // Of its own: nobody else sees what is mounted there.
        command.args(["--mount", "sh", "-c", line]);
        command.env("TOP", TOP).env("DIR", &folder.0);
        command.stdin(Stdio::null());
        command
    };
    if !getuid().is_root() {
        left_out("only root can mount a file system");
        return None;
    }
    let mounted = command(&mount).stderr(Stdio::null()).status();
    if !mounted.is_ok_and(|status| status.success()) {
        left_out("no file system can be mounted here");
        return None;
    }
    let demo = "XDG_RUNTIME_DIR=\"$DIR\" \"$TOP\" --once --demo";
    Some(command(&format!("{mount} && {demo}")))
}

#[test]
fn a_file_system_without_room() {
    let folder = Folder::new("place-tmpfs");
    if let Some(mut command) = in_tmpfs(&folder, "size=8k") {
        let (warnings, said) = demo(&mut command);
        assert_eq!(warnings, 1, "{said}");
        assert!(said.contains("No space left"), "{said}");
    }
    if let Some(mut command) = in_tmpfs(&folder, "size=64k") {
        let (warnings, said) = demo(&mut command);
        assert!(warnings <= 1, "{said}");
    }
    if let Some(mut command) = in_tmpfs(&folder, "ro") {
        let (warnings, said) = demo(&mut command);
        assert_eq!(warnings, 1, "{said}");
        assert!(said.contains("Read-only"), "{said}");
    }
}

#[test]
fn a_limit_of_what_may_be_written() {
    let limited = |bytes: &str, arguments: &[&str]| {
        let folder = Folder::new(&format!("place-limit-{bytes}"));
        let mut command = Command::new("prlimit");
        command.arg(format!("--fsize={bytes}")).arg(TOP);
        command.args(arguments).stdin(Stdio::null());
        command.env("XDG_RUNTIME_DIR", &folder.0);
        command.output().unwrap()
    };
    for bytes in ["0", "20000"] {
        let output = limited(bytes, &["--once", "--demo"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert!(said.contains("test_increment"), "{said}");
        assert_eq!(said.matches("ulimit -f").count(), 1, "{said}");
    }
    // What is asked for and cannot be had is an error, not a signal.
    let file = std::env::temp_dir().join(format!("gpurpc-limit-{}", std::process::id()));
    let name = file.to_str().unwrap();
    let output = limited("100", &["--output", name, "--demo"]);
    let said = String::from_utf8_lossy(&output.stderr);
    std::fs::remove_file(&file).unwrap();
    assert_eq!(output.status.code(), Some(125), "{said}");
    assert!(said.contains("File too large"), "{said}");
}

#[test]
fn the_dashboard_says_why_it_has_none() {
    let folder = Folder::new("place-dashboard");
    std::fs::write(folder.0.join("gpurpc"), "").unwrap();
    let mut pty = Pty::run(&["--demo"], (200, 24), |command| {
        command.env("XDG_RUNTIME_DIR", &folder.0);
    });
    pty.shows("No statistics: ");
    pty.shows("cannot be used");
    pty.type_in("5");
    pty.shows("no statistics are published");
    pty.shows("thread 0 has made");
    pty.type_in("q");
    assert_eq!(pty.end().code(), Some(0), "{}", pty.screen());
    pty.assert_restored();
    pty.shows("test_increment");
    drop(folder);

    let folder = Folder::new("place-dashboard-limit");
    let line = "exec prlimit --fsize=0 \"$TOP\" --demo";
    let line = format!("XDG_RUNTIME_DIR='{}' {line}", folder.0.display());
    let mut pty = Pty::shell(&line, (80, 24));
    pty.type_in("5");
    pty.shows("no statistics are published");
    pty.shows("thread 0 has made");
    pty.type_in("q");
    assert_eq!(pty.end().code(), Some(0), "{}", pty.screen());
}

#[test]
fn what_is_left_when_it_is_killed_goes_with_the_next_run() {
    for arguments in [&["--demo"][..], &["--once", "--demo"]] {
        let folder = Folder::new("place-killed");
        let mut pty = Pty::run(arguments, (80, 24), |command| {
            command.env("XDG_RUNTIME_DIR", &folder.0);
        });
        let started = Instant::now();
        // One that is still being made is removed when it is old, for it may be.
        while !folder.names().iter().any(|name| {
            Path::new(name)
                .extension()
                .is_some_and(|end| end == "stats")
        }) {
            assert!(started.elapsed() < LONG, "{}", pty.screen());
            std::thread::sleep(Duration::from_millis(5));
        }
        let loaders = children(pty.pid());
        assert_eq!(loaders.len(), 1);
        kill_process(pty.pid(), Signal::KILL).unwrap();
        pty.end();
        while !matches!(process_state(loaders[0]), None | Some('Z' | 'X')) {
            assert!(started.elapsed() < LONG, "it lives on");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(folder.names().len(), 1, "nobody was there to remove it");
        demo(top(&folder.0).args(["--once", "--demo"]));
        assert_eq!(folder.names(), [""; 0]);
    }
}
