//! Start-up of images that clang makes of C, on the emulated GPU.

#![allow(clippy::pedantic, reason = "tests")]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use loader_amd::{AmdDevice, Options};
use loader_core::cli::DeviceChoice;
use loader_core::device::{Device as _, Grid, Kernel, Mailbox, StartForm};
use rpc_server::DeviceMemory as _;

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

/// The oldest protocol, by its letter: who serves it does as this does.
#[test]
fn a_start_with_a_mailbox_is_known_and_started() {
    for (option, takes) in [("-DSEVEN", true), ("-DSIX", false)] {
        let Some(image) = clang("mailbox", option) else {
            return;
        };
        let device = AmdDevice::open(&Options {
            device: DeviceChoice::Emulator,
            ..Options::default()
        })
        .unwrap();
        device.load(&std::fs::read(image).unwrap()).unwrap();
        assert_eq!(device.start_form(), StartForm::Mailbox { envp: takes });
        let shared = device.allocate_shared(4096).unwrap();
        let ret = device.allocate_private(4).unwrap();
        let word = |offset: usize| {
            // SAFETY: within the page, aligned, and of the device only besides.
            unsafe { AtomicU32::from_ptr(shared.host.as_ptr().add(offset).cast()) }
        };
        let (inbox, outbox, buffer) = (word(0), word(64), 128);
        let kernel = Kernel::StartOver {
            argc: 2,
            argv: 0,
            envp: takes.then_some(0),
            ret,
            mailbox: Mailbox {
                inbox: shared.device,
                outbox: shared.device + 64,
                buffer: shared.device + buffer,
            },
        };
        assert!(device.has_kernel(&kernel));
        device.launch(&kernel, Grid::ONE).unwrap();
        let started = Instant::now();
        let until = |done: &dyn Fn() -> bool| {
            while !done() {
                assert!(started.elapsed() < Duration::from_secs(100));
                std::thread::yield_now();
            }
        };
        until(&|| outbox.load(Ordering::Acquire) == 1);
        let data = |n: usize| word(buffer as usize + 8 * n);
        assert_eq!(data(0).load(Ordering::Relaxed), 2);
        assert_eq!(data(1).fetch_add(1, Ordering::Relaxed), 42);
        inbox.store(1, Ordering::Release);
        until(&|| outbox.load(Ordering::Acquire) == 0);
        inbox.store(0, Ordering::Release);
        until(&|| device.finished().unwrap());
        let mut value = [0; 4];
        device.copy_to_host(ret, &mut value).unwrap();
        assert_eq!(i32::from_le_bytes(value), 43);
    }
}
