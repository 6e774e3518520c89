//! Whether additions of device threads to host memory are atomic among them.
//!
//! The layout `Compact` needs that (assumption A6 of `docs/memory-model.md`). The driver's attribute
//! for host-native atomics says something else, atomicity against the host's own, and is 0 where
//! this works. So it is tried.

use std::ffi::CStr;
use std::ptr::null_mut;

use cust::sys;
use loader_core::device::{DeviceError, Grid};

use crate::CudaDevice;
use crate::cuda::{Module, Pinned, check};

/// `add(word, times)`: every thread adds 1 to the word, `times` times.
const PTX: &CStr = c"
.version 6.0
.target sm_70
.address_size 64
.visible .entry add(.param .u64 word, .param .u64 times)
{
    .reg .pred %more;
    .reg .b32 %before;
    .reg .b64 %word, %times;
    ld.param.u64 %word, [word];
    ld.param.u64 %times, [times];
NEXT:
    atom.relaxed.sys.add.u32 %before, [%word], 1;
    sub.u64 %times, %times, 1;
    setp.ne.u64 %more, %times, 0;
    @%more bra NEXT;
    ret;
}
";

/// A warp on each of some multiprocessors is enough to collide.
const GRID: Grid = Grid {
    blocks: [32, 1, 1],
    threads: [32, 1, 1],
};
const TIMES: u32 = 32;
const TOTAL: u32 = GRID.blocks[0] * GRID.threads[0] * TIMES;

impl CudaDevice {
    /// Counts on a word of host memory from many threads at once.
    pub(crate) fn try_atomics(&self) -> Result<(), DeviceError> {
        self.enter()?;
        let word = Pinned::new(size_of::<u32>())?;
        let mut module = null_mut();
        // SAFETY: `module` is a place for a handle, the text ends with a NUL.
        let loaded = unsafe { sys::cuModuleLoadData(&raw mut module, PTX.as_ptr().cast()) };
        check("cuModuleLoadData", loaded)?;
        let module = Module(module);
        let mut function = null_mut();
        // SAFETY: `function` is a place for a handle, the module is loaded.
        let found =
            unsafe { sys::cuModuleGetFunction(&raw mut function, module.0, c"add".as_ptr()) };
        check("cuModuleGetFunction", found)?;
        let mut parameters = [0; 16];
        parameters[..8].copy_from_slice(&word.device.to_le_bytes());
        parameters[8..].copy_from_slice(&u64::from(TIMES).to_le_bytes());
        match self.launch_raw(function, GRID, &mut parameters) {
            0 => self.kernels.synchronize()?,
            code => return Err(crate::cuda::error("cuLaunchKernel", code)),
        }
        // SAFETY: the word lies in memory that is ours until it is dropped; the kernel has ended.
        let count = unsafe { word.host.cast::<u32>().read_volatile() };
        if count == TOTAL {
            return Ok(());
        }
        Err(DeviceError::Unavailable(format!(
            "of {TOTAL} additions that {} made to host memory only {count} came through, and the \
             layout Compact needs them all: build the image for the layout Line",
            self.info.name
        )))
    }
}
