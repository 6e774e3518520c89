//! What the run loop needs of a device API.

use std::ptr::NonNull;

use rpc_server::DeviceMemory;
use thiserror::Error;

use crate::image::ImageKind;
use crate::report::Stage;

/// Why a device did not do what it was asked.
#[derive(Debug, Error)]
pub enum DeviceError {
    /// No driver, no device, or not the one that was asked for. Complete sentence.
    #[error("{0}")]
    Unavailable(String),
    /// The image was refused, by the driver or by its compiler. Says what it said.
    #[error("{0}")]
    Image(String),
    /// The image lacks something that a run needs.
    #[error("the image has no {0}")]
    Missing(String),
    /// A limit of the device is exceeded.
    #[error("{what} {asked} is more than the {most} that {device} takes")]
    Limit {
        /// Which number, as the option that sets it.
        what: &'static str,
        /// What was asked for.
        asked: u64,
        /// The most the device takes.
        most: u64,
        /// The device's name.
        device: String,
    },
    /// The program on the device did something illegal: the run ends with 134.
    #[error("the program faulted on the device: {0}")]
    Fault(String),
    /// The device API failed in a call that has no better name.
    #[error("{call} failed: {reason}")]
    Api {
        /// The API's function.
        call: &'static str,
        /// What it said.
        reason: String,
    },
}

/// What a device is.
#[derive(Clone, Debug)]
pub struct DeviceInfo {
    /// Name for messages.
    pub name: String,
    /// Lanes of a warp.
    pub lanes: u32,
    /// Warps that can be resident at once: the default number of ports.
    pub resident_warps: u32,
    /// Most threads of a block.
    pub max_threads: u32,
    /// Most threads of a block in each dimension.
    pub max_block: [u32; 3],
    /// Most blocks of a grid in each dimension.
    pub max_grid: [u32; 3],
}

/// At most so many kernels are named.
const NAMED: usize = 16;

impl DeviceError {
    /// The image has no kernel `name` but these.
    pub fn no_kernel<'k>(name: &str, kernels: impl Iterator<Item = &'k str>) -> Self {
        let mut kernels: Vec<_> = kernels.collect();
        kernels.sort_unstable();
        let more = kernels.len().saturating_sub(NAMED);
        kernels.truncate(NAMED);
        let mut list = kernels.join(", ");
        if more > 0 {
            list = format!("{list} and {more} more");
        }
        Self::Missing(if list.is_empty() {
            format!("kernel {name}, nor any other")
        } else {
            format!("kernel {name}: its kernels are {list}")
        })
    }

    /// The image has the kernel, but with parameters; `what` says how much of them.
    pub fn not_plain(name: &str, what: &str) -> Self {
        Self::Image(format!(
            "the image's kernel {name} takes {what}, and --kernel runs kernels without parameters"
        ))
    }
}

impl DeviceInfo {
    /// Whether the device takes this grid.
    ///
    /// # Errors
    /// [`DeviceError::Limit`] for the first number that is too large.
    pub fn check(&self, grid: Grid) -> Result<(), DeviceError> {
        let limit = |what, asked, most: u32| {
            if asked <= u64::from(most) {
                return Ok(());
            }
            Err(DeviceError::Limit {
                what,
                asked,
                most: most.into(),
                device: self.name.clone(),
            })
        };
        for (i, what) in ["--threads", "--threads-y", "--threads-z"]
            .into_iter()
            .enumerate()
        {
            limit(what, grid.threads[i].into(), self.max_block[i])?;
        }
        for (i, what) in ["--blocks", "--blocks-y", "--blocks-z"]
            .into_iter()
            .enumerate()
        {
            limit(what, grid.blocks[i].into(), self.max_grid[i])?;
        }
        let all = grid.threads.iter().map(|&n| u64::from(n)).product();
        limit(
            "--threads times --threads-y times --threads-z",
            all,
            self.max_threads,
        )?;
        Ok(())
    }
}

/// How many threads run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Blocks in x, y and z.
    pub blocks: [u32; 3],
    /// Threads of a block in x, y and z.
    pub threads: [u32; 3],
}

impl Grid {
    /// One thread.
    pub const ONE: Self = Self {
        blocks: [1; 3],
        threads: [1; 3],
    };
}

/// A kernel of the image ABI with its arguments; addresses are the device's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// `_begin(argc, argv, envp)`
    Begin {
        /// Number of arguments.
        argc: i32,
        /// Array of `argc + 1` pointers.
        argv: u64,
        /// Array of pointers, null last.
        envp: u64,
    },
    /// `_start(argc, argv, envp, ret)`
    Start {
        /// Number of arguments.
        argc: i32,
        /// Array of `argc + 1` pointers.
        argv: u64,
        /// Array of pointers, null last.
        envp: u64,
        /// An `i32` that every thread ORs its result into.
        ret: u64,
    },
    /// `_start(argc, argv, envp, ret, inbox, outbox, buffer)`, or without `envp`: see
    /// [`StartForm::Mailbox`].
    StartOver {
        /// Number of arguments.
        argc: i32,
        /// Array of `argc + 1` pointers.
        argv: u64,
        /// Array of pointers, null last; `None` for a `_start` that takes no environment.
        envp: Option<u64>,
        /// An `i32` that every thread ORs its result into.
        ret: u64,
        /// What the client is made of.
        mailbox: Mailbox,
    },
    /// `_end()`, or `_end(status)` with 0.
    End,
}

/// The one port of the first images for LLVM's RPC, in shared memory, as the device names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mailbox {
    /// A `u32` that the host writes.
    pub inbox: u64,
    /// A `u32` that the device writes.
    pub outbox: u64,
    /// 64 bytes.
    pub buffer: u64,
}

/// What an image's `_start` takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StartForm {
    /// What [`Kernel::Start`] gives. Also where the device cannot tell.
    #[default]
    Plain,
    /// What [`Kernel::StartOver`] gives.
    Mailbox {
        /// Whether it takes the environment.
        envp: bool,
    },
}

/// Zeroed, page-aligned memory that host and device both reach while a kernel runs. It belongs to
/// its device and lives as long as that.
#[derive(Clone, Copy, Debug)]
pub struct SharedBuffer {
    /// Where the host finds it.
    pub host: NonNull<u8>,
    /// Where the device finds it.
    pub device: u64,
    /// Bytes.
    pub size: usize,
}

// SAFETY: two addresses and a size; the memory belongs to the device, and who accesses it when is
// the business of those who do.
unsafe impl Send for SharedBuffer {}

/// One device with at most one image loaded.
///
/// The run loop calls in this order: `load`, `read_global`, `write_global`, then for each kernel
/// `launch` and `finished` until it is; the allocations come before `write_global`, some on another
/// thread while `load` compiles. Methods take `&self`: handlers copy memory from other threads at
/// the same time (through [`DeviceMemory`]).
///
/// Dropping a device frees everything and may block while a kernel runs: the run loop leaves the
/// process instead when a kernel will not end.
pub trait Device: DeviceMemory {
    /// What this device is.
    fn info(&self) -> &DeviceInfo;

    /// What it is for whoever has built an image for something else: its name and architecture.
    fn title(&self) -> String {
        self.info().name.clone()
    }

    /// How well code of this kind for `architecture`, as a container has it (`gfx90a:xnack+`, `sm_90a`,
    /// empty if it does not say), runs here: the higher the better; `None` if not at all. The image
    /// is checked when it is loaded; this only chooses among several.
    fn fits(&self, kind: ImageKind, architecture: &str) -> Option<u32> {
        let _ = (kind, architecture);
        None
    }

    /// What opening it took, for the report.
    fn opening(&self) -> Vec<Stage> {
        Vec::new()
    }

    /// Loads `image` and nothing lazily: no later call may need the driver to load code.
    ///
    /// # Errors
    /// [`DeviceError::Image`] with the compiler's or driver's words.
    fn load(&self, image: &[u8]) -> Result<(), DeviceError>;

    /// Whether the loaded image has this kernel.
    fn has_kernel(&self, kernel: &Kernel) -> bool;

    /// What the loaded image's `_start` takes.
    fn start_form(&self) -> StartForm {
        StartForm::Plain
    }

    /// Whether [`launch_plain`](Self::launch_plain) can run `name`: the loaded image has a kernel of
    /// this name, and it takes no parameters as far as the device can tell.
    ///
    /// # Errors
    /// [`DeviceError::no_kernel`] or [`DeviceError::not_plain`].
    fn check_plain(&self, name: &str) -> Result<(), DeviceError> {
        let _ = name;
        Err(DeviceError::Unavailable(format!(
            "{} runs no kernels by their names",
            self.info().name
        )))
    }

    /// As [`launch`](Self::launch), a kernel without parameters by its name.
    ///
    /// # Errors
    /// As [`launch`](Self::launch), and those of [`check_plain`](Self::check_plain).
    fn launch_plain(&self, name: &str, grid: Grid) -> Result<(), DeviceError> {
        let _ = grid;
        self.check_plain(name)
    }

    /// Bytes of the global `name` of the loaded image; `None` if there is none.
    ///
    /// # Errors
    /// When the device API fails.
    fn global_size(&self, name: &str) -> Result<Option<u64>, DeviceError>;

    /// Copies the global `name` of the image; `None` if there is none, an error if its size is not
    /// `size`.
    ///
    /// # Errors
    /// When the sizes differ or the device API fails.
    fn read_global(&self, name: &str, size: usize) -> Result<Option<Vec<u8>>, DeviceError>;

    /// Overwrites the start of the global `name` of the image.
    ///
    /// # Errors
    /// When there is no such global, it is too small, or the device API fails.
    fn write_global(&self, name: &str, bytes: &[u8]) -> Result<(), DeviceError>;

    /// Memory that both sides reach.
    ///
    /// # Errors
    /// When there is not enough.
    fn allocate_shared(&self, size: usize) -> Result<SharedBuffer, DeviceError>;

    /// Checks that threads of the device that add to the same word of shared memory at once lose
    /// nothing, which the layout `Compact` needs. Nothing to check where they cannot.
    ///
    /// # Errors
    /// [`DeviceError::Unavailable`] when additions are lost.
    fn check_shared_atomics(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Zeroed memory of the device itself, as its address.
    ///
    /// # Errors
    /// When there is not enough.
    fn allocate_private(&self, size: usize) -> Result<u64, DeviceError>;

    /// Bytes of memory that the device has to give: the free ones, where the API tells, or all. As many
    /// as one likes where memory costs nothing before it is touched.
    ///
    /// # Errors
    /// When the device refuses.
    fn free_memory(&self) -> Result<u64, DeviceError> {
        Ok(u64::MAX)
    }

    /// Reserves the heap that [`DeviceMemory::allocate`] gives out.
    ///
    /// # Errors
    /// When there is not enough.
    fn reserve_heap(&self, size: u64) -> Result<(), DeviceError>;

    /// Reserves the memory that [`DeviceMemory::staging`] lends, where that cannot be had while a
    /// kernel runs.
    ///
    /// # Errors
    /// When there is not enough.
    fn reserve_staging(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Starts `kernel`; returns at once where the API allows it.
    ///
    /// # Errors
    /// [`DeviceError::Limit`] for a grid that the device does not take, else what the API says.
    fn launch(&self, kernel: &Kernel, grid: Grid) -> Result<(), DeviceError>;

    /// Whether the kernel launched last has ended; never waits.
    ///
    /// # Errors
    /// [`DeviceError::Fault`] when it ended by a fault.
    fn finished(&self) -> Result<bool, DeviceError>;

    /// Registers, stack, shared memory and so on of each kernel, a line each, for
    /// `--print-resource-usage`.
    ///
    /// # Errors
    /// When the device API fails.
    fn resource_usage(&self) -> Result<Vec<String>, DeviceError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_that_are_not_there_get_those_that_are() {
        let said = |names: &[&str]| DeviceError::no_kernel("x", names.iter().copied()).to_string();
        assert_eq!(said(&[]), "the image has no kernel x, nor any other");
        assert_eq!(
            said(&["b", "a"]),
            "the image has no kernel x: its kernels are a, b"
        );
        assert!(said(&["k"; 20]).ends_with("k, k and 4 more"));
    }
}
