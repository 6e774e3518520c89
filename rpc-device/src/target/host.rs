//! The CPU device: each thread is a warp of one lane.

use std::boxed::Box;
use std::cell::Cell;
use std::panic::resume_unwind;
use std::sync::OnceLock;
use std::time::Instant;

use rpc_port::HostWarp;
use rpc_types::image::CpuThread;

std::thread_local! {
    static THREAD: Cell<Option<CpuThread>> = const { Cell::new(None) };
}

/// The panic payload that ends a device thread; the entry point catches it.
pub(crate) struct EndThread;

/// Runs `f` as the device thread `thread`.
pub(crate) fn with_thread<R>(thread: CpuThread, f: impl FnOnce() -> R) -> R {
    THREAD.set(Some(thread));
    let result = f();
    THREAD.set(None);
    result
}

/// Whether this is a device thread.
pub(crate) fn is_device_thread() -> bool {
    THREAD.get().is_some()
}

fn current() -> CpuThread {
    let one = [1; 3];
    THREAD.get().unwrap_or(CpuThread {
        blocks: one,
        threads: one,
        ..CpuThread::default()
    })
}

/// Whether images rely on 16-byte accesses: not without asking the host.
pub(crate) const WORDS: bool = false;
/// Lanes of a warp.
pub(crate) const LANES: Option<u32> = Some(1);

/// The one lane of this thread.
pub type Lanes = HostWarp;

/// The warp this thread is.
pub(crate) fn warp() -> Lanes {
    HostWarp {
        hint: crate::grid::global_index() as u32,
    }
}

/// This thread's block.
pub fn block() -> [u32; 3] {
    current().block
}

/// This thread within its block.
pub fn thread() -> [u32; 3] {
    current().thread
}

/// Blocks of the grid.
pub fn blocks() -> [u32; 3] {
    current().blocks
}

/// Threads of a block.
pub fn threads() -> [u32; 3] {
    current().threads
}

/// Since this was first asked.
pub(crate) fn nanoseconds() -> u64 {
    static FIRST: OnceLock<Instant> = OnceLock::new();
    FIRST.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// Ends this thread alone, by unwinding to its entry point.
pub(crate) fn end_thread() -> ! {
    resume_unwind(Box::new(EndThread))
}
