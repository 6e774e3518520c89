//! The device without a GPU: what is said where it cannot run, and what the library does over a
//! pretended driver. With a real driver the tests of its absence say that they were left out.

use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Output};

use loader_core::device::Device as _;
use loader_nv::measure::Direction;
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

/// Set in a process that a test has started over the pretended driver.
const INSIDE: &str = "GPURPC_TEST_INSIDE";

/// Whether this is `test` over the pretended driver. If not, runs it again as such: the driver is
/// looked for where the process's environment says at its start.
fn inside(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let Output { status, stderr, .. } = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .env("LD_LIBRARY_PATH", pretended(test))
        // Set by whoever has threads already, as a test has.
        .env("CUDA_MODULE_LOADING", "EAGER")
        .env_remove("CUDA_VISIBLE_DEVICES")
        .env_remove("FAKE_CUDA")
        .output()
        .unwrap();
    let said = String::from_utf8(stderr).unwrap();
    assert!(status.success(), "{said}");
    assert!(!said.contains("leaked"), "{said}");
    false
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
    let context = loader_nv::measure::empty_context(0).unwrap_err();
    assert_eq!(context.to_string(), sentence);
}

#[test]
fn copies_are_timed_and_everything_is_freed() {
    if !inside("copies_are_timed_and_everything_is_freed") {
        return;
    }
    let device = CudaDevice::open(&Options::default()).unwrap();
    device.load(b".version 7.0\n.target sm_70\n").unwrap();
    let copies = device.copies(10_000).unwrap();
    assert!(copies.check().unwrap());
    for direction in [Direction::ToHost, Direction::ToDevice] {
        let one = copies.time(direction, 1).unwrap();
        assert!(!one.is_zero());
    }
}

#[test]
fn an_empty_context_is_made_and_freed() {
    if inside("an_empty_context_is_made_and_freed") {
        loader_nv::measure::empty_context(0).unwrap();
    }
}
