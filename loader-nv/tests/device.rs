//! The device without a GPU: what is said where it cannot run, and what the library does over a
//! pretended driver. With a real driver the tests of its absence say that they were left out.

use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::Arc;

use loader_core::device::Device as _;
use loader_nv::measure::Direction;
use loader_nv::{CudaDevice, Options};
use rpc_server::{DeviceMemory, MemoryError, Staging};

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

/// Set for this program when it runs itself over the pretended driver.
const PRETENDED: &str = "GPURPC_TEST_OVER_THE_PRETENDED_DRIVER";

#[test]
fn staging_is_lent_copied_and_given_back() {
    if std::env::var_os(PRETENDED).is_some() {
        return stage();
    }
    let folder = pretended("staging");
    let out = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "staging_is_lent_copied_and_given_back",
            "--nocapture",
        ])
        .env("LD_LIBRARY_PATH", folder)
        .env(PRETENDED, "1")
        .env("CUDA_MODULE_LOADING", "EAGER")
        .env_remove("CUDA_VISIBLE_DEVICES")
        .env_remove("FAKE_CUDA")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success() && !said.contains("leaked"), "{said}");
}

/// Asks until the copy is done, and how often that was in vain.
fn until_done(staging: &mut dyn Staging) -> u32 {
    let mut asked = 0;
    while !staging.is_done().unwrap() {
        assert!(staging.bytes().is_empty() && staging.bytes_mut().is_empty());
        asked += 1;
    }
    asked
}

/// Copies as a server does; the pretended driver's are done when they have been asked for thrice.
fn stage() {
    let device = Arc::new(CudaDevice::open(&Options::default()).unwrap());
    let lend = || Arc::clone(&device).staging();
    assert!(lend().is_none(), "none is reserved");
    device.reserve_staging().unwrap();
    let size = 5 << 20;
    let address = device.allocate_private(size).unwrap();
    let content: Vec<u8> = (0..size).map(|i| (i / 3) as u8).collect();
    device.copy_to_device(&content, address).unwrap();
    let mut back = vec![0; size];
    device.copy_to_host(address, &mut back).unwrap();
    assert!(back == content);

    let mut all: Vec<_> = std::iter::from_fn(lend).collect();
    assert!(all.len() > 1 && lend().is_none());
    let mut staging = all.pop().unwrap();
    let room = staging.size();
    assert!(staging.bytes().is_empty() && staging.bytes_mut().len() == room);
    staging.start_to_host(address + 100, room).unwrap();
    assert!(staging.start_to_host(address, 1).is_err(), "one at a time");
    assert_eq!(until_done(&mut *staging), 2);
    assert!(staging.bytes() == &content[100..100 + room]);
    staging.bytes_mut()[..3].copy_from_slice(b"new");
    staging.start_to_device(3, address).unwrap();
    until_done(&mut *staging);
    assert!(staging.bytes().is_empty());
    device.copy_to_host(address, &mut back[..4]).unwrap();
    assert_eq!(&back[..4], [b'n', b'e', b'w', content[3]]);

    // What may not be copied, or is too much.
    for (address, length) in [
        (8, 4),
        (address, size + 1),
        (u64::MAX - 3, 4),
        (address - 1, 4),
    ] {
        let out = Err(MemoryError::OutOfRange { address, length });
        assert_eq!(staging.start_to_host(address, length), out);
        assert_eq!(staging.start_to_device(length, address), out);
    }
    let long = staging.start_to_host(address, room + 1);
    assert!(matches!(long, Err(MemoryError::Device(_))), "{long:?}");
    assert!(staging.is_done().unwrap());

    // Given back in the middle of a copy, it is lent again when that is done.
    staging.start_to_host(address, room).unwrap();
    drop(staging);
    let asked = (0..9).position(|_| lend().is_some());
    assert_eq!(asked, Some(3));
    // The end, with copies that nobody waits for.
    for staging in &mut all {
        staging.start_to_device(room, address).unwrap();
    }
    drop(all);
}
