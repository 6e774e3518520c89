//! Start-up of images that a C compiler makes.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The image of the program in C; `None` where there is no compiler.
fn image(test: &str) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/start.c");
    let image = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}.so"));
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-O2", "-nostdlib", "-o"])
        .args([&image, &source])
        .output();
    match built {
        Ok(Output { status, stderr, .. }) => {
            assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
            Some(image)
        }
        Err(reason) => {
            // Past the capture of the output of tests that pass.
            let _ = writeln!(std::io::stderr(), "{test} left out: cc: {reason}");
            None
        }
    }
}

fn run(options: &str, image: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = Command::new(env!("CARGO_BIN_EXE_loader-cpu"))
        .args(options.split_whitespace())
        .arg(image)
        .args(arguments)
        .output()
        .unwrap();
    (status.code(), String::from_utf8_lossy(&stderr).into_owned())
}

#[test]
fn a_program_in_c_starts_and_ends() {
    let Some(image) = image("program") else {
        return;
    };
    let grid = "--blocks 3 --blocks-y 2 --threads 5 --threads-y 4 --threads-z 2";
    let ran = run(grid, &image, &["a", "b"]);
    assert_eq!(ran, (Some(0), String::new()));
    assert_eq!(run(grid, &image, &["c", "b"]).0, Some(2));
}

#[test]
fn a_kernel_runs_by_its_name() {
    let Some(image) = image("plain") else {
        return;
    };
    let ran = run("--kernel plain --blocks 2 --threads 7", &image, &["x"]);
    assert_eq!(ran, (Some(0), String::new()));
    let (code, said) = run("--kernel plain --threads 6", &image, &[]);
    assert_eq!(code, Some(134), "{said}");
    for (kernel, words) in [
        ("__gpurpc_start", "takes the program's arguments"),
        (
            "none",
            "no kernel none: its kernels are __gpurpc_begin, __gpurpc_end, __gpurpc_start, plain",
        ),
        // No function.
        ("order", "no kernel order"),
    ] {
        let (code, said) = run(&format!("--kernel {kernel}"), &image, &[]);
        assert_eq!(code, Some(125), "{said}");
        assert!(said.contains(words), "{said}");
    }
}
