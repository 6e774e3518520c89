//! The device: opening it, what it is, closing it.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock};
use std::time::Instant;

use hsa_sys::{
    Api, HSA_AGENT_INFO_GRID_MAX_DIM, HSA_AGENT_INFO_GRID_MAX_SIZE, HSA_AGENT_INFO_WAVEFRONT_SIZE,
    HSA_AGENT_INFO_WORKGROUP_MAX_DIM, HSA_AGENT_INFO_WORKGROUP_MAX_SIZE,
    HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT, HSA_AMD_AGENT_INFO_MAX_WAVES_PER_CU, Started,
    hsa_agent_t,
};
use loader_core::cli::DeviceChoice;
use loader_core::device::{Device, DeviceError, DeviceInfo, Grid, Kernel, SharedBuffer, StartForm};
use loader_core::image::ImageKind;
use loader_core::report::Stage;
use rpc_types::image::GPU_KERNELS;

use crate::agents::{self, Agent, Kind, Pool, attribute_of};
use crate::copies::{Copies, Signal};
use crate::faults;
use crate::image::rank;
use crate::kernarg;
use crate::launch::{self, Queue};
use crate::load::Loaded;
use crate::memory::{Block, Memory, Side, lock};

/// Stack of each device thread with a stack of a size that the compiler does not know, unless
/// something else is asked for. Formatted output takes some 8 KiB.
pub const DEFAULT_STACK: u32 = 16 << 10;
/// The most stack of a wavefront that every GPU since gfx9 has registers to describe.
const WAVE_STACK: u64 = 8191 * 1024;

/// How a device is opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Which one: counted from 0 among the GPUs that the runtime shows, or the emulated one.
    pub device: DeviceChoice,
    /// Bytes of stack for each device thread; [`DEFAULT_STACK`] if not given.
    pub stack_size: Option<u64>,
    /// The runtime's library; if not given, what `hsa_sys::Api::load` finds.
    pub runtime: Option<PathBuf>,
}

/// The pools that memory comes from.
pub(crate) struct Places {
    pub(crate) host_agent: hsa_agent_t,
    /// What host and device both see.
    pub(crate) host: Pool,
    pub(crate) kernarg: Pool,
    pub(crate) device: Pool,
    pub(crate) heap: Pool,
}

/// An AMD device with at most one image.
///
/// Dropping it frees everything, whatever still runs on it; but no memory if a copy does not end.
pub struct AmdDevice {
    /// What opening it took.
    stages: Vec<Stage>,
    info: DeviceInfo,
    /// The same with the lanes that the loaded image is built for.
    pub(crate) loaded_info: OnceLock<DeviceInfo>,
    pub(crate) agent: hsa_agent_t,
    /// What its code may be built for.
    pub(crate) isas: Vec<String>,
    pub(crate) places: Places,
    pub(crate) stack: u32,
    /// Most threads of a grid in each dimension, and in all.
    pub(crate) grid_limit: ([u32; 3], u32),
    pub(crate) loaded: OnceLock<Loaded>,
    pub(crate) memory: Mutex<Memory>,
    pub(crate) queue: Queue,
    /// There until `drop`, like the image.
    pub(crate) copies: std::mem::ManuallyDrop<Copies>,
    // Last: nothing may be asked of the runtime behind its end.
    pub(crate) runtime: Started,
}

impl AmdDevice {
    /// Opens a device: loads and starts the runtime, looks for the GPU and its memory, creates the
    /// queue.
    ///
    /// # Errors
    /// [`DeviceError::Unavailable`] without a runtime, without a GPU, or without this one, each with
    /// its reason; [`DeviceError::Limit`] for a stack that is too large.
    pub fn open(options: &Options) -> Result<Self, DeviceError> {
        let (api, number) = crate::emulator::choose(options)?;
        let opened = Self::open_over(api, number, options.stack_size);
        opened.map_err(|error| crate::emulator::suggest(options.device, error))
    }

    /// As [`open`](Self::open), over this runtime, on its GPU `number`.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn open_over(api: Api, number: u32, stack_size: Option<u64>) -> Result<Self, DeviceError> {
        let mut stages = Vec::new();
        let mut began = Instant::now();
        let mut stage = |name| {
            stages.push(Stage::since(name, began));
            began = Instant::now();
        };
        let unavailable = |error: hsa_sys::StartError| DeviceError::Unavailable(error.to_string());
        let runtime = Started::new(api).map_err(unavailable)?;
        stage("runtime");
        let agents = agents::all(&runtime)?;
        let gpu = choose(&agents, number)?;
        let (info, grid_limit) = describe(&runtime, gpu)?;
        let stack = stack(stack_size, &info)?;
        let places = Places::find(&runtime, &agents, gpu)?;
        stage("agents");
        faults::watch(&runtime, gpu.handle)?;
        let copies = Copies::new(&runtime, &places.host, gpu.handle)?;
        let queue = match Queue::new(&runtime, gpu.handle) {
            Ok(queue) => queue,
            Err(error) => {
                copies.free(&runtime);
                return Err(error);
            }
        };
        stage("queue");
        Ok(Self {
            stages,
            info,
            loaded_info: OnceLock::new(),
            agent: gpu.handle,
            isas: gpu.isas.clone(),
            places,
            stack,
            grid_limit,
            loaded: OnceLock::new(),
            memory: Mutex::default(),
            queue,
            copies: std::mem::ManuallyDrop::new(copies),
            runtime,
        })
    }

    /// The fault that ended what ran here, if one did.
    pub(crate) fn fault(&self) -> Option<DeviceError> {
        faults::seen(&self.runtime, self.agent, self.queue.errors)
    }
}

impl fmt::Debug for AmdDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AmdDevice")
            .field("name", &self.info.name)
            .finish_non_exhaustive()
    }
}

impl Drop for AmdDevice {
    fn drop(&mut self) {
        // What still runs ends with the queue; only then its memory goes.
        self.queue.destroy(&self.runtime);
        // SAFETY: taken once, here; nothing uses it behind this.
        let copies = unsafe { std::mem::ManuallyDrop::take(&mut self.copies) };
        let over = copies.free(&self.runtime);
        let loaded = self.loaded.take();
        if !over {
            // A copy may still read or write any of it: it goes with the runtime, or the process.
            std::mem::forget(loaded);
            return;
        }
        if let Some(loaded) = loaded {
            loaded.free(&self.runtime);
        }
        let memory = std::mem::take(&mut *lock(&self.memory));
        for block in memory.shared.into_iter().chain(memory.private) {
            block.free(&self.runtime);
        }
    }
}

/// The GPU of that number.
fn choose(agents: &[Agent], number: u32) -> Result<&Agent, DeviceError> {
    let gpus: Vec<_> = agents
        .iter()
        .filter(|agent| agent.kind == Kind::Gpu)
        .collect();
    if gpus.is_empty() {
        let hidden = ["ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"]
            .into_iter()
            .find_map(|name| Some((name, std::env::var_os(name)?)));
        let why = hidden.map_or_else(String::new, |(name, list)| {
            format!(" ({name} is {:?})", list.display().to_string())
        });
        return Err(DeviceError::Unavailable(format!(
            "the HSA runtime shows no AMD GPU that runs kernels{why}"
        )));
    }
    gpus.get(number as usize).copied().ok_or_else(|| {
        DeviceError::Unavailable(format!(
            "there is no AMD GPU {number}: the HSA runtime shows {}, counted from 0",
            gpus.len()
        ))
    })
}

/// What the GPU is, and how many threads a grid may have.
fn describe(api: &Api, gpu: &Agent) -> Result<(DeviceInfo, ([u32; 3], u32)), DeviceError> {
    // SAFETY: the attributes asked for by this are 32-bit numbers.
    let number = |attribute| unsafe { attribute_of(api, gpu.handle, attribute, 0_u32) };
    // SAFETY: three 16-bit numbers.
    let block = unsafe {
        attribute_of(
            api,
            gpu.handle,
            HSA_AGENT_INFO_WORKGROUP_MAX_DIM,
            [0_u16; 3],
        )
    }?;
    // SAFETY: a `hsa_dim3_t`, three 32-bit numbers.
    let grid = unsafe { attribute_of(api, gpu.handle, HSA_AGENT_INFO_GRID_MAX_DIM, [0_u32; 3]) }?;
    let resident = number(HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT)?
        .saturating_mul(number(HSA_AMD_AGENT_INFO_MAX_WAVES_PER_CU)?);
    let lanes = number(HSA_AGENT_INFO_WAVEFRONT_SIZE)?;
    if !matches!(lanes, 32 | 64) {
        return Err(DeviceError::Unavailable(format!(
            "{} has wavefronts of {lanes} lanes, and 32 or 64 are known here",
            gpu.title()
        )));
    }
    let info = DeviceInfo {
        name: gpu.title(),
        lanes,
        resident_warps: resident.max(1),
        max_threads: number(HSA_AGENT_INFO_WORKGROUP_MAX_SIZE)?,
        max_block: block.map(u32::from),
        max_grid: grid,
    };
    Ok((info, (grid, number(HSA_AGENT_INFO_GRID_MAX_SIZE)?)))
}

/// Each thread's stack, in the steps that the hardware counts in.
fn stack(asked: Option<u64>, info: &DeviceInfo) -> Result<u32, DeviceError> {
    let most = WAVE_STACK / u64::from(info.lanes) / 16 * 16;
    match asked {
        None => Ok(DEFAULT_STACK),
        Some(asked) if asked <= most => Ok(asked.next_multiple_of(16) as u32),
        Some(asked) => Err(DeviceError::Limit {
            what: "--stack-size",
            asked,
            most,
            device: info.name.clone(),
        }),
    }
}

impl Places {
    fn find(api: &Api, agents: &[Agent], gpu: &Agent) -> Result<Self, DeviceError> {
        let missing =
            |what: &str| DeviceError::Unavailable(format!("{} has no {what}", gpu.title()));
        let host = |wanted: fn(&Pool) -> bool| {
            let mut pools = agents
                .iter()
                .filter(|agent| agent.kind == Kind::Cpu)
                .flat_map(|agent| agent.pools.iter().map(move |pool| (agent.handle, *pool)));
            pools.find(|(_, pool)| wanted(pool) && pool.admits(api, gpu.handle))
        };
        let kernarg = host(Pool::is_kernarg)
            .ok_or_else(|| missing("host memory for kernels' arguments that it can reach"))?;
        let fine = host(|pool| pool.is_fine_grained() && !pool.is_kernarg())
            .or_else(|| host(Pool::is_fine_grained))
            .ok_or_else(|| missing("fine-grained host memory that it can reach"))?;
        let own = |wanted: fn(&Pool) -> bool| gpu.pools.iter().copied().find(wanted);
        let device = own(Pool::is_coarse_grained)
            .or_else(|| own(Pool::is_fine_grained))
            .ok_or_else(|| missing("memory of its own that can be allocated"))?;
        Ok(Self {
            host_agent: fine.0,
            host: fine.1,
            kernarg: kernarg.1,
            device,
            heap: own(Pool::is_fine_grained).unwrap_or(device),
        })
    }
}

impl Device for AmdDevice {
    fn info(&self) -> &DeviceInfo {
        self.loaded_info.get().unwrap_or(&self.info)
    }

    fn fits(&self, kind: ImageKind, architecture: &str) -> Option<u32> {
        (kind == ImageKind::AmdGpu).then(|| rank(architecture, &self.isas))?
    }

    fn opening(&self) -> Vec<Stage> {
        self.stages.clone()
    }

    fn load(&self, image: &[u8]) -> Result<(), DeviceError> {
        self.load_image(image)
    }

    fn has_kernel(&self, kernel: &Kernel) -> bool {
        self.loaded
            .get()
            .is_some_and(|loaded| loaded.kernel(launch::name(kernel)).is_some())
    }

    fn start_form(&self) -> StartForm {
        let start = self
            .loaded
            .get()
            .and_then(|loaded| loaded.kernel(GPU_KERNELS.start));
        start.map_or(StartForm::Plain, |start| kernarg::start_form(&start.info))
    }

    fn check_plain(&self, name: &str) -> Result<(), DeviceError> {
        self.plain(name).map(drop)
    }

    fn launch_plain(&self, name: &str, grid: Grid) -> Result<(), DeviceError> {
        self.start_plain(name, grid)
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
        self.read(Side::Device, address, &mut bytes)?;
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
        self.write(bytes, Side::Device, address)
    }

    fn allocate_shared(&self, size: usize) -> Result<SharedBuffer, DeviceError> {
        self.new_shared(size)
    }

    fn check_shared_atomics(&self) -> Result<(), DeviceError> {
        // By the links, for hardware without atomics across one loses them silently.
        let links = self.places.host.links(&self.runtime, self.agent);
        if links.iter().all(|link| link.atomics32) {
            return Ok(());
        }
        Err(DeviceError::Unavailable(format!(
            "the link between {} and the host's memory carries no atomics, which the layout Compact \
             needs: build the image for the layout Line",
            self.info.name
        )))
    }

    fn allocate_private(&self, size: usize) -> Result<u64, DeviceError> {
        self.new_private(size)
    }

    /// Of the pool: HSA itself does not tell what is free.
    fn free_memory(&self) -> Result<u64, DeviceError> {
        Ok(self.places.heap.size as u64)
    }

    fn reserve_heap(&self, size: u64) -> Result<(), DeviceError> {
        self.new_heap(size)
    }

    fn reserve_staging(&self) -> Result<(), DeviceError> {
        self.copies
            .reserve(&self.runtime, &self.places.host, self.agent)
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

/// What a launch needs besides the image.
pub(crate) struct Ready {
    /// The kernel's arguments.
    pub(crate) arguments: Block,
    /// 1 while a kernel runs, then 0.
    pub(crate) done: Signal,
}
