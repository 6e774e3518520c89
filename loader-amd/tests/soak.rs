//! Many launches of one image on the emulated GPU: nothing that a launch makes stays.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use loader_amd::{AmdDevice, Options};
use loader_core::block::Block;
use loader_core::cli::DeviceChoice;
use loader_core::device::{Device, Grid, Kernel};
use loader_core::serve::Client;
use rpc_server::{Output, builtin};

/// Launches; a tenth of them first, to reach what stays.
const LAUNCHES: u32 = 10_000;

/// Counts what is printed.
#[derive(Default)]
struct Count(AtomicU64);

impl Output for Count {
    fn stdout(&self, bytes: &[u8]) -> io::Result<()> {
        self.0.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn stderr(&self, bytes: &[u8]) -> io::Result<()> {
        self.stdout(bytes)
    }
}

/// Pages of this process that are in memory.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text
        .split(' ')
        .nth(1)
        .and_then(|number| number.parse().ok());
    pages.unwrap_or(0)
}

#[test]
fn ten_thousand_launches_of_hello() {
    let target = std::env::var_os("GPURPC_IMAGES").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/images"),
        PathBuf::from,
    );
    let Ok(image) = std::fs::read(target.join("amdgcn-gfx1100/hello.elf")) else {
        let required = std::env::var_os("GPURPC_REQUIRE_IMAGES").is_some_and(|value| value == "1");
        assert!(!required, "there is no hello.elf");
        println!("left out: there is no hello.elf (`cargo xtask images` builds it)");
        return;
    };
    let options = Options {
        device: DeviceChoice::Emulator,
        ..Options::default()
    };
    let device: Arc<dyn Device> =
        Arc::new(AmdDevice::open(&options).expect("the emulator is linked in"));
    device.load(&image).expect("an image for gfx1100");
    let client = Client::find(&*device)
        .expect("of this version")
        .expect("hello prints");
    let count = Arc::new(Count::default());
    let output = Arc::clone(&count);
    let _service = client
        .serve(
            &device,
            None,
            rpc_server::Options::default(),
            move |table| {
                builtin::install(table, output);
            },
        )
        .expect("a server");

    let block = Block::new(&[OsString::from("hello")], &[]);
    let base = device.allocate_private(4096).expect("a little memory");
    let ret = base + 2048;
    device
        .copy_to_device(&block.at(base), base)
        .expect("the device's memory");
    let start = Kernel::Start {
        argc: block.argc(),
        argv: base,
        envp: base + block.envp(),
        ret,
    };
    let launch = |count: u32| {
        for _ in 0..count {
            device.launch(&start, Grid::ONE).expect("a launch");
            while !device.finished().expect("no fault") {
                std::thread::sleep(Duration::from_micros(50));
            }
        }
    };
    launch(LAUNCHES / 10);
    let before = resident();
    launch(LAUNCHES);
    let after = resident();
    assert!(after < before + 1000, "{before} pages, then {after}");
    let printed = count.0.load(Ordering::Relaxed);
    let one = "hello from block 0 thread 0\n".len() as u64;
    assert_eq!(printed, one * u64::from(LAUNCHES + LAUNCHES / 10));
}
