//! Grids as threads.
//!
//! Each thread of a block is a thread of the system, for blocks may wait for each other's messages
//! and their threads for one another. So that a large grid does not take a million of them, groups
//! of threads take block after block.

use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, PoisonError, RwLock};
use std::thread;

use loader_core::device::{Grid, Kernel};
use rpc_types::image::CpuThread;

use crate::builtin::{Begin, BuiltinImage, End, Plain, Start};
use crate::fault;

/// Threads that run at a time, unless one block has more. As many as the largest block has: then
/// every grid keeps hundreds of warps in flight, as it would on a GPU, and their stacks are still
/// no burden.
pub(crate) const RESIDENT: u32 = 1024;

/// What each thread calls.
#[derive(Clone, Copy)]
pub(crate) enum Entry {
    Begin(Begin, i32, [u64; 2]),
    Start(Start, i32, [u64; 3]),
    End(End),
    Plain(Plain),
}

impl Entry {
    /// The kernel of the image; `None` if it has none of that name, or of that form.
    pub(crate) fn of(image: BuiltinImage, kernel: &Kernel) -> Option<Self> {
        match *kernel {
            Kernel::Begin { argc, argv, envp } => {
                image.begin.map(|f| Self::Begin(f, argc, [argv, envp]))
            }
            Kernel::Start {
                argc,
                argv,
                envp,
                ret,
            } => image.start.map(|f| Self::Start(f, argc, [argv, envp, ret])),
            Kernel::StartOver { .. } => None,
            Kernel::End => image.end.map(Self::End),
        }
    }
}

/// One launch.
pub(crate) struct Launch {
    entry: Entry,
    grid: Grid,
    /// The block that is begun next.
    next: AtomicU64,
    blocks: u64,
    /// Threads that have not ended.
    live: AtomicUsize,
    /// Held for writing until all threads are there; whether they are to run.
    gate: RwLock<bool>,
}

/// The threads that run a block together.
struct Group {
    barrier: Barrier,
    block: AtomicU64,
}

fn product(size: [u32; 3]) -> u64 {
    size.iter().map(|&n| u64::from(n)).product()
}

/// The three coordinates of number `index`, x fastest.
fn coordinates(index: u64, size: [u32; 3]) -> [u32; 3] {
    let [x, y] = [u64::from(size[0]), u64::from(size[1])];
    [
        (index % x) as u32,
        (index / x % y) as u32,
        (index / x / y) as u32,
    ]
}

impl Launch {
    /// Starts the threads. The grid is one that the device takes.
    pub(crate) fn start(entry: Entry, grid: Grid, stack: usize) -> io::Result<Arc<Self>> {
        let blocks = product(grid.blocks);
        let threads = product(grid.threads);
        let groups = (u64::from(RESIDENT) / threads).clamp(1, blocks);
        let launch = Arc::new(Self {
            entry,
            grid,
            next: AtomicU64::new(0),
            blocks,
            live: AtomicUsize::new(0),
            gate: RwLock::new(false),
        });
        let mut gate = launch.gate.write().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..groups {
            let group = Arc::new(Group {
                barrier: Barrier::new(threads as usize),
                block: AtomicU64::new(0),
            });
            for index in 0..threads {
                let (launch, group) = (Live::new(&launch), Arc::clone(&group));
                thread::Builder::new()
                    .name("device".to_owned())
                    .stack_size(stack)
                    .spawn(move || launch.0.thread(&group, index))?;
            }
        }
        *gate = true;
        drop(gate);
        Ok(launch)
    }

    /// Whether all threads have ended.
    pub(crate) fn finished(&self) -> bool {
        // Acquire: pairs with the release of each thread's end, so that what they wrote is seen.
        self.live.load(Ordering::Acquire) == 0
    }

    /// Thread `index` of each block that its group takes.
    fn thread(&self, group: &Group, index: u64) {
        if !*self.gate.read().unwrap_or_else(PoisonError::into_inner) {
            return;
        }
        let Grid { blocks, threads } = self.grid;
        let mut who = CpuThread {
            thread: coordinates(index, threads),
            blocks,
            threads,
            ..CpuThread::default()
        };
        let _guard = fault::Guard::thread();
        loop {
            if index == 0 {
                let block = self.next.fetch_add(1, Ordering::Relaxed);
                group.block.store(block, Ordering::Relaxed);
            }
            // The barrier orders the store before the loads.
            group.barrier.wait();
            let block = group.block.load(Ordering::Relaxed);
            if block >= self.blocks {
                return;
            }
            who.block = coordinates(block, blocks);
            fault::now_running(block, index);
            self.call(&who);
            // Nobody takes the next block while one of the group has not read this one.
            group.barrier.wait();
        }
    }

    fn call(&self, who: &CpuThread) {
        let pointer =
            |address: u64| std::ptr::with_exposed_provenance::<*const u8>(address as usize);
        // SAFETY: the functions are the image's kernels of these types, and the arguments those of
        // the image ABI: the run has put `argv` and `envp` and the word behind `ret` into memory
        // of the device, which outlives its threads; `who` lives during the call. What the program
        // does besides is its own affair, as for any that is run.
        unsafe {
            match self.entry {
                Entry::Begin(begin, argc, [argv, envp]) => {
                    begin(argc, pointer(argv), pointer(envp), who);
                }
                Entry::Start(start, argc, [argv, envp, ret]) => {
                    let ret = std::ptr::with_exposed_provenance_mut(ret as usize);
                    start(argc, pointer(argv), pointer(envp), ret, who);
                }
                Entry::End(end) => end(who),
                Entry::Plain(plain) => plain(who),
            }
        }
    }
}

/// A thread that counts as live until it drops this, started or not.
struct Live(Arc<Launch>);

impl Live {
    fn new(launch: &Arc<Launch>) -> Self {
        launch.live.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(launch))
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        // Release: pairs with the acquire in `finished`.
        self.0.live.fetch_sub(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_count_x_first() {
        let size = [3, 2, 4];
        let all: Vec<_> = (0..24).map(|index| coordinates(index, size)).collect();
        assert_eq!(all[..4], [[0, 0, 0], [1, 0, 0], [2, 0, 0], [0, 1, 0]]);
        assert_eq!(all[23], [2, 1, 3]);
        assert_eq!(
            product([u32::MAX >> 1, 65535, 65535]),
            9_223_090_559_730_712_575
        );
    }
}
