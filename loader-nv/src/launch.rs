//! Kernels: looking them up, starting them, seeing them end.

use std::collections::BTreeMap;
use std::ffi::{CString, c_void};
use std::ptr::null_mut;
use std::sync::atomic::Ordering;

use cust::sys::{self, CUfunction, CUfunction_attribute as Attribute};
use loader_core::device::{DeviceError, DeviceInfo, Grid, Kernel};
use rpc_types::image::GPU_KERNELS;

use crate::cuda::{NOT_FOUND, NOT_READY, check, code};
use crate::device::CudaDevice;
use crate::parameters::{name, parameters};

/// `CU_LAUNCH_PARAM_BUFFER_POINTER` and `_SIZE`: what follows in the array is the parameters'
/// address, or their size's.
const PARAMETERS: usize = 1;
const PARAMETERS_SIZE: usize = 2;
/// `CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES`: also given for parameters of the wrong size.
const OUT_OF_RESOURCES: u32 = 701;

/// Bytes of the status that older images' `_end` takes.
const STATUS: u32 = 4;

/// Threads of a block, and how to name them.
fn block_size(grid: Grid) -> (&'static str, u64) {
    let total = grid
        .threads
        .iter()
        .fold(1_u64, |all, &n| all.saturating_mul(u64::from(n)));
    let flat = grid.threads[1..] == [1, 1];
    (
        if flat {
            "--threads"
        } else {
            "--threads times --threads-y times --threads-z"
        },
        total,
    )
}

/// Refuses what the device would: a sentence with the option is more use than "invalid value".
fn check_grid(info: &DeviceInfo, grid: Grid) -> Result<(), DeviceError> {
    let threads = ["--threads", "--threads-y", "--threads-z"];
    let blocks = ["--blocks", "--blocks-y", "--blocks-z"];
    let limit = |what, asked: u64, most: u32| {
        if asked <= u64::from(most) {
            return Ok(());
        }
        Err(DeviceError::Limit {
            what,
            asked,
            most: u64::from(most),
            device: info.name.clone(),
        })
    };
    if grid.threads.contains(&0) || grid.blocks.contains(&0) {
        return Err(DeviceError::Api {
            call: "cuLaunchKernel",
            reason: "a grid has at least one block and a block at least one thread".to_owned(),
        });
    }
    let (what, asked) = block_size(grid);
    limit(what, asked, info.max_threads)?;
    for axis in 0..3 {
        limit(
            threads[axis],
            u64::from(grid.threads[axis]),
            info.max_block[axis],
        )?;
        limit(
            blocks[axis],
            u64::from(grid.blocks[axis]),
            info.max_grid[axis],
        )?;
    }
    Ok(())
}

impl CudaDevice {
    /// The function of that name; `None` if the image has none.
    pub(crate) fn function(&self, name: &str) -> Result<Option<CUfunction>, DeviceError> {
        let module = self.loaded()?;
        let Ok(name) = CString::new(name) else {
            return Ok(None);
        };
        self.enter()?;
        let mut function = null_mut();
        // SAFETY: `function` is a place for a handle, `name` ends with a NUL, and the module is
        // loaded as long as `self` lives.
        let result =
            unsafe { sys::cuModuleGetFunction(&raw mut function, module.0, name.as_ptr()) };
        if code(result) == NOT_FOUND {
            return Ok(None);
        }
        check("cuModuleGetFunction", result)?;
        Ok(Some(function))
    }

    fn attribute(function: CUfunction, attribute: Attribute) -> Result<i32, DeviceError> {
        let mut value = 0;
        // SAFETY: `value` is a place for an int; the caller's function was just looked up.
        let result = unsafe { sys::cuFuncGetAttribute(&raw mut value, attribute, function) };
        check("cuFuncGetAttribute", result)?;
        Ok(value)
    }

    /// Starts a kernel of the image ABI.
    pub(crate) fn start(&self, kernel: &Kernel, grid: Grid) -> Result<(), DeviceError> {
        let name = name(kernel);
        let function = self
            .function(name)?
            .ok_or_else(|| DeviceError::Missing(format!("kernel {name}")))?;
        let known = self.parameters_of(name);
        let mut bytes = parameters(kernel);
        match (kernel, known) {
            (Kernel::End, None | Some(0 | STATUS)) => {
                bytes.resize(known.unwrap_or(STATUS) as usize, 0);
            }
            (_, Some(known)) if known as usize != bytes.len() => {
                return Err(DeviceError::Image(format!(
                    "the image has a kernel {name} with {known} bytes of parameters where {} are \
                     needed",
                    bytes.len()
                )));
            }
            _ => {}
        }
        self.start_function(name, function, grid, &mut bytes)
    }

    /// The bytes of a kernel's parameters, if they are known.
    pub(crate) fn parameters_of(&self, name: &str) -> Option<u32> {
        *self.signatures.get()?.get(name)?
    }

    /// The function of that name, if it takes no parameters as far as that is known.
    pub(crate) fn plain(&self, name: &str) -> Result<CUfunction, DeviceError> {
        let known = self.signatures.get();
        let names = || {
            known
                .into_iter()
                .flat_map(|known| known.keys().map(String::as_str))
        };
        let function = self
            .function(name)?
            .ok_or_else(|| DeviceError::no_kernel(name, names()))?;
        match self.parameters_of(name) {
            None | Some(0) => Ok(function),
            Some(size) => Err(DeviceError::not_plain(
                name,
                &format!("{size} bytes of parameters"),
            )),
        }
    }

    /// Starts `function`, which is `name`.
    pub(crate) fn start_function(
        &self,
        name: &str,
        function: CUfunction,
        grid: Grid,
        parameters: &mut [u8],
    ) -> Result<(), DeviceError> {
        check_grid(&self.info, grid)?;
        let most = Self::attribute(function, Attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?;
        let (what, asked) = block_size(grid);
        if asked > most.max(0) as u64 {
            // Its registers do not suffice for more.
            return Err(DeviceError::Limit {
                what,
                asked,
                most: most.max(0) as u64,
                device: format!("{name} on {}", self.info.name),
            });
        }
        let mut result = self.launch_raw(function, grid, parameters);
        if result == OUT_OF_RESOURCES && parameters.len() == STATUS as usize {
            // An `_end` without a status, of an image that does not say so.
            result = self.launch_raw(function, grid, &mut []);
        } else if result == OUT_OF_RESOURCES && parameters.is_empty() {
            // A compiler may have given a kernel without parameters one that is never read.
            result = self.launch_raw(function, grid, &mut [0; STATUS as usize]);
        }
        if result != 0 {
            return Err(crate::cuda::error("cuLaunchKernel", result));
        }
        self.launched.store(true, Ordering::Release);
        Ok(())
    }

    /// Starts `function`; the driver's code.
    pub(crate) fn launch_raw(
        &self,
        function: CUfunction,
        grid: Grid,
        parameters: &mut [u8],
    ) -> u32 {
        let mut size = parameters.len();
        let mut extra: [*mut c_void; 5] = [
            std::ptr::without_provenance_mut(PARAMETERS),
            parameters.as_mut_ptr().cast(),
            std::ptr::without_provenance_mut(PARAMETERS_SIZE),
            (&raw mut size).cast(),
            null_mut(),
        ];
        let extra = if parameters.is_empty() {
            null_mut()
        } else {
            extra.as_mut_ptr()
        };
        let ([bx, by, bz], [tx, ty, tz]) = (grid.blocks, grid.threads);
        let stream = self.kernels.raw();
        // SAFETY: function and stream exist as long as `self` lives; the driver copies the
        // parameters, whose size it is told, before it returns and compares it with the kernel's.
        // What the kernel does with the addresses is confined to the GPU's view of memory: device
        // memory, and the pinned host memory that is shared with it on purpose.
        let result = unsafe {
            sys::cuLaunchKernel(
                function,
                bx,
                by,
                bz,
                tx,
                ty,
                tz,
                0,
                stream,
                null_mut(),
                extra,
            )
        };
        code(result)
    }

    pub(crate) fn query(&self) -> Result<bool, DeviceError> {
        if !self.launched.load(Ordering::Acquire) {
            return Ok(true);
        }
        self.enter()?;
        // SAFETY: the stream exists as long as `self` lives.
        let result = unsafe { sys::cuStreamQuery(self.kernels.raw()) };
        if code(result) == NOT_READY {
            return Ok(false);
        }
        check("cuStreamQuery", result)?;
        Ok(true)
    }

    pub(crate) fn usage(&self) -> Result<Vec<String>, DeviceError> {
        let mut lines = Vec::new();
        let kernels = [GPU_KERNELS.begin, GPU_KERNELS.start, GPU_KERNELS.end];
        let known = self.signatures.get().into_iter().flat_map(BTreeMap::keys);
        let others = known
            .map(String::as_str)
            .filter(|name| !kernels.contains(name));
        for name in kernels.into_iter().chain(others) {
            let Some(function) = self.function(name)? else {
                continue;
            };
            let of = |attribute| Self::attribute(function, attribute);
            lines.push(format!(
                "{name}: {} registers, {} bytes of local memory, {} of shared memory, {} of \
                 constant memory, at most {} threads a block",
                of(Attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
                of(Attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
                of(Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
                of(Attribute::CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES)?,
                of(Attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
            ));
        }
        Ok(lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn h200() -> DeviceInfo {
        DeviceInfo {
            name: "NVIDIA H200".to_owned(),
            lanes: 32,
            resident_warps: 8448,
            max_threads: 1024,
            max_block: [1024, 1024, 64],
            max_grid: [i32::MAX as u32, 65535, 65535],
        }
    }

    #[test]
    fn grids_are_checked_before_the_driver_sees_them() {
        let check = |blocks, threads| check_grid(&h200(), Grid { blocks, threads });
        let sentence = |blocks, threads| check(blocks, threads).unwrap_err().to_string();
        assert!(check([1; 3], [1024, 1, 1]).is_ok());
        assert!(check([i32::MAX as u32, 65535, 65535], [1, 16, 64]).is_ok());
        assert_eq!(
            sentence([1; 3], [5000, 1, 1]),
            "--threads 5000 is more than the 1024 that NVIDIA H200 takes"
        );
        assert_eq!(
            sentence([u32::MAX, 1, 1], [1; 3]),
            "--blocks 4294967295 is more than the 2147483647 that NVIDIA H200 takes"
        );
        assert!(
            sentence([1; 3], [64, 32, 1])
                .starts_with("--threads times --threads-y times --threads-z 2048")
        );
        assert!(sentence([1; 3], [1, 1, 128]).starts_with("--threads-z 128 is more than the 64"));
        assert!(
            sentence([1; 3], [u32::MAX; 3])
                .starts_with("--threads times --threads-y times --threads-z")
        );
        assert!(sentence([1, 0, 1], [1; 3]).contains("at least one"));
    }
}
