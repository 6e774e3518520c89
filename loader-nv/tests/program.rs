//! The program on the command line, without a GPU: over a pretended driver, and without any.

use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Kernels that the pretended driver has.
const IMAGE: &str = ".version 7.0\n.target sm_70\n.visible .entry _begin()\n.visible .entry _start()\n\
                     .visible .entry _end()\n";

fn folder(test: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("program_{test}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let mut driver = std::env::current_exe().unwrap();
    driver.set_file_name("libfake_driver.so");
    symlink(driver, folder.join("libcuda.so.1")).unwrap();
    std::fs::File::create(folder.join("image.ptx"))
        .unwrap()
        .write_all(IMAGE.as_bytes())
        .unwrap();
    folder
}

fn loader(folder: &Path, arguments: &[&str], trouble: &str) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = Command::new(env!("CARGO_BIN_EXE_loader-nv"))
        .current_dir(folder)
        .args(arguments)
        .env("LD_LIBRARY_PATH", folder)
        .env("FAKE_CUDA", trouble)
        .env_remove("CUDA_VISIBLE_DEVICES")
        .output()
        .unwrap();
    (status.code(), String::from_utf8(stderr).unwrap())
}

#[test]
fn an_image_runs_and_its_value_is_the_code() {
    let folder = folder("runs");
    // The pretended kernel returns how many arguments it has.
    assert_eq!(
        loader(&folder, &["image.ptx", "1", "2", "3"], ""),
        (Some(4), String::new())
    );
    let grid = ["--blocks", "132", "--threads", "64", "image.ptx"];
    assert_eq!(loader(&folder, &grid, ""), (Some(1), String::new()));
}

#[test]
fn trouble_on_the_device_has_its_code() {
    let folder = folder("trouble");
    let (code, said) = loader(&folder, &["image.ptx"], "trap");
    assert_eq!(code, Some(134), "{said}");
    assert!(
        said.contains("CUDA error 719 (CUDA_ERROR_LAUNCH_FAILED"),
        "{said}"
    );
    let (code, said) = loader(&folder, &["--timeout", "0.2", "image.ptx"], "hang");
    assert_eq!(code, Some(124), "{said}");
}

#[test]
fn what_cannot_run_gets_one_sentence_and_125() {
    let folder = folder("refused");
    std::fs::write(folder.join("broken.ptx"), ".version 7.0\n.entry _start").unwrap();
    std::fs::write(
        folder.join("kernelless.ptx"),
        ".version 7.0\n.target sm_70\n",
    )
    .unwrap();
    for (arguments, trouble, sentence) in [
        (
            &["broken.ptx"][..],
            "",
            "the driver's compiler refused the PTX: ptxas application",
        ),
        (&["kernelless.ptx"], "", "_start"),
        (
            &["--threads", "5000", "image.ptx"],
            "",
            "--threads 5000 is more than the 1024",
        ),
        (
            &["--threads", "1000", "image.ptx"],
            "",
            "--threads 1000 is more than the 768 that _start",
        ),
        (
            &["--blocks", "4294967295", "image.ptx"],
            "",
            "--blocks 4294967295 is more than the 2147",
        ),
        (
            &["--stack-size", "512k", "image.ptx"],
            "",
            "--stack-size 524288 is more than the 261120",
        ),
        (
            &["--device", "2", "image.ptx"],
            "",
            "there is no CUDA device 2: the driver shows 2",
        ),
        (&["image.ptx"], "too-old", "could not start: CUDA error 803"),
    ] {
        let (code, said) = loader(&folder, arguments, trouble);
        assert_eq!(code, Some(125), "{arguments:?}: {said}");
        assert!(
            said.starts_with("loader-nv: ") && said.contains(sentence),
            "{sentence}: {said}"
        );
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

#[test]
fn without_a_driver_the_program_starts_and_says_so() {
    if cuda_shim::available().is_ok() {
        left_out("this machine has an NVIDIA driver");
        return;
    }
    let folder = folder("no_driver");
    std::fs::remove_file(folder.join("libcuda.so.1")).unwrap();
    let (code, said) = loader(&folder, &["image.ptx"], "");
    assert_eq!(code, Some(125), "{said}");
    assert!(
        said.starts_with("loader-nv: no NVIDIA driver: libcuda.so.1 could not"),
        "{said}"
    );
    assert_eq!(said.lines().count(), 1, "{said}");
}

/// A program that needs the driver's library to start would not start here at all.
#[test]
fn the_program_does_not_need_the_drivers_library() {
    let bytes = std::fs::read(env!("CARGO_BIN_EXE_loader-nv")).unwrap();
    let ldd = Command::new("ldd")
        .arg(env!("CARGO_BIN_EXE_loader-nv"))
        .output();
    match ldd {
        Ok(out) => assert!(!String::from_utf8_lossy(&out.stdout).contains("libcuda")),
        Err(reason) => left_out(&format!("ldd: {reason}")),
    }
    assert!(
        bytes.windows(12).any(|text| text == b"libcuda.so.1"),
        "it is loaded by name instead"
    );
}

/// Names the test that is left out, and why: past the capture of the output of tests that pass.
fn left_out(reason: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    let _ = writeln!(std::io::stderr(), "{test} left out: {reason}");
}

#[test]
fn every_way_not_to_start_has_its_sentence() {
    let folder = folder("no_start");
    for (arguments, trouble, sentence) in [
        (
            &["image.ptx"][..],
            "too-old",
            "could not start: CUDA error 803 (CUDA_ERROR_SYSTEM",
        ),
        (
            &["image.ptx"],
            "newer-code",
            "812 (unrecognized error code: an error of a later",
        ),
        (
            &["--device", "2", "image.ptx"],
            "",
            "there is no CUDA device 2: the driver shows 2, counted",
        ),
    ] {
        let (code, said) = loader(&folder, arguments, trouble);
        assert_eq!(code, Some(125), "{said}");
        assert!(
            said.contains(sentence) && said.lines().count() == 1,
            "{sentence}: {said}"
        );
    }
    let Output { status, stderr, .. } = Command::new(env!("CARGO_BIN_EXE_loader-nv"))
        .current_dir(&folder)
        .arg("image.ptx")
        .env("LD_LIBRARY_PATH", &folder)
        .env("CUDA_VISIBLE_DEVICES", "")
        .output()
        .unwrap();
    let said = String::from_utf8(stderr).unwrap();
    assert_eq!(status.code(), Some(125), "{said}");
    assert!(said.contains("CUDA_VISIBLE_DEVICES is empty"), "{said}");
}
