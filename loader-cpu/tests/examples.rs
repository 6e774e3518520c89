//! The example programs on the CPU device, over both layouts, through the command line.
//!
//! They are built by `cargo xtask images`; what is missing is named and left out, or fails with
//! `GPURPC_REQUIRE_IMAGES=1`.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The loader, on the image of an example.
struct Example {
    image: PathBuf,
    options: Vec<&'static str>,
    arguments: Vec<&'static str>,
}

struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

fn folder() -> PathBuf {
    let target = std::env::var_os("GPURPC_IMAGES").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/images"),
        PathBuf::from,
    );
    target.join("x86_64")
}

/// Runs `test` with the image of `name` in both layouts.
fn both(name: &str, test: impl Fn(Example)) {
    for image in [
        folder().join(format!("{name}.so")),
        folder().join(format!("compact/{name}.so")),
    ] {
        if image.exists() {
            test(Example {
                image,
                options: Vec::new(),
                arguments: Vec::new(),
            });
        } else if std::env::var_os("GPURPC_REQUIRE_IMAGES").is_some_and(|value| value == "1") {
            panic!(
                "there is no {}: `cargo xtask images` builds it",
                image.display()
            );
        } else {
            left_out(&format!(
                "there is no {} (`cargo xtask images` builds it)",
                image.display()
            ));
        }
    }
}

impl Example {
    fn options(mut self, options: &'static str) -> Self {
        self.options.extend(options.split_whitespace());
        self
    }

    fn arguments(mut self, arguments: &'static str) -> Self {
        self.arguments.extend(arguments.split_whitespace());
        self
    }

    fn run(&self) -> Ran {
        let output = loader()
            .args(&self.options)
            .arg(&self.image)
            .args(&self.arguments)
            .env("FRANCE", "Paris")
            .output()
            .unwrap();
        ran(&output)
    }

    /// Runs it and expects nothing but this code.
    fn gives(&self, code: i32) {
        let ran = self.run();
        assert_eq!(
            ran.code,
            Some(code),
            "{}: {}",
            self.image.display(),
            ran.stderr
        );
        assert_eq!(ran.stderr, "", "{}", self.image.display());
    }
}

fn loader() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_loader-cpu"));
    // An image of another day may wait for ever for an answer it would understand.
    command.args(["--timeout", "120"]).stdin(Stdio::null());
    command
}

fn ran(output: &Output) -> Ran {
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

#[test]
fn hello_prints_a_line_for_each_thread_and_its_arguments() {
    both("hello", |hello| {
        let ran = hello
            .options("--blocks 40 --threads 50")
            .arguments("a --b")
            .run();
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let mut lines: Vec<_> = ran.stdout.lines().map(str::to_owned).collect();
        let mut expected: Vec<_> = (0..40)
            .flat_map(|block| {
                (0..50).map(move |thread| format!("hello from block {block} thread {thread}"))
            })
            .collect();
        expected.extend(["arg 1: a".to_owned(), "arg 2: --b".to_owned()]);
        lines.sort();
        expected.sort();
        assert_eq!(lines, expected);
    });
}

#[test]
fn args_are_passed() {
    both("args", |args| {
        let ran = args.arguments("1 2 3").run();
        assert_eq!(ran.code, Some(4));
        for line in ["argc = 4", "argv[1] = 1", "argv[3] = 3", "FRANCE = Paris"] {
            assert!(ran.stdout.lines().any(|own| own == line), "{}", ran.stdout);
        }
    });
}

#[test]
fn increment_counts_right() {
    both("increment", |increment| {
        increment.arguments("100000").gives(0);
    });
    both("increment", |increment| {
        increment
            .options("--blocks 8 --threads 16")
            .arguments("2000")
            .gives(0);
    });
    both("increment", |increment| {
        increment
            .options("--blocks 8 --threads 16 --ports 3")
            .arguments("200")
            .gives(0);
    });
}

#[test]
fn diverge_and_stream_come_back_right() {
    for (name, argument) in [("diverge", "100"), ("stream", "300")] {
        both(name, |example| {
            example
                .options("--blocks 4 --threads 8")
                .arguments(argument)
                .gives(0);
        });
    }
}

/// Messages below and above the 32 KiB from which they travel by reference, there and back.
#[test]
fn long_streams_come_back_right() {
    both("stream", |stream| {
        stream
            .options("--blocks 2 --threads 2 --server-threads 2")
            .arguments("150000")
            .gives(0);
    });
    both("stream", |stream| {
        let ran = stream.options("--heap-size 100k").arguments("60000").run();
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        assert!(ran.stderr.contains("no memory for two messages of 60000"));
    });
}

#[test]
fn every_way_to_wait_works() {
    for options in [
        "--poll spin --server-threads 1",
        "--poll adaptive --server-threads 2",
        "--poll sleep --server-threads 3",
    ] {
        both("increment", |increment| {
            increment.options(options).arguments("100").gives(0);
        });
    }
}

#[test]
fn exit_gives_its_code() {
    both("exit", |exit| exit.arguments("42").gives(42));
    both("exit", |exit| {
        exit.options("--blocks 16 --threads 16")
            .arguments("7")
            .gives(7);
    });
}

#[test]
fn panic_says_where_and_gives_101() {
    both("panic", |panic| {
        let ran = panic.run();
        assert_eq!(ran.code, Some(101));
        let file = Path::new("examples")
            .join("panic")
            .join("src")
            .join("lib.rs");
        let place = format!("{}:", file.display());
        assert!(ran.stderr.contains(&place), "{}", ran.stderr);
        assert!(
            ran.stderr.contains("index out of bounds: the len is"),
            "{}",
            ran.stderr
        );
    });
}

#[test]
fn unknown_is_told() {
    both("unknown", |unknown| {
        let ran = unknown.run();
        assert_eq!(ran.code, Some(0));
        assert!(
            ran.stdout.contains("the host has no handler"),
            "{}",
            ran.stdout
        );
        assert_eq!(
            ran.stderr.lines().count(),
            1,
            "once per opcode: {}",
            ran.stderr
        );
    });
}

#[test]
fn an_image_comes_from_standard_input_too() {
    both("exit", |exit| {
        let image = std::fs::File::open(&exit.image).unwrap();
        let output = loader().args(["-", "9"]).stdin(image).output().unwrap();
        assert_eq!(output.status.code(), Some(9));
    });
}

#[test]
fn a_cut_image_is_refused() {
    both("hello", |hello| {
        let bytes = std::fs::read(&hello.image).unwrap();
        let name = format!("gpurpc-cut-{}.so", std::process::id());
        let path = std::env::temp_dir().join(name);
        for length in [1, 40, 64, 4096, bytes.len() / 2, bytes.len() - 1] {
            std::fs::write(&path, &bytes[..length]).unwrap();
            refused(&[path.to_str().unwrap()]);
        }
        std::fs::remove_file(&path).unwrap();
    });
}

#[test]
fn grids_that_no_device_takes_are_refused() {
    both("hello", |hello| {
        let image = hello.image.to_str().unwrap();
        for options in [
            vec!["--threads", "0"],
            vec!["--threads", "5000"],
            vec!["--threads", "1024", "--threads-y", "2"],
            vec!["--blocks", "4294967295"],
            vec!["--blocks", "4294967296"],
            vec!["--stack-size", "2g"],
            vec!["--device", "1"],
            vec!["--report", "/no/such/folder/report"],
        ] {
            refused(&[&options[..], &[image]].concat());
        }
    });
}

/// One sentence and 125.
fn refused(arguments: &[&str]) -> String {
    let ran = ran(&loader().args(arguments).output().unwrap());
    assert_eq!(ran.code, Some(125), "{arguments:?}: {}", ran.stderr);
    assert_eq!(ran.stdout, "");
    assert_eq!(
        ran.stderr.lines().count(),
        1,
        "{arguments:?}: {}",
        ran.stderr
    );
    assert!(ran.stderr.starts_with("loader-cpu: "), "{}", ran.stderr);
    ran.stderr
}

#[test]
fn what_is_no_image_is_refused() {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    for (arguments, words) in [
        (&["--frob", "image"][..], "--frob"),
        (&["--threads", "0", "image"], "from 1 to"),
        (&[], "IMAGE"),
        (&["/no/such/file"], "No such file"),
        (&["/dev/null"], "is empty"),
        (&["-"], "is empty"),
        (&[env!("CARGO_MANIFEST_DIR")], "is a directory"),
        (&[manifest], "is text"),
        (&[env!("CARGO_BIN_EXE_loader-cpu")], "host program"),
    ] {
        let said = refused(arguments);
        assert!(said.contains(words), "{said} should say {words}");
    }
}

#[test]
fn images_for_other_devices_are_refused() {
    let path = std::env::temp_dir().join(format!("gpurpc-{}.ptx", std::process::id()));
    std::fs::write(&path, ".version 8.0\n.target sm_70\n").unwrap();
    let said = refused(&[path.to_str().unwrap()]);
    std::fs::remove_file(&path).unwrap();
    assert!(
        said.contains("PTX text, which this program does not run: loader-nv does"),
        "{said}"
    );
}

#[test]
fn help_and_version_are_no_errors() {
    for (argument, words) in [
        ("--help", "loader-cpu [OPTIONS] IMAGE [ARGUMENTS]..."),
        (
            "--version",
            concat!("loader-cpu ", env!("CARGO_PKG_VERSION")),
        ),
    ] {
        let ran = ran(&loader().arg(argument).output().unwrap());
        assert_eq!(ran.code, Some(0));
        assert!(ran.stdout.contains(words), "{}", ran.stdout);
        assert_eq!(ran.stderr, "");
    }
}

/// Names the test that is left out, and why: past the capture of the output of tests that pass.
fn left_out(reason: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    let _ = writeln!(std::io::stderr(), "{test} left out: {reason}");
}
