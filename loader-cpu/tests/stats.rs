//! What runs publish, with a device program that is linked into this test: each run is a process,
//! this test again, told by its environment what to do.

use std::fs::{self, DirBuilder};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use loader_core::cli::{Cli, parse};
use loader_core::program::DeviceOptions;
use loader_core::report::{self, Line};
use loader_core::run::run;
use loader_cpu::{BuiltinImage, CpuDevice};
use rpc_device::procedure::{Increment, Procedure};
use rpc_device::{Program, call, entry, exit, println};
use rpc_stats::{Liveness, ReadError, Reader, RunEnd, Snapshot};
use rustix::process::{Pid, Signal, getuid, kill_process};

const LINE: &str = "GPURPC_TEST_COMMAND_LINE";
const LONG: Duration = Duration::from_secs(100);

/// The device program: does what its first argument says.
fn main(program: &Program) -> i32 {
    let number = program.arg(2).and_then(|n| n.parse()).unwrap_or(0);
    match program.arg(1).map(|arg| arg.as_bytes()) {
        Some(b"increment") => {
            let wrong = (0..number as u64).any(|n| call::<Increment>(&n) != Ok(n + 1));
            if wrong {
                return 1;
            }
            program.arg(3).and_then(|n| n.parse()).unwrap_or(0)
        }
        Some(b"exit") => exit(number),
        Some(b"return") => number,
        Some(b"null") => {
            let null = std::hint::black_box(std::ptr::null::<i32>());
            // SAFETY: none: this is the fault.
            unsafe { null.read_volatile() }
        }
        Some(b"spin") => {
            println!("ready");
            loop {
                thread::sleep(Duration::from_millis(10));
            }
        }
        _ => 99,
    }
}

entry!(main);

/// Not a test: the process that the tests start.
#[test]
#[ignore = "started by the other tests"]
fn child() {
    let Ok(line) = std::env::var(LINE) else {
        return;
    };
    let cli: Cli = parse("loader", line.split(' ').map(Into::into)).unwrap();
    let client = &raw mut rpc_device::client::__gpurpc_client;
    let image = BuiltinImage {
        client: (!line.ends_with("return 5")).then_some(client),
        begin: Some(__gpurpc_begin),
        start: Some(__gpurpc_start),
        end: Some(__gpurpc_end),
    };
    let options = DeviceOptions::from(&cli.options);
    // SAFETY: the kernels are what `entry!` makes, with the client that they use.
    let device = unsafe { CpuDevice::builtin(&options, image) }.unwrap();
    let code = run("loader", &cli.options, &cli.command, Box::new(device), &[]).unwrap();
    std::process::exit(code.into());
}

/// Not a test: what a monitor finds.
#[test]
#[ignore = "started by the other tests"]
fn lister() {
    if std::env::var(LINE).is_ok() {
        for run in rpc_stats::runs().unwrap() {
            std::println!("run {} {} {}", run.pid, run.alive, run.path.display());
        }
        std::println!("cleaned {}", rpc_stats::clean().unwrap());
    }
}

/// A directory for one test, of nobody else.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("gpurpc-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        DirBuilder::new().mode(0o700).create(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Runs with this as the directory for runtime files.
    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        self.set(&mut command, "child", line);
        command
    }

    fn set(&self, command: &mut Command, test: &str, line: &str) {
        command
            .args([
                "--exact",
                test,
                "--ignored",
                "--nocapture",
                "--test-threads=1",
            ])
            .env(LINE, line)
            .env("XDG_RUNTIME_DIR", &self.0)
            .stdin(Stdio::null());
    }

    /// Runs: the exit code, and what was said on standard error.
    fn run(&self, line: &str) -> (i32, String) {
        ended(&mut self.command(line))
    }

    /// What [`rpc_stats::runs`] and [`rpc_stats::clean`] say.
    fn list(&self) -> String {
        let mut command = Command::new(std::env::current_exe().unwrap());
        self.set(&mut command, "lister", "");
        let output = command.output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    }

    /// The files that runs have made here.
    fn files(&self) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(self.file("gpurpc")) else {
            return Vec::new();
        };
        entries.map(|entry| entry.unwrap().path()).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn ended(command: &mut Command) -> (i32, String) {
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    (output.status.code().unwrap(), said)
}

/// A run that spins until it is killed.
struct Spinning(Child);

impl Spinning {
    fn start(folder: &Folder, line: &str) -> Self {
        let mut command = folder.command(line);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().ends_with("ready")));
        Self(child)
    }

    fn send(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }

    fn end(mut self) -> Option<i32> {
        self.0.wait().unwrap().code()
    }
}

impl Drop for Spinning {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The only snapshot of a file that a run has left.
fn last(path: &Path) -> Snapshot {
    let mut reader = Reader::open(path).unwrap();
    assert_eq!(reader.liveness(), Liveness::Dead);
    reader.read().unwrap().unwrap()
}

fn await_next(reader: &mut Reader, limit: Duration) -> Option<Snapshot> {
    let started = Instant::now();
    while started.elapsed() < limit {
        if let Some(snapshot) = reader.read().unwrap() {
            return Some(snapshot);
        }
        thread::sleep(Duration::from_millis(5));
    }
    None
}

#[test]
fn every_call_is_in_the_last_snapshot() {
    let folder = Folder::new("exact");
    let path = folder.file("stats");
    let report = folder.file("report");
    for (grid, calls, all) in [
        ("", 50_000, 50_000),
        ("--blocks 8 --threads 8 ", 1000, 64_000),
        ("--ports 1 ", 100, 100),
        ("--ports 16384 --blocks 2 ", 100, 200),
        ("", 0, 0),
        ("", 1, 1),
    ] {
        let line = format!(
            "--stats {} --keep-stats --report {} {grid}image increment {calls}",
            path.display(),
            report.display()
        );
        let (code, said) = folder.run(&line);
        assert_eq!((code, said.as_str()), (0, ""), "{line}");
        let last = last(&path);
        let name = |opcode: &&rpc_stats::OpcodeStats| opcode.name == Increment::NAME;
        let increment = last.opcodes.iter().find(name).unwrap();
        assert_eq!((increment.calls, increment.lanes), (all, all), "{line}");
        assert_eq!((increment.bytes_in, increment.errors), (all * 8, 0));
        assert_eq!(last.ports.iter().map(|port| port.calls).sum::<u64>(), all);
        let measured = increment.latency.count();
        assert_eq!(measured + last.dropped_events, all, "{line}");
        let end = RunEnd {
            code: 0,
            cancelled: 0,
        };
        assert_eq!(last.end, Some(end));
        assert_eq!(last.run.loader, "loader");
        assert_eq!(last.run.command, ["image", "increment", &calls.to_string()]);
        assert_eq!((last.run.lanes, last.run.layout.as_str()), (1, "Line"));
        // The report says the same.
        let text = fs::read_to_string(&report).unwrap();
        for line in text.lines() {
            if let Line::Opcode(counted) = report::parse(line).unwrap() {
                let own = last
                    .opcodes
                    .iter()
                    .find(|o| o.name == counted.name)
                    .unwrap();
                let numbers = (own.calls, own.lanes, own.bytes_in, own.bytes_out);
                let others = (
                    counted.calls,
                    counted.lanes,
                    counted.bytes_in,
                    counted.bytes_out,
                );
                assert_eq!(numbers, others);
            }
        }
    }
    assert!(folder.files().is_empty(), "that path and no other");
}

#[test]
fn every_end_is_told() {
    let folder = Folder::new("ends");
    let path = folder.file("stats");
    for (line, code) in [
        ("image exit 4", 4),
        ("image null", 134),
        ("--timeout 0.3 image spin", 124),
        // Without a client.
        ("image return 5", 5),
    ] {
        let (got, said) = folder.run(&format!("--keep-stats --stats {} {line}", path.display()));
        assert_eq!(got, code, "{line}: {said}");
        let last = last(&path);
        assert_eq!(
            last.end.map(|end| i32::from(end.code)),
            Some(code),
            "{line}"
        );
        // And nothing is left unless that is asked for.
        let (got, _) = folder.run(&format!("--stats {} {line}", path.display()));
        assert_eq!(got, code);
        assert!(!path.exists(), "{line}");
    }
}

#[test]
fn a_run_is_found_in_a_directory_of_ones_own() {
    let folder = Folder::new("place");
    assert_eq!(folder.run("--stats off image return 0"), (0, String::new()));
    assert!(!folder.file("gpurpc").exists());
    let spinning = Spinning::start(&folder, "image spin");
    let files = folder.files();
    let [file] = &files[..] else {
        panic!("{files:?}");
    };
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode(&folder.file("gpurpc")), mode(file)), (0o700, 0o600));
    let pid = spinning.0.id();
    let name = file.file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with(&format!("{pid}-")), "{name}");
    let said = folder.list();
    assert!(
        said.contains(&format!("run {pid} true {}", file.display())),
        "{said}"
    );
    assert!(said.contains("cleaned 0"), "{said}");
    let mut reader = Reader::open(file).unwrap();
    let snapshot = reader.read().unwrap().unwrap();
    assert_eq!(snapshot.run.pid, pid);
    spinning.send(Signal::INT);
    assert_eq!(spinning.end(), Some(130));
    assert!(folder.files().is_empty());
    let last = reader.read().unwrap().unwrap();
    assert_eq!(last.end.map(|end| end.code), Some(130));
    assert_eq!(reader.liveness(), Liveness::Dead);
}

#[test]
fn a_killed_loader_is_dead_and_cleaned_up_after() {
    let folder = Folder::new("killed");
    let spinning = Spinning::start(&folder, "image spin");
    let file = folder.files().remove(0);
    let mut reader = Reader::open(&file).unwrap();
    assert_eq!(reader.liveness(), Liveness::Alive);
    spinning.send(Signal::KILL);
    let pid = spinning.0.id();
    spinning.end();
    assert_eq!(reader.liveness(), Liveness::Dead);
    assert_eq!(reader.read().unwrap().unwrap().end, None);
    assert!(file.exists());
    // One that is to be kept stays; one that makes no sense is nobody's.
    assert_eq!(folder.run("--keep-stats image exit 3").0, 3);
    assert!(!file.exists(), "the next run has removed it");
    let kept = folder.files();
    assert_eq!(kept.len(), 1);
    let spinning = Spinning::start(&folder, "image spin");
    spinning.send(Signal::KILL);
    let second = spinning.0.id();
    spinning.end();
    fs::write(folder.file("gpurpc/notes"), "mine").unwrap();
    symlink(
        "/etc/passwd",
        folder.file("gpurpc/1-0123456789abcdef.stats"),
    )
    .unwrap();
    let said = folder.list();
    assert!(said.contains(&format!("run {second} false")), "{said}");
    assert!(!said.contains(&format!("run {pid} ")), "{said}");
    assert!(said.contains("cleaned 1"), "{said}");
    assert!(kept[0].exists() && folder.file("gpurpc/notes").exists());
    assert!(Path::new("/etc/passwd").exists());
}

#[test]
fn a_stopped_loader_lives_and_says_nothing() {
    let folder = Folder::new("stopped");
    let spinning = Spinning::start(&folder, "image spin");
    let mut reader = Reader::open(&folder.files()[0]).unwrap();
    spinning.send(Signal::STOP);
    // What was under way when the signal came.
    thread::sleep(Duration::from_millis(300));
    let _ = reader.read().unwrap();
    assert_eq!(await_next(&mut reader, Duration::from_secs(2)), None);
    assert_eq!(reader.liveness(), Liveness::Alive);
    spinning.send(Signal::CONT);
    assert!(await_next(&mut reader, LONG).is_some());
    spinning.send(Signal::TERM);
    assert_eq!(spinning.end(), Some(143));
}

#[test]
fn monitors_that_come_and_go_change_nothing() {
    let folder = Folder::new("attach");
    let path = folder.file("stats");
    let line = format!(
        "--keep-stats --stats {} --blocks 4 image increment 20000",
        path.display()
    );
    let mut child = folder.command(&line).spawn().unwrap();
    let mut attached = 0;
    let started = Instant::now();
    while attached < 100 {
        assert!(started.elapsed() < LONG);
        match Reader::open(&path) {
            Ok(mut reader) => {
                assert!(reader.read().unwrap().is_some());
                let _ = reader.liveness();
                attached += 1;
            }
            Err(ReadError::Open { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let last = last(&path);
    let calls = last.opcodes.iter().map(|opcode| opcode.calls).sum::<u64>();
    assert_eq!(calls, 80_000);
}

/// Whatever keeps statistics from being published: one sentence, and the run goes on.
fn warned(command: &mut Command, words: &str) {
    let (code, said) = ended(command);
    assert_eq!(code, 7, "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(
        said.starts_with("loader: no statistics are published: "),
        "{said}"
    );
    assert!(said.contains(words), "{said} lacks {words}");
}

#[test]
fn a_path_that_cannot_be_written_is_a_warning() {
    let folder = Folder::new("paths");
    let warned = |path: &Path, words: &str| {
        let line = format!("--stats {} image exit 7", path.display());
        warned(&mut folder.command(&line), words);
    };
    let target = folder.file("target");
    warned(Path::new("/no/such/folder/file"), "No such file");
    warned(Path::new("/proc/self/file"), "cannot be made");
    let spinning = Spinning::start(&folder, &format!("--stats {} image spin", target.display()));
    warned(&target, "a loader that runs");
    drop(spinning);
    // That one is dead: its file is replaced. So is an empty one.
    for _ in 0..2 {
        let line = format!("--stats {} image exit 7", target.display());
        assert_eq!(folder.run(&line), (7, String::new()));
        assert!(!target.exists());
        fs::write(&target, "").unwrap();
    }
    if !getuid().is_root() {
        let closed = folder.file("closed");
        DirBuilder::new().mode(0o500).create(&closed).unwrap();
        warned(&closed.join("file"), "Permission denied");
    }
}

#[test]
fn a_directory_that_is_not_ones_own_is_a_warning() {
    let folder = Folder::new("directories");
    // Without a directory for runtime files, or with somebody else's: the temporary one.
    let own = format!("gpurpc-{}", getuid().as_raw());
    let place = folder.file(&own);
    for runtime in [None, Some(""), Some("relative"), Some("/no/such/folder")] {
        let mut command = folder.command("--keep-stats image exit 7");
        command
            .env("TMPDIR", &folder.0)
            .env_remove("XDG_RUNTIME_DIR");
        if let Some(runtime) = runtime {
            command.env("XDG_RUNTIME_DIR", runtime);
        }
        assert_eq!(ended(&mut command), (7, String::new()));
        assert_eq!(fs::read_dir(&place).unwrap().count(), 1, "{runtime:?}");
        assert_eq!(fs::metadata(&place).unwrap().mode() & 0o7777, 0o700);
        fs::remove_dir_all(&place).unwrap();
    }
    let run = || {
        let mut command = folder.command("image exit 7");
        command
            .env("TMPDIR", &folder.0)
            .env_remove("XDG_RUNTIME_DIR");
        command
    };
    fs::create_dir(folder.file("elsewhere")).unwrap();
    symlink(folder.file("elsewhere"), &place).unwrap();
    warned(&mut run(), "cannot be used");
    assert_eq!(fs::read_dir(folder.file("elsewhere")).unwrap().count(), 0);
    fs::remove_file(&place).unwrap();
    fs::write(&place, "").unwrap();
    warned(&mut run(), "cannot be used");
    fs::remove_file(&place).unwrap();
    // Open to others: closed to them.
    fs::create_dir(&place).unwrap();
    fs::set_permissions(&place, fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(ended(&mut run()), (7, String::new()));
    assert_eq!(fs::metadata(&place).unwrap().mode() & 0o7777, 0o700);
    if getuid().is_root() {
        chown(&place, Some(12345), None).unwrap();
        warned(&mut run(), "belongs to user 12345");
        let mut command = folder.command("image exit 7");
        chown(&folder.0, Some(12345), None).unwrap();
        command.env("TMPDIR", &folder.0);
        warned(&mut command, "belongs to user 12345");
        chown(&folder.0, Some(0), None).unwrap();
    }
}

/// Nothing is written beyond what the process may write: that would be its end.
#[test]
fn files_that_may_not_grow_are_a_warning() {
    let folder = Folder::new("limit");
    for bytes in [0, 100, 300, 1000] {
        let mut command = Command::new("prlimit");
        command
            .arg(format!("--fsize={bytes}"))
            .arg(std::env::current_exe().unwrap());
        folder.set(
            &mut command,
            "child",
            "--ports 16384 --blocks 64 image exit 7",
        );
        if command.output().is_err() {
            eprintln!("left out: no prlimit here");
            return;
        }
        warned(&mut command, "ulimit -f");
        assert!(folder.files().is_empty());
    }
}

/// A file system of its own that has little room, or none to write to.
struct Mounted(PathBuf);

impl Mounted {
    /// As many kilobytes as `room` says; none: read only.
    fn new(path: PathBuf, room: u32) -> Option<Self> {
        use rustix::mount::{MountFlags, mount};
        fs::create_dir_all(&path).unwrap();
        let flags = if room == 0 {
            MountFlags::RDONLY
        } else {
            MountFlags::empty()
        };
        let options = format!("size={}k,mode=700", room.max(4));
        let options = std::ffi::CString::new(options).unwrap();
        let mounted = mount("none", &path, "tmpfs", flags, Some(&*options));
        if mounted.is_err() {
            eprintln!("left out: nothing can be mounted here");
        }
        mounted.ok().map(|()| Self(path))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(&self.0, rustix::mount::UnmountFlags::DETACH);
    }
}

#[test]
fn no_space_is_a_warning() {
    let folder = Folder::new("space");
    let run = |full: &Mounted, line: &str| {
        let mut command = folder.command(line);
        command.env("XDG_RUNTIME_DIR", &full.0);
        command
    };
    let Some(full) = Mounted::new(folder.file("full"), 8) else {
        return;
    };
    assert_eq!(ended(&mut run(&full, "image exit 7")), (7, String::new()));
    fs::write(full.0.join("other"), vec![1; 1 << 20]).unwrap_err();
    warned(&mut run(&full, "image exit 7"), "No space left");
    // The beginning has room, what comes then has not.
    let Some(full) = Mounted::new(folder.file("small"), 4) else {
        return;
    };
    let line = "--blocks 16 image increment 1000 7";
    warned(&mut run(&full, line), "No space left");
    assert_eq!(fs::read_dir(full.0.join("gpurpc")).unwrap().count(), 0);
    let Some(closed) = Mounted::new(folder.file("closed"), 0) else {
        return;
    };
    let mut command = folder.command("image exit 7");
    command.env("XDG_RUNTIME_DIR", &closed.0);
    warned(&mut command, "Read-only");
    let line = format!("--stats {} image exit 7", closed.0.join("file").display());
    warned(&mut folder.command(&line), "Read-only");
}
