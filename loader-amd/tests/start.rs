//! Start-up of images that clang makes of C, on the emulated GPU.

#![allow(clippy::pedantic, reason = "tests")]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Builds `program` with this option; `None` where there is no clang for the GPU.
fn clang(program: &str, level: &str) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let image = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{program}{level}.elf"));
    let folder = std::env::var_os("LLVM_BIN").unwrap_or_else(|| "/usr/lib/llvm-22/bin".into());
    let built = Command::new(Path::new(&folder).join("clang"))
        .args(["--target=amdgcn-amd-amdhsa", "-mcpu=gfx1100", "-nogpulib"])
        .args(["-ffreestanding", "-nostdlib", level, "-o"])
        .args([&image, &source.join(format!("{program}.c"))])
        .output();
    if let Ok(Output { status, stderr, .. }) = built {
        assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
        return Some(image);
    }
    let said = "left out: there is no clang of LLVM 22";
    // Past the capture of the output of tests that pass.
    let _ = writeln!(std::io::stderr(), "{program}{level} {said}");
    let required = std::env::var_os("GPURPC_REQUIRE_IMAGES").is_some_and(|value| value == "1");
    assert!(!required, "{said}");
    None
}

fn run(options: &str, image: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = Command::new(env!("CARGO_BIN_EXE_loader-amd"))
        .args(["--device", "emu", "--timeout", "300"])
        .args(options.split_whitespace())
        .arg(image)
        .args(arguments)
        .env("GPURPC_EMU_QUIET", "1")
        .output()
        .unwrap();
    (status.code(), String::from_utf8_lossy(&stderr).into_owned())
}

#[test]
fn start_up_is_llvms() {
    for level in ["-O0", "-O2"] {
        let Some(image) = clang("start", level) else {
            continue;
        };
        let grid = "--blocks 3 --blocks-y 2 --threads 5 --threads-y 4 --threads-z 2";
        let ran = run(grid, &image, &["a", "b"]);
        assert_eq!(ran, (Some(0), String::new()), "{level}");
    }
}

#[test]
fn a_kernel_runs_by_its_name() {
    let Some(image) = clang("start", "-O1") else {
        return;
    };
    let ran = run("--kernel plain --blocks 2 --threads 7", &image, &[]);
    assert_eq!(ran, (Some(0), String::new()));
    let (code, said) = run("--kernel plain --threads 6", &image, &[]);
    assert_eq!(code, Some(134), "{said}");
    for (kernel, words) in [
        ("with_argument", "kernel with_argument takes an argument"),
        ("_start", "kernel _start takes 4 arguments"),
        (
            "none",
            "no kernel none: its kernels are _begin, _end, _start,",
        ),
    ] {
        let (code, said) = run(&format!("--kernel {kernel}"), &image, &[]);
        assert_eq!(code, Some(125), "{said}");
        assert!(said.contains(words), "{said}");
    }
}

/// A program as it was before there was a client object: one port for all threads.
#[test]
fn a_start_with_a_mailbox_is_served() {
    let lines = |n: usize| "a thread\n".repeat(n);
    let long = "0123456789abcdef".repeat(8);
    for option in ["-DSEVEN", "-DSIX"] {
        let Some(image) = clang("mailbox", option) else {
            return;
        };
        let ran = run("", &image, &["one", "", &long]);
        let text = format!("{}one\n\n{long}\n", lines(1));
        assert_eq!(ran, (Some(4), text), "{option}");
        let (code, text) = run("--blocks 3 --threads 40", &image, &["x"]);
        assert_eq!(code, Some(2), "{text}");
        let text = text.replacen("x\n", "", 1);
        assert_eq!(text, lines(120), "{option}");
        let ran = run("", &image, &["exit", "7"]);
        assert_eq!(ran, (Some(7), format!("{}exit\n7\n", lines(1))), "{option}");
    }
}
