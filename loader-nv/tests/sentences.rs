//! What the library says on a machine where it cannot run. Needs no GPU and no driver; with a
//! driver the tests say what they left out.

use std::process::{Command, Output};

use loader_nv::{CudaDevice, Options};

fn pingpong(environment: &[(&str, &str)]) -> Output {
    // Examples lie beside the folder of the test executables.
    let mut path = std::env::current_exe().unwrap();
    path.pop();
    path.pop();
    path.push("examples/pingpong");
    Command::new(path)
        .envs(environment.iter().copied())
        .output()
        .unwrap()
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
}

#[test]
fn a_program_without_a_device_ends_with_125() {
    let out = pingpong(&[("CUDA_VISIBLE_DEVICES", "")]);
    let said = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(125), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    let expected = if cuda_shim::available().is_ok() {
        "pingpong: no CUDA device is visible: CUDA_VISIBLE_DEVICES is empty"
    } else {
        "pingpong: no NVIDIA driver: libcuda.so.1 could not be loaded ("
    };
    assert!(said.starts_with(expected), "{said}");
}
