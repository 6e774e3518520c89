//! Start-up of images that a C compiler makes.

use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The image of the program in C; `None` where there is no compiler.
fn image(test: &str) -> Option<PathBuf> {
    image_of(test, "start.c", &[])
}

fn image_of(test: &str, source: &str, defines: &[&str]) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = folder.join("tests/programs").join(source);
    let image = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}.so"));
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-O2", "-nostdlib", "-ffreestanding"])
        .arg("-I")
        .arg(folder.join("../include"))
        .args(defines)
        .arg("-o")
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

/// What the program wants to be run with.
const GRID: &str = "--blocks 3 --blocks-y 2 --threads 5 --threads-y 4 --threads-z 2";

#[test]
fn a_program_in_c_starts_and_ends() {
    let Some(image) = image("program") else {
        return;
    };
    let ran = run(GRID, &image, &["a", "b"]);
    assert_eq!(ran, (Some(0), String::new()));
    assert_eq!(run(GRID, &image, &["c", "b"]).0, Some(2));
}

#[test]
fn a_library_that_is_no_program_is_told_how_to_become_one() {
    let Some(library) = image_of("library", "library.c", &[]) else {
        return;
    };
    let (code, said) = run("", &library, &[]);
    assert_eq!(code, Some(125), "{said}");
    assert!(
        said.contains("no kernel _start, which is where a program starts: make it with entry!"),
        "{said}"
    );
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

/// Whatever is given to be written, nothing is run and nothing is lost.
#[test]
fn files_that_would_be_lost_are_not_written() {
    let Some(image) = image("outputs") else {
        return;
    };
    let bytes = fs::read(&image).unwrap();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("outputs");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir(&folder).unwrap();
    let file = |name: &str| folder.join(name).display().to_string();
    fs::write(file("README.md"), "mine").unwrap();
    symlink(&image, file("soft")).unwrap();
    fs::hard_link(&image, file("hard")).unwrap();
    fs::create_dir(file("folder")).unwrap();
    let made = Command::new("mkfifo").arg(file("fifo")).status();
    assert!(made.unwrap().success());
    let own = image.display().to_string();
    let before = names(&folder);
    for (options, words) in [
        (
            format!("--stats {}", file("README.md")),
            "no statistics file",
        ),
        (format!("--stats {own}"), "is the image"),
        (format!("--stats {}", file("hard")), "is the image"),
        (format!("--stats {}", file("folder")), "a directory"),
        (format!("--stats {}", file("fifo")), "no regular file"),
        ("--stats /dev/null".to_owned(), "no regular file"),
        (format!("--report {own}"), "is the image"),
        (format!("--report {}", file("soft")), "is the image"),
        (format!("--report {}", file("hard")), "is the image"),
        (
            format!("--report {0} --stats {0}", file("new")),
            "are one file",
        ),
        (
            format!("--report {} --stats {}", file("new"), file("README.md")),
            "no statistics file",
        ),
    ] {
        let (code, said) = run(&options, &image, &["a", "b"]);
        assert_eq!(code, Some(125), "{options}: {said}");
        assert!(said.contains(words), "{options}: {said}");
        assert_eq!(said.lines().count(), 1, "{options}: {said}");
        assert_eq!(names(&folder), before, "{options}");
    }
    // As standard input it is the same file.
    let ran = Command::new(env!("CARGO_BIN_EXE_loader-cpu"))
        .args(["--report", &own, "-"])
        .stdin(fs::File::open(&image).unwrap())
        .output()
        .unwrap();
    assert_eq!(ran.status.code(), Some(125));
    assert_eq!(fs::read(&image).unwrap(), bytes);
    assert_eq!(fs::read(file("README.md")).unwrap(), b"mine");
    // What is free is written, and what a loader has left is replaced.
    let stats = file("stats");
    let options = format!(
        "{GRID} --report {} --keep-stats --stats {stats}",
        file("README.md")
    );
    for _ in 0..2 {
        assert_eq!(run(&options, &image, &["a", "b"]), (Some(0), String::new()));
        assert!(fs::read(&stats).unwrap().starts_with(b"gpurpcst"));
        assert!(fs::read(file("README.md")).unwrap().ends_with(b"}\n"));
    }
}

/// What is in a folder.
fn names(folder: &Path) -> Vec<OsString> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    names
}

/// Clients as different releases of LLVM's libc have them.
#[test]
fn clients_of_llvm_are_told_apart() {
    for (test, defines, options, code, words) in [
        ("client_22", &[][..], "--ports 3", 0, ""),
        ("client_19", &["-DOLD"], "--ports 3", 0, ""),
        (
            "client_many",
            &[],
            "--ports 4096",
            125,
            "--ports 4096 is more than the 4095 that layout Llvm22",
        ),
        (
            "client_null",
            &["-DNULL_OLD"],
            "",
            125,
            "__llvm_libc_rpc_client is null",
        ),
        (
            "client_unknown",
            &["-DUNKNOWN"],
            "",
            125,
            "__llvm_rpc_client has 800 bytes, and this loader knows 552 (LLVM 20 to 22) and 2096",
        ),
    ] {
        let Some(image) = image_of(test, "client.c", defines) else {
            return;
        };
        let (ended, said) = run(&format!("{options} --threads 9"), &image, &[]);
        assert_eq!(ended, Some(code), "{test}: {said}");
        assert!(said.contains(words), "{test}: {said}");
        assert!(said.lines().count() <= 1, "{test}: {said}");
    }
}
