//! The example programs on the emulated GPU, over both layouts, through the command line: what they
//! print and end with is what they do on the CPU device (`loader-cpu/tests/examples.rs`).
//!
//! They are built by `cargo xtask images`; what is missing is named and left out, or fails with
//! `GPURPC_REQUIRE_IMAGES=1`.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use object::{Object as _, ObjectSegment as _, ObjectSymbol as _};

/// Two wavefronts in each of four blocks.
const GRID: [&str; 4] = ["--blocks", "4", "--threads", "64"];
const THREADS: usize = 256;

struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

/// Runs `test` with the image of `name` in both layouts.
fn both(name: &str, test: impl Fn(&Path)) {
    let target = std::env::var_os("GPURPC_IMAGES").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/images"),
        PathBuf::from,
    );
    let folder = target.join("amdgcn-gfx1100");
    for image in [
        folder.join(format!("{name}.elf")),
        folder.join(format!("compact/{name}.elf")),
    ] {
        let missing = format!(
            "there is no {} (`cargo xtask images` builds it)",
            image.display()
        );
        if image.exists() {
            test(&image);
        } else if std::env::var_os("GPURPC_REQUIRE_IMAGES").is_some_and(|value| value == "1") {
            panic!("{missing}");
        } else {
            // Past the capture of the output of tests that pass.
            let thread = std::thread::current();
            let test = thread.name().unwrap_or("a test");
            let _ = writeln!(std::io::stderr(), "{test} left out: {missing}");
        }
    }
}

fn run(options: &[&str], image: &Path, arguments: &[&str]) -> Ran {
    // An image of another day may wait for ever for an answer it would understand.
    let limit: &[&str] = if options.contains(&"--timeout") {
        &[]
    } else {
        &["--timeout", "300"]
    };
    let output = Command::new(env!("CARGO_BIN_EXE_loader-amd"))
        .args(["--device", "emu"])
        .args(options)
        .args(limit)
        .arg(image)
        .args(arguments)
        .env("FRANCE", "Paris")
        .env("GPURPC_EMU_QUIET", "1")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Runs it on the grid and expects nothing but this code.
fn gives(code: i32, image: &Path, arguments: &[&str]) {
    let ran = run(&GRID, image, arguments);
    let image = image.display();
    assert_eq!(ran.code, Some(code), "{image}: {}", ran.stderr);
    assert_eq!(ran.stderr, "", "{image}");
}

#[test]
fn hello_prints_a_line_for_each_thread_and_its_arguments() {
    both("hello", |hello| {
        let ran = run(&GRID, hello, &["a", "b"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let mut lines: Vec<_> = ran.stdout.lines().map(str::to_owned).collect();
        let mut expected: Vec<_> = (0..THREADS)
            .map(|n| format!("hello from block {} thread {}", n / 64, n % 64))
            .chain(["arg 1: a".to_owned(), "arg 2: b".to_owned()])
            .collect();
        lines.sort();
        expected.sort();
        assert_eq!(lines, expected);
    });
}

#[test]
fn hello_in_three_dimensions() {
    both("hello", |hello| {
        let options = "--blocks 2 --blocks-y 3 --threads 5 --threads-y 3 --threads-z 2";
        let options: Vec<_> = options.split(' ').collect();
        let ran = run(&options, hello, &[]);
        let mut lines: Vec<_> = ran.stdout.lines().collect();
        lines.sort_unstable();
        lines.dedup();
        assert_eq!((ran.code, lines.len()), (Some(0), 6 * 30), "{}", ran.stderr);
    });
}

#[test]
fn args_are_passed() {
    both("args", |args| {
        let ran = run(&GRID, args, &["1", "2", "3"]);
        assert_eq!(ran.code, Some(4), "{}", ran.stderr);
        for line in ["argc = 4", "argv[1] = 1", "argv[3] = 3", "FRANCE = Paris"] {
            let count = ran.stdout.lines().filter(|own| *own == line).count();
            assert_eq!(count, THREADS, "{line}");
        }
    });
}

#[test]
fn increment_diverge_and_stream_come_back_right() {
    both("increment", |increment| gives(0, increment, &["50"]));
    both("diverge", |diverge| gives(0, diverge, &["20"]));
    both("stream", |stream| gives(0, stream, &["300"]));
}

#[test]
fn exit_gives_its_code() {
    both("exit", |exit| gives(7, exit, &["7"]));
}

#[test]
fn panic_says_where_and_gives_101() {
    both("panic", |panic| {
        let ran = run(&GRID, panic, &[]);
        assert_eq!(ran.code, Some(101), "{}", ran.stderr);
        for words in [
            "examples/panic/src/lib.rs:",
            "index out of bounds: the len is 3",
        ] {
            assert!(ran.stderr.contains(words), "{}", ran.stderr);
        }
    });
}

#[test]
fn unknown_is_told() {
    both("unknown", |unknown| {
        let ran = run(&GRID, unknown, &[]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(ran.stdout.contains("the host has no handler"));
        assert_eq!(ran.stderr.lines().count(), 1, "once per opcode");
    });
}

#[test]
fn resources_are_printed() {
    both("hello", |hello| {
        let ran = run(
            &["--print-resource-usage", "--stack-size", "40k"],
            hello,
            &[],
        );
        let start = ran.stderr.lines().find(|line| line.contains("_start: "));
        let start = start.expect("a line for _start");
        assert!(
            start.contains("(40960 given)") && start.contains("32 lanes"),
            "{start}"
        );
    });
}

#[test]
fn time_outs_end_a_run() {
    both("increment", |increment| {
        let ran = run(&["--timeout", "0.3"], increment, &["100000000"]);
        assert_eq!(ran.code, Some(124), "{}", ran.stderr);
    });
}

/// A file with these contents.
fn written(name: &str, bytes: &[u8]) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.elf"));
    std::fs::write(&path, bytes).unwrap();
    path
}

/// `bytes` with each `from` replaced by `to`.
fn replaced(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let places: Vec<_> = (0..bytes.len() - from.len())
        .filter(|&at| bytes[at..].starts_with(from))
        .collect();
    assert!(!places.is_empty());
    for at in places {
        bytes[at..at + from.len()].copy_from_slice(to);
    }
    bytes
}

fn refused(image: &Path) -> String {
    let ran = run(&[], image, &[]);
    assert_eq!(ran.code, Some(125), "{}", ran.stderr);
    assert_eq!(
        (ran.stdout.as_str(), ran.stderr.lines().count()),
        ("", 1),
        "{}",
        ran.stderr
    );
    ran.stderr
}

#[test]
fn images_that_cannot_run_get_one_sentence_and_125() {
    both("hello", |hello| {
        let bytes = std::fs::read(hello).unwrap();
        let other = refused(&written("other", &replaced(&bytes, b"gfx1100", b"gfx1030")));
        assert!(
            other.contains("built for gfx1030 and does not run on") && other.contains("gfx1100"),
            "{other}"
        );
        let startless = replaced(&bytes, b"\0_start.kd\0", b"\0_st_rt.kd\0");
        let said = refused(&written("startless", &startless));
        assert!(said.contains("no kernel _start"), "{said}");
        for length in [5, 64, 500, 4096, bytes.len() / 2, bytes.len() - 1] {
            let said = refused(&written("cut", &bytes[..length]));
            assert!(said.contains("cut short"), "{length}: {said}");
        }
    });
}

/// The image with this code as its `_begin`, which has 256 bytes of room.
fn beginning(image: &Path, code: &[u32]) -> Vec<u8> {
    let mut bytes = std::fs::read(image).unwrap();
    let at = {
        let file = object::File::parse(&*bytes).unwrap();
        let begin = file
            .dynamic_symbols()
            .find(|symbol| symbol.name() == Ok("_begin"));
        let address = begin.unwrap().address();
        let segment = file.segments().find(|segment| {
            (segment.address()..segment.address() + segment.size()).contains(&address)
        });
        let segment = segment.unwrap();
        (segment.file_range().0 + address - segment.address()) as usize
    };
    for (index, word) in code.iter().enumerate() {
        bytes[at + 4 * index..][..4].copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

#[test]
fn faults_are_named_and_give_134() {
    for (name, code, words) in [
        // s_trap 2
        ("trap", &[0xBF90_0002_u32][..], "trap"),
        // v_mov_b32 v0, 16; v_mov_b32 v1, 0; global_load_b32 v2, v[0:1], off; s_endpgm
        (
            "fault",
            &[
                0x7E00_0290,
                0x7E02_0280,
                0xDC52_0000,
                0x027C_0000,
                0xBFB0_0000,
            ],
            "memory fault at 0x10",
        ),
    ] {
        both("hello", |hello| {
            let ran = run(&[], &written(name, &beginning(hello, code)), &[]);
            assert_eq!(ran.code, Some(134), "{name}: {}", ran.stderr);
            assert!(ran.stderr.contains(words), "{name}: {}", ran.stderr);
        });
    }
}

#[test]
fn diagnosis_shows_the_emulated_gpu() {
    let output = Command::new(env!("CARGO_BIN_EXE_loader-amd"))
        .args(["--diagnose", "--device", "emu"])
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0));
    for words in [
        "GPU 0: ",
        "targets: amdgcn-amd-amdhsa--gfx1100",
        "fine-grained",
        "kernarg",
    ] {
        assert!(said.contains(words), "{said}");
    }
}
