//! The device alone, with kernels that are functions of this test.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use loader_core::cli::DeviceChoice;
use loader_core::device::{Device, DeviceError, Grid, Kernel};
use loader_core::program::DeviceOptions;
use loader_cpu::{BuiltinImage, CpuDevice};
use rpc_types::image::CpuThread;

const START: Kernel = Kernel::Start {
    argc: 0,
    argv: 0,
    envp: 0,
    ret: 0,
};

type Start =
    unsafe extern "C" fn(i32, *const *const u8, *const *const u8, *mut i32, *const CpuThread);

fn device(start: Start) -> CpuDevice {
    let image = BuiltinImage {
        start: Some(start),
        ..BuiltinImage::default()
    };
    // SAFETY: the functions below read only what `thread` points to and do not unwind.
    unsafe { CpuDevice::builtin(&DeviceOptions::default(), image) }.unwrap()
}

fn wait(device: &CpuDevice) {
    let started = Instant::now();
    while !device.finished().unwrap() {
        assert!(started.elapsed() < Duration::from_mins(1));
        std::thread::sleep(Duration::from_millis(1));
    }
}

static SEEN: Mutex<Vec<CpuThread>> = Mutex::new(Vec::new());

unsafe extern "C" fn record(
    _: i32,
    _: *const *const u8,
    _: *const *const u8,
    _: *mut i32,
    thread: *const CpuThread,
) {
    // SAFETY: the image ABI says that it points to this thread's identity.
    SEEN.lock().unwrap().push(unsafe { *thread });
}

#[test]
fn every_thread_of_the_grid_runs_once() {
    let device = device(record);
    for (blocks, threads) in [
        ([1, 1, 1], [1, 1, 1]),
        ([2, 3, 2], [4, 2, 3]),
        ([5000, 1, 1], [1, 1, 1]),
        ([3, 1, 1], [1024, 1, 1]),
    ] {
        SEEN.lock().unwrap().clear();
        device.launch(&START, Grid { blocks, threads }).unwrap();
        wait(&device);
        let mut seen = SEEN.lock().unwrap();
        assert!(
            seen.iter()
                .all(|who| who.blocks == blocks && who.threads == threads)
        );
        let total: u32 = blocks.iter().chain(&threads).product();
        assert_eq!(seen.len(), total as usize);
        seen.sort_by_key(|who| (who.block, who.thread));
        seen.dedup();
        assert_eq!(seen.len(), total as usize, "each once");
        let inside = |at: [u32; 3], size: [u32; 3]| at.iter().zip(size).all(|(&a, s)| a < s);
        assert!(
            seen.iter()
                .all(|who| inside(who.block, blocks) && inside(who.thread, threads))
        );
    }
}

/// Threads of the block that have come so far.
static COME: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" fn meet(
    _: i32,
    _: *const *const u8,
    _: *const *const u8,
    _: *mut i32,
    _: *const CpuThread,
) {
    COME.fetch_add(1, Ordering::Relaxed);
    while COME.load(Ordering::Relaxed) < 1024 {
        std::thread::yield_now();
    }
}

#[test]
fn threads_of_a_block_run_at_the_same_time() {
    let device = device(meet);
    let grid = Grid {
        blocks: [1; 3],
        threads: [1024, 1, 1],
    };
    device.launch(&START, grid).unwrap();
    wait(&device);
}

static GO: AtomicBool = AtomicBool::new(false);

unsafe extern "C" fn until_go(
    _: i32,
    _: *const *const u8,
    _: *const *const u8,
    _: *mut i32,
    _: *const CpuThread,
) {
    while !GO.load(Ordering::Relaxed) {
        std::thread::yield_now();
    }
}

#[test]
fn a_running_kernel_keeps_others_out() {
    let device = device(until_go);
    device.launch(&START, Grid::ONE).unwrap();
    assert!(!device.finished().unwrap());
    assert!(matches!(
        device.launch(&START, Grid::ONE),
        Err(DeviceError::Api { .. })
    ));
    GO.store(true, Ordering::Relaxed);
    wait(&device);
    device.launch(&START, Grid::ONE).unwrap();
    wait(&device);
}

#[test]
fn what_does_not_exist_is_refused() {
    let device = device(record);
    assert!(!device.has_kernel(&Kernel::End));
    assert!(matches!(
        device.launch(&Kernel::End, Grid::ONE),
        Err(DeviceError::Missing(_))
    ));
    let grid = Grid {
        blocks: [1; 3],
        threads: [1025, 1, 1],
    };
    assert!(matches!(
        device.launch(&START, grid),
        Err(DeviceError::Limit { .. })
    ));
    assert_eq!(device.global_size("__gpurpc_client").unwrap(), None);
    assert_eq!(device.read_global("__gpurpc_client", 64).unwrap(), None);
    assert!(device.write_global("__gpurpc_client", &[0; 64]).is_err());
    let one = DeviceOptions {
        device: DeviceChoice::Number(1),
        ..DeviceOptions::default()
    };
    assert!(matches!(
        CpuDevice::open(&one),
        Err(DeviceError::Unavailable(_))
    ));
}
