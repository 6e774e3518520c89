//! How runs end, with a device program that is linked into this test. Since many ends are the
//! process's, each run is a process: this test again, told by its environment what to do.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use loader_core::cli::{Cli, parse};
use loader_core::image::ImageKind;
use loader_core::program::{Backend, DeviceOptions};
use loader_core::run::run;
use loader_cpu::{BuiltinImage, Cpu, CpuDevice};
use rpc_device::client::client;
use rpc_device::{Opcode, Program, entry, exit, grid, println};
use rustix::process::{Pid, Signal, kill_process};

/// What has not happened by then does not happen, on a busy machine either.
const LIMIT: Duration = Duration::from_secs(100);
const LINE: &str = "GPURPC_TEST_COMMAND_LINE";

/// The device program: does what its first argument says.
fn main(program: &Program) -> i32 {
    match program.arg(1).map(|arg| arg.as_bytes()) {
        Some(b"return") => program.arg(2).and_then(|n| n.parse()).unwrap_or(0),
        Some(b"exit") => exit(program.arg(2).and_then(|n| n.parse()).unwrap_or(0)),
        Some(b"null") => {
            let null = std::hint::black_box(std::ptr::null::<i32>());
            // SAFETY: none: this is the fault.
            unsafe { null.read_volatile() }
        }
        Some(b"overflow") => recurse(0) as i32,
        Some(b"panic-twice") => {
            let _ = std::panic::catch_unwind(|| panic!("first"));
            panic!("second")
        }
        Some(b"abort") => std::process::abort(),
        Some(b"abort-by-call") => {
            println!("last words");
            let client = client();
            let mut port = client.open(Opcode::ABORT).unwrap().dynamic();
            let _ = port.send(0, |_, _| ());
            drop(port);
            spin()
        }
        // SAFETY: a signal to this very thread, as a breakpoint is one.
        Some(b"trap") => unsafe { libc::raise(libc::SIGTRAP) },
        Some(b"spin") => {
            println!("ready");
            spin()
        }
        Some(b"exit-among-spinning") => {
            if grid::global_index() == 3 {
                exit(7)
            }
            spin()
        }
        Some(b"calls-for-ever") => loop {
            println!("another");
        },
        _ => 99,
    }
}

fn spin() -> ! {
    loop {
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[expect(unconditional_recursion, reason = "it is to overflow the stack")]
#[inline(never)]
fn recurse(depth: u64) -> u64 {
    let frame = std::hint::black_box([depth; 64]);
    recurse(depth + 1) + frame[7]
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
    let image = BuiltinImage {
        client: Some(&raw mut rpc_device::client::__gpurpc_client),
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

/// Not a test: a loader that faults itself, as one does whose memory its image has destroyed.
#[test]
#[ignore = "started by the other tests"]
fn broken_child() {
    if std::env::var(LINE).is_ok() {
        let device = Cpu.open(ImageKind::X86_64, &DeviceOptions::default());
        assert!(device.is_ok());
        // SAFETY: a signal to this very thread, as a fault is one.
        unsafe { libc::raise(libc::SIGSEGV) };
    }
}

fn command(line: &str) -> Command {
    test(
        Command::new(std::env::current_exe().unwrap()),
        "child",
        line,
    )
}

fn test(mut command: Command, name: &str, line: &str) -> Command {
    command
        .args([
            "--exact",
            name,
            "--ignored",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(LINE, line)
        .stdin(Stdio::null());
    command
}

fn output(line: &str) -> (Option<i32>, String, Output) {
    let output = command(line).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), said, output)
}

#[test]
fn values_become_codes() {
    for (line, code, words) in [
        ("image return 0", 0, ""),
        ("image return 3", 3, ""),
        ("image return -1", 255, ""),
        ("image return 256", 0, "256"),
        ("--threads 3 --blocks 2 image return 6", 6, ""),
        ("image exit 42", 42, ""),
        ("image exit 512", 0, "512"),
        ("image", 99, ""),
    ] {
        let (got, said, _) = output(line);
        assert_eq!(got, Some(code), "{line}: {said}");
        assert_eq!(said.is_empty(), words.is_empty(), "{line}: {said}");
        assert!(said.contains(words), "{line}: {said}");
    }
}

#[test]
fn faults_are_told_and_give_134() {
    for (line, words) in [
        (
            "image null",
            "segmentation fault at address 0x0 in thread 0 of block 0",
        ),
        ("--threads 4 image null", "segmentation fault"),
        ("--stack-size 256k image overflow", "stack overflow"),
        ("image abort", "abort in thread 0"),
        ("image trap", "trap in thread 0"),
    ] {
        let (code, said, _) = output(line);
        assert_eq!(code, Some(134), "{line}: {said}");
        assert!(said.contains(words), "{line}: {said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

/// As a program of the host that aborts: what it wrote is written, then it dies of the signal.
#[test]
fn an_abort_ends_the_loader_by_its_signal() {
    let path = std::env::temp_dir().join(format!("gpurpc-abort-{}", std::process::id()));
    for grid in ["", "--threads 4 "] {
        let line = format!("--report {} {grid}image abort-by-call", path.display());
        let (code, said, output) = output(&line);
        assert_eq!((code, &*said), (None, ""), "{line}");
        assert_eq!(output.status.signal(), Some(Signal::ABORT.as_raw()));
        assert!(!output.status.core_dumped() || core_allowed());
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert!(stdout.contains("last words\n"), "{stdout}");
        let report = std::fs::read_to_string(&path).unwrap();
        let last = report.lines().last().unwrap();
        assert!(last.contains("\"code\":134"), "{report}");
    }
    std::fs::remove_file(path).unwrap();
    // A shell makes an exit code of it, and the signal may be ignored by whoever started the loader.
    let script = r#"trap "" ABRT; "$0" "$@"; exit $?"#;
    let mut shell = Command::new("sh");
    shell
        .args(["-c", script])
        .arg(std::env::current_exe().unwrap());
    let output = test(shell, "child", "image abort-by-call")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(134));
}

/// Whether `ulimit -c` lets this process's children leave a core.
fn core_allowed() -> bool {
    use rustix::process::{Resource, getrlimit};
    getrlimit(Resource::Core).current != Some(0)
}

#[test]
fn one_panic_is_reported() {
    let (code, said, _) = output("image panic-twice");
    assert_eq!(code, Some(101), "{said}");
    assert_eq!(said.lines().count(), 2, "place and message: {said}");
    assert!(said.ends_with("first\n"), "{said}");
}

#[test]
fn a_fault_of_any_thread_of_a_loader_is_told() {
    let program = Command::new(std::env::current_exe().unwrap());
    let output = test(program, "broken_child", "").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(134), "{said}");
    assert!(said.starts_with("ends-"), "the program's name: {said}");
    assert!(
        said.ends_with("outside of its device threads: segmentation fault\n"),
        "{said}"
    );
}

#[test]
fn a_fault_signal_from_outside_is_no_fault_of_the_program() {
    for signal in [Signal::SEGV, Signal::ABORT, Signal::TRAP] {
        let (child, pid) = spinning("image spin");
        kill_process(pid, signal).unwrap();
        assert_eq!(ended(child).signal(), Some(signal.as_raw()));
    }
}

/// With hardly any address space for threads, whatever fails is told.
#[test]
fn a_system_without_memory_gets_a_sentence() {
    for kilobytes in [90_000, 120_000, 200_000, 300_000, 600_000] {
        let mut limited = Command::new("sh");
        limited
            .args(["-c", r#"ulimit -v "$0" && exec "$@""#])
            .arg(kilobytes.to_string())
            .arg(std::env::current_exe().unwrap());
        let output = test(limited, "child", "--threads 64 image return 5")
            // A backtrace needs more memory than there is, and waits for ever if it gets none.
            .env("RUST_BACKTRACE", "0")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        // What does not even start says so by a panic of the test's.
        let told = output.status.code() == Some(5) || !said.is_empty();
        assert!(told, "{kilobytes} KiB: {:?}", output.status);
    }
}

#[test]
fn a_kernel_that_does_not_end_is_left() {
    for (line, code, words) in [
        (
            "--timeout 0.3 image spin",
            124,
            "at that moment no port had an open exchange",
        ),
        ("--timeout 0.3 image calls-for-ever", 124, "0.3 s"),
        ("--threads 8 image exit-among-spinning", 7, ""),
    ] {
        let started = Instant::now();
        let (got, said, _) = output(line);
        assert_eq!(got, Some(code), "{line}: {said}");
        assert!(said.contains(words), "{line}: {said}");
        assert!(started.elapsed() < LIMIT, "{line}");
    }
}

/// Starts a run that spins and waits until it does.
fn spinning(line: &str) -> (Child, Pid) {
    let mut child = command(line)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let pid = Pid::from_child(&child);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().ends_with("ready")));
    (child, pid)
}

fn ended(mut child: Child) -> ExitStatus {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if started.elapsed() > LIMIT {
            child.kill().unwrap();
            panic!("it did not end");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn interrupts_end_a_run() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let (child, pid) = spinning("image spin");
        kill_process(pid, signal).unwrap();
        assert_eq!(ended(child).code(), Some(code));
    }
}

/// As by `timeout`, which sends its signal to the process and to its group.
#[test]
fn an_interrupt_that_comes_twice_is_one() {
    let path = std::env::temp_dir().join(format!("gpurpc-twice-{}", std::process::id()));
    let in_order = |_| {
        let (child, pid) = spinning(&format!("--report {} image spin", path.display()));
        for _ in 0..2 {
            kill_process(pid, Signal::TERM).unwrap();
            std::thread::sleep(Duration::from_millis(2));
        }
        assert_eq!(ended(child).code(), Some(143));
        std::fs::read_to_string(&path).unwrap().contains("\"end\"")
    };
    // On a busy machine much time may pass between the two.
    let ended_so = (0..10).any(in_order);
    std::fs::remove_file(&path).unwrap();
    assert!(ended_so, "it did not end in order");
}

#[test]
fn a_second_interrupt_ends_it_at_once() {
    let took = |_| {
        let (child, pid) = spinning("image spin");
        kill_process(pid, Signal::INT).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        let started = Instant::now();
        kill_process(pid, Signal::TERM).unwrap();
        let code = ended(child).code();
        assert!(matches!(code, Some(130 | 143)), "{code:?}");
        started.elapsed()
    };
    // A single one takes longer each time; on a busy machine this one may once.
    assert!(
        (0..10)
            .map(took)
            .any(|took| took < Duration::from_millis(400))
    );
}

#[test]
fn a_reader_that_has_gone_away_does_not_hold_the_end_up() {
    let mut child = command("--timeout 1 image calls-for-ever")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut start = [0; 64];
    child.stdout.take().unwrap().read_exact(&mut start).unwrap();
    assert_eq!(ended(child).code(), Some(124));
}

#[test]
fn a_reader_that_does_not_read_does_not_hold_the_end_up() {
    let mut child = command("--timeout 0.5 image calls-for-ever")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let _unread = child.stdout.take();
    assert_eq!(ended(child).code(), Some(124));
}

#[test]
fn a_report_is_written_at_every_end() {
    let path = std::env::temp_dir().join(format!("gpurpc-ends-{}", std::process::id()));
    for (line, code) in [
        ("image exit 4", 4),
        ("image null", 134),
        ("--timeout 0.2 image spin", 124),
    ] {
        let (got, said, _) = output(&format!("--report {} {line}", path.display()));
        assert_eq!(got, Some(code), "{said}");
        let text = std::fs::read_to_string(&path).unwrap();
        let last = text.lines().last().unwrap();
        assert!(last.contains(&format!("\"code\":{code}")), "{text}");
    }
    std::fs::remove_file(path).unwrap();
}
