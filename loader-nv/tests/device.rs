//! The device without a GPU: what is said where it cannot run, and a whole run over a pretended
//! driver. With a real driver the tests of its absence say that they were left out.

use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Output};

use loader_nv::{CudaDevice, Options};

/// The folder of Cargo's outputs, next to which the test executables lie.
fn outputs() -> PathBuf {
    let mut path = std::env::current_exe().unwrap();
    path.pop();
    path
}

/// A folder with the pretended driver under the real one's name, each test its own.
fn pretended(test: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    symlink(
        outputs().join("libfake_driver.so"),
        folder.join("libcuda.so.1"),
    )
    .unwrap();
    folder
}

/// Runs the example; `None` where it was not built (`cargo test --test device` builds none).
fn pingpong(arguments: &[&str], environment: &[(&str, &str)]) -> Option<Output> {
    let path = outputs().join("../examples/pingpong");
    if !path.exists() {
        eprintln!("left out: examples/pingpong is not built");
        return None;
    }
    let mut command = Command::new(path);
    command
        .args(arguments)
        .env_remove("CUDA_VISIBLE_DEVICES")
        .env_remove("FAKE_CUDA");
    Some(command.envs(environment.iter().copied()).output().unwrap())
}

fn stderr(out: &Output) -> String {
    String::from_utf8(out.stderr.clone()).unwrap()
}

#[test]
fn without_a_driver_one_sentence_says_so() {
    if cuda_shim::available().is_ok() {
        eprintln!("left out: this machine has an NVIDIA driver");
        return;
    }
    let Err(reason) = CudaDevice::open(&Options::default()) else {
        panic!("no driver, no device")
    };
    let sentence = reason.to_string();
    assert!(sentence.starts_with("no NVIDIA driver: libcuda.so.1 could not be loaded ("));
    assert!(!sentence.contains('\n'), "{sentence}");
    let Some(out) = pingpong(&[], &[]) else {
        return;
    };
    assert_eq!(out.status.code(), Some(125));
    assert_eq!(stderr(&out), format!("pingpong: {sentence}\n"));
}

#[test]
fn a_run_over_the_pretended_driver_frees_everything() {
    let folder = pretended("whole_run");
    let Some(out) = pingpong(&["100"], &[("LD_LIBRARY_PATH", folder.to_str().unwrap())]) else {
        return;
    };
    assert_eq!(stderr(&out), "");
    let said = String::from_utf8(out.stdout).unwrap();
    assert!(
        said.starts_with("pingpong: median ") && said.ends_with(" of 100\n"),
        "{said}"
    );
    assert_eq!(out.status.code(), Some(0));
}

#[test]
fn every_way_not_to_start_has_its_sentence() {
    let folder = pretended("no_start");
    for (arguments, variable, value, sentence) in [
        (
            &["9"][..],
            "CUDA_VISIBLE_DEVICES",
            "",
            "CUDA_VISIBLE_DEVICES is empty",
        ),
        (
            &["9"],
            "FAKE_CUDA",
            "too-old",
            "could not start: CUDA error 803 (CUDA_ERROR_SYSTEM",
        ),
        (
            &["9"],
            "FAKE_CUDA",
            "newer-code",
            "812 (unrecognized error code: an error of a later",
        ),
        (
            &["9", "2"],
            "FAKE_CUDA",
            "",
            "there is no CUDA device 2: the driver shows 2, counted",
        ),
        (
            &["9"],
            "FAKE_CUDA",
            "trap",
            "the program faulted on the device: CUDA error 719 (CUDA_",
        ),
    ] {
        let environment = [
            ("LD_LIBRARY_PATH", folder.to_str().unwrap()),
            (variable, value),
        ];
        let Some(out) = pingpong(arguments, &environment) else {
            return;
        };
        let said = stderr(&out);
        assert_eq!(out.status.code(), Some(125), "{said}");
        assert!(
            said.contains(sentence) && said.lines().count() == 1,
            "{sentence}: {said}"
        );
    }
}
