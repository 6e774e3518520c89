//! The device without a GPU: what is said where it cannot run, and a whole run over a pretended
//! driver. With a real driver the tests of its absence say that they were left out.

use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::Arc;

use loader_core::device::Device as _;
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
    let said = stderr(&out);
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
