//! The device: opening it, what it is, closing it.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char};
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, OnceLock};
use std::time::Instant;

use cust::context::{Context, CurrentContext, ResourceLimit};
use cust::device::{Device as CustDevice, DeviceAttribute};
use cust::error::CudaError;
use cust::sys;
use loader_core::device::{Device, DeviceError, DeviceInfo, Grid, Kernel, SharedBuffer, StartForm};
use loader_core::image::ImageKind;
use loader_core::report::Stage;
use rpc_types::image::GPU_KERNELS;

use crate::copies::Copies;
use crate::cuda::{Module, Stream, check, check_cust, cust_code};
use crate::fits::fits;
use crate::memory::Memory;
use crate::prepare_environment;

/// Stack of each device thread unless something else is asked for. CUDA's own default of 1 KiB
/// is too small for formatted output.
pub const DEFAULT_STACK: usize = 16 << 10;
/// How a device is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Which one, counted from 0 among those that the driver shows.
    pub device: u32,
    /// Bytes of stack for each device thread; [`DEFAULT_STACK`] if not given.
    pub stack_size: Option<usize>,
    /// How hard the driver's compiler optimises PTX, from 0 to 4; its own choice if not given.
    pub jit_level: Option<u32>,
}

/// An NVIDIA device with at most one image.
///
/// Dropping it frees everything, which waits for a kernel that still runs.
pub struct CudaDevice {
    /// What opening it took.
    stages: Vec<Stage>,
    /// How hard the driver's compiler optimises.
    pub(crate) jit_level: Option<u32>,
    pub(crate) info: DeviceInfo,
    /// Compute capability, as in `sm_90`.
    pub(crate) architecture: u32,
    /// The device's number for the driver.
    pub(crate) ordinal: u32,
    pub(crate) launched: AtomicBool,
    /// The loaded image's kernels with the bytes of their parameters, where they are known.
    pub(crate) signatures: OnceLock<BTreeMap<String, Option<u32>>>,
    // Dropped in this order, the context last: it owns the rest.
    pub(crate) module: OnceLock<Module>,
    /// Where kernels run.
    pub(crate) kernels: Stream,
    /// Where copies run, beside the kernel.
    pub(crate) copies: Copies,
    pub(crate) memory: Mutex<Memory>,
    context: Context,
}

impl CudaDevice {
    /// Opens a device: starts the driver, makes the context, sets the stack size.
    ///
    /// # Errors
    /// [`DeviceError::Unavailable`] without a driver, without a device, or without this one, each
    /// with its reason; [`DeviceError::Limit`] for a stack that is too large.
    pub fn open(options: &Options) -> Result<Self, DeviceError> {
        let mut stages = Vec::new();
        let mut began = Instant::now();
        let mut stage = |name| {
            stages.push(Stage::since(name, began));
            began = Instant::now();
        };
        cuda_shim::available().map_err(|reason| DeviceError::Unavailable(reason.to_string()))?;
        prepare_environment()?;
        cust::init(cust::CudaFlags::empty()).map_err(start_failed)?;
        let count = CustDevice::num_devices().map_err(start_failed)?;
        if count == 0 {
            return Err(start_failed(CudaError::NoDevice));
        }
        if options.device >= count {
            return Err(DeviceError::Unavailable(format!(
                "there is no CUDA device {}: the driver shows {count}, counted from 0",
                options.device
            )));
        }
        let device = check_cust("cuDeviceGet", CustDevice::get_device(options.device))?;
        let (info, architecture) = describe(device)?;
        stage("driver");
        let context = Context::new(device).map_err(|failed| {
            let reason = cuda_shim::describe(cust_code(failed));
            DeviceError::Unavailable(format!("{} could not be opened: {reason}", info.name))
        })?;
        check_cust("cuCtxSetCurrent", CurrentContext::set_current(&context))?;
        stage("context");
        set_stack(options.stack_size.unwrap_or(DEFAULT_STACK), &info)?;
        stage("stack");
        let (kernels, copies) = (Stream::new()?, Copies::new()?);
        stage("streams");
        Ok(Self {
            stages,
            jit_level: options.jit_level,
            info,
            architecture,
            ordinal: options.device,
            launched: AtomicBool::new(false),
            signatures: OnceLock::new(),
            module: OnceLock::new(),
            kernels,
            copies,
            memory: Mutex::default(),
            context,
        })
    }

    /// Makes the device's context the calling thread's: driver calls act on that.
    pub(crate) fn enter(&self) -> Result<(), DeviceError> {
        check_cust(
            "cuCtxSetCurrent",
            CurrentContext::set_current(&self.context),
        )
    }
}

impl Drop for CudaDevice {
    fn drop(&mut self) {
        // The fields are freed after this, on this thread. If entering fails, so does freeing, and
        // the driver cleans up when the process ends.
        let _ = self.enter();
        self.copies.finish();
    }
}

/// Why the driver did not start, as a user can act on it.
fn start_failed(failed: CudaError) -> DeviceError {
    let code = cust_code(failed);
    let sentence = if failed == CudaError::NoDevice {
        match std::env::var_os("CUDA_VISIBLE_DEVICES") {
            Some(list) if list.is_empty() => {
                "no CUDA device is visible: CUDA_VISIBLE_DEVICES is empty".to_owned()
            }
            Some(list) => {
                format!(
                    "no CUDA device is visible: CUDA_VISIBLE_DEVICES is {}",
                    list.display()
                )
            }
            None => "the NVIDIA driver finds no device".to_owned(),
        }
    } else {
        format!(
            "the NVIDIA driver could not start: {}",
            cuda_shim::describe(code)
        )
    };
    DeviceError::Unavailable(sentence)
}

/// The device's properties and its architecture's number.
fn describe(device: CustDevice) -> Result<(DeviceInfo, u32), DeviceError> {
    let attribute = |which| {
        let value = check_cust("cuDeviceGetAttribute", device.get_attribute(which))?;
        Ok(u32::try_from(value).unwrap_or(0))
    };
    let lanes = attribute(DeviceAttribute::WarpSize)?.max(1);
    let resident = attribute(DeviceAttribute::MultiprocessorCount)?
        .saturating_mul(attribute(DeviceAttribute::MaxThreadsPerMultiprocessor)? / lanes);
    let info = DeviceInfo {
        name: name(device)?,
        lanes,
        resident_warps: resident.max(1),
        max_threads: attribute(DeviceAttribute::MaxThreadsPerBlock)?,
        max_block: [
            attribute(DeviceAttribute::MaxBlockDimX)?,
            attribute(DeviceAttribute::MaxBlockDimY)?,
            attribute(DeviceAttribute::MaxBlockDimZ)?,
        ],
        max_grid: [
            attribute(DeviceAttribute::MaxGridDimX)?,
            attribute(DeviceAttribute::MaxGridDimY)?,
            attribute(DeviceAttribute::MaxGridDimZ)?,
        ],
    };
    let architecture = attribute(DeviceAttribute::ComputeCapabilityMajor)? * 10
        + attribute(DeviceAttribute::ComputeCapabilityMinor)?;
    Ok((info, architecture))
}

/// The device's name. (`cust`'s own function panics should the driver not end it.)
fn name(device: CustDevice) -> Result<String, DeviceError> {
    let mut text = [0_u8; 256];
    let room = text.len() as i32;
    // SAFETY: the driver writes at most `room` bytes to `text`, which has as many.
    let result =
        unsafe { sys::cuDeviceGetName(text.as_mut_ptr().cast::<c_char>(), room, device.as_raw()) };
    check("cuDeviceGetName", result)?;
    let name = CStr::from_bytes_until_nul(&text).unwrap_or(c"NVIDIA device");
    Ok(name.to_string_lossy().into_owned())
}

/// Sets each thread's stack; a size that is refused is answered with the largest that is not.
fn set_stack(asked: usize, info: &DeviceInfo) -> Result<(), DeviceError> {
    let set = |size| CurrentContext::set_resource_limit(ResourceLimit::StackSize, size);
    let Err(failed) = set(asked) else {
        return Ok(());
    };
    if !matches!(failed, CudaError::InvalidValue | CudaError::OutOfMemory) {
        return Err(crate::cuda::error("cuCtxSetLimit", cust_code(failed)));
    }
    let (mut good, mut bad) = (0, asked);
    while bad - good > 1024 {
        let middle = good + (bad - good) / 2;
        if set(middle).is_ok() {
            good = middle;
        } else {
            bad = middle;
        }
    }
    Err(DeviceError::Limit {
        what: "--stack-size",
        asked: asked as u64,
        most: (good / 1024 * 1024) as u64,
        device: info.name.clone(),
    })
}

impl Device for CudaDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn title(&self) -> String {
        format!("{} (sm_{})", self.info.name, self.architecture)
    }

    fn fits(&self, kind: ImageKind, architecture: &str) -> Option<u32> {
        fits(kind, architecture, self.architecture)
    }

    fn opening(&self) -> Vec<Stage> {
        self.stages.clone()
    }

    fn load(&self, image: &[u8]) -> Result<(), DeviceError> {
        self.load_image(image)
    }

    fn has_kernel(&self, kernel: &Kernel) -> bool {
        self.function(crate::parameters::name(kernel))
            .is_ok_and(|found| found.is_some())
    }

    fn start_form(&self) -> StartForm {
        crate::parameters::start_form(self.parameters_of(GPU_KERNELS.start))
    }

    fn check_plain(&self, name: &str) -> Result<(), DeviceError> {
        self.plain(name).map(drop)
    }

    fn launch_plain(&self, name: &str, grid: Grid) -> Result<(), DeviceError> {
        let function = self.plain(name)?;
        self.start_function(name, function, grid, &mut [])
    }

    fn global_size(&self, name: &str) -> Result<Option<u64>, DeviceError> {
        Ok(self.global(name)?.map(|(_, size)| size as u64))
    }

    fn read_global(&self, name: &str, size: usize) -> Result<Option<Vec<u8>>, DeviceError> {
        let Some((address, actual)) = self.global(name)? else {
            return Ok(None);
        };
        if actual != size {
            return Err(DeviceError::Image(format!(
                "the image's {name} has {actual} bytes where {size} are needed"
            )));
        }
        let mut bytes = vec![0; size];
        self.read(address, &mut bytes)?;
        Ok(Some(bytes))
    }

    fn write_global(&self, name: &str, bytes: &[u8]) -> Result<(), DeviceError> {
        let Some((address, actual)) = self.global(name)? else {
            return Err(DeviceError::Missing(name.to_owned()));
        };
        if actual < bytes.len() {
            return Err(DeviceError::Image(format!(
                "the image's {name} has {actual} bytes where {} are needed",
                bytes.len()
            )));
        }
        self.write(bytes, address)
    }

    fn allocate_shared(&self, size: usize) -> Result<SharedBuffer, DeviceError> {
        self.new_shared(size)
    }

    fn check_shared_atomics(&self) -> Result<(), DeviceError> {
        self.try_atomics()
    }

    fn allocate_private(&self, size: usize) -> Result<u64, DeviceError> {
        self.new_private(size)
    }

    fn free_memory(&self) -> Result<u64, DeviceError> {
        self.enter()?;
        let (free, _) = check_cust("cuMemGetInfo", cust::memory::mem_get_info())?;
        Ok(free as u64)
    }

    fn reserve_heap(&self, size: u64) -> Result<(), DeviceError> {
        self.new_heap(size)
    }

    fn reserve_staging(&self) -> Result<(), DeviceError> {
        self.enter()?;
        self.copies.reserve()
    }

    fn launch(&self, kernel: &Kernel, grid: Grid) -> Result<(), DeviceError> {
        self.start(kernel, grid)
    }

    fn finished(&self) -> Result<bool, DeviceError> {
        self.query()
    }

    fn resource_usage(&self) -> Result<Vec<String>, DeviceError> {
        self.usage()
    }
}
