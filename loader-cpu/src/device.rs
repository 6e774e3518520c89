//! The device: opening it, what it is, what it does.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use loader_core::device::{Device, DeviceError, DeviceInfo, Grid, Kernel, SharedBuffer};
use loader_core::image::ImageKind;
use loader_core::program::{Backend, DeviceOptions};
use rpc_server::{DeviceMemory, MemoryError, Staging};
use rpc_types::image::CPU_KERNELS;

use crate::builtin::BuiltinImage;
use crate::fault;
use crate::image::Image;
use crate::launch::{Entry, Launch, RESIDENT};
use crate::memory::Memory;
use crate::staging::{Buffers, Staged};

/// Stack of each device thread unless something else is asked for.
pub const DEFAULT_STACK: u64 = 1 << 20;
/// The largest stack of a device thread.
pub const MAX_STACK: u64 = 1 << 30;

/// The CPU device, for loaders to choose.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cpu;

impl Backend for Cpu {
    fn accepts(&self, kind: ImageKind) -> bool {
        kind == ImageKind::X86_64
    }

    fn open(&self, _: ImageKind, options: &DeviceOptions) -> Result<Box<dyn Device>, DeviceError> {
        // Whoever lets a loader choose has one image to run, and nothing else to do.
        fault::own_process();
        Ok(Box::new(CpuDevice::open(options)?))
    }
}

/// The CPU as a device with at most one image.
///
/// Dropped while a kernel runs, it leaves its memory to that.
pub struct CpuDevice {
    info: DeviceInfo,
    stack: usize,
    image: OnceLock<Image>,
    pub(crate) memory: Memory,
    pub(crate) buffers: Buffers,
    launch: Mutex<Option<Arc<Launch>>>,
}

impl CpuDevice {
    /// Opens the device.
    ///
    /// # Errors
    /// [`DeviceError::Unavailable`] for any device but number 0; [`DeviceError::Limit`] for a stack
    /// that is too large.
    pub fn open(options: &DeviceOptions) -> Result<Self, DeviceError> {
        let number = options.device.number("x86-64 images")?;
        if number != 0 {
            return Err(DeviceError::Unavailable(format!(
                "there is no CPU device {number}: there is one, and its number is 0"
            )));
        }
        let info = DeviceInfo {
            name: "the CPU device".to_owned(),
            lanes: 1,
            resident_warps: RESIDENT,
            max_threads: 1024,
            max_block: [1024, 1024, 64],
            max_grid: [i32::MAX as u32, 65535, 65535],
        };
        let stack = options.stack_size.unwrap_or(DEFAULT_STACK);
        if stack > MAX_STACK {
            return Err(DeviceError::Limit {
                what: "--stack-size",
                asked: stack,
                most: MAX_STACK,
                device: info.name,
            });
        }
        Ok(Self {
            info,
            stack: stack as usize,
            image: OnceLock::new(),
            memory: Memory::default(),
            buffers: Buffers::default(),
            launch: Mutex::default(),
        })
    }

    /// Opens the device with a program that is linked into this one; [`Device::load`] then does
    /// nothing.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    ///
    /// # Safety
    /// The functions are kernels of the image ABI: called with its arguments they do what they
    /// may, and return without unwinding. `client` points to a descriptor that lives as long as
    /// the process, and that only those functions and this device access.
    pub unsafe fn builtin(
        options: &DeviceOptions,
        image: BuiltinImage,
    ) -> Result<Self, DeviceError> {
        let device = Self::open(options)?;
        // It was empty.
        let _ = device.image.set(Image::builtin(image));
        Ok(device)
    }

    fn image(&self) -> Result<&Image, DeviceError> {
        let none = || DeviceError::Image("no image is loaded".to_owned());
        self.image.get().ok_or_else(none)
    }

    fn kernels(&self) -> BuiltinImage {
        self.image
            .get()
            .map(|image| image.kernels)
            .unwrap_or_default()
    }

    fn plain(&self, name: &str) -> Result<Entry, DeviceError> {
        if [CPU_KERNELS.begin, CPU_KERNELS.start].contains(&name) {
            return Err(DeviceError::not_plain(name, "the program's arguments"));
        }
        let image = self.image()?;
        let none = || DeviceError::no_kernel(name, image.functions());
        image.plain(name).map(Entry::Plain).ok_or_else(none)
    }

    fn start(&self, entry: Entry, grid: Grid) -> Result<(), DeviceError> {
        self.info.check(grid)?;
        if self.running() {
            return Err(DeviceError::Api {
                call: "launch",
                reason: "a kernel is running".to_owned(),
            });
        }
        fault::install();
        let launch = Launch::start(entry, grid, self.stack).map_err(|error| DeviceError::Api {
            call: "starting a device thread",
            reason: error.to_string(),
        })?;
        *self.launched() = Some(launch);
        Ok(())
    }

    fn launched(&self) -> std::sync::MutexGuard<'_, Option<Arc<Launch>>> {
        self.launch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn running(&self) -> bool {
        self.launched()
            .as_ref()
            .is_some_and(|launch| !launch.finished())
    }
}

impl Drop for CpuDevice {
    fn drop(&mut self) {
        if self.running() {
            self.memory.leak();
        }
    }
}

/// The error of a global that is not as large as it should be.
fn wrong_size(name: &str, actual: usize, needed: usize) -> DeviceError {
    DeviceError::Image(format!(
        "the image's {name} has {actual} bytes where {needed} are needed"
    ))
}

/// The error of a copy.
fn copy_failed(error: &MemoryError) -> DeviceError {
    DeviceError::Image(format!("the image's globals cannot be used: {error}"))
}

impl Device for CpuDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn fits(&self, kind: ImageKind, _: &str) -> Option<u32> {
        (kind == ImageKind::X86_64).then_some(0)
    }

    fn load(&self, image: &[u8]) -> Result<(), DeviceError> {
        match self.image.get() {
            // A program that is linked in, loaded as it is.
            Some(_) if image.is_empty() => Ok(()),
            Some(_) => Err(DeviceError::Image("an image is already loaded".to_owned())),
            None => self
                .image
                .set(Image::load(image)?)
                .map_err(|_| DeviceError::Image("an image is already loaded".to_owned())),
        }
    }

    fn has_kernel(&self, kernel: &Kernel) -> bool {
        Entry::of(self.kernels(), kernel).is_some()
    }

    fn check_plain(&self, name: &str) -> Result<(), DeviceError> {
        self.plain(name).map(drop)
    }

    fn launch_plain(&self, name: &str, grid: Grid) -> Result<(), DeviceError> {
        self.start(self.plain(name)?, grid)
    }

    fn global_size(&self, name: &str) -> Result<Option<u64>, DeviceError> {
        Ok(self.image()?.global(name).map(|(_, size)| size as u64))
    }

    fn read_global(&self, name: &str, size: usize) -> Result<Option<Vec<u8>>, DeviceError> {
        let Some((address, actual)) = self.image()?.global(name) else {
            return Ok(None);
        };
        if actual != size {
            return Err(wrong_size(name, actual, size));
        }
        let mut bytes = vec![0; size];
        self.memory
            .read(address as u64, &mut bytes)
            .map_err(|error| copy_failed(&error))?;
        Ok(Some(bytes))
    }

    fn write_global(&self, name: &str, bytes: &[u8]) -> Result<(), DeviceError> {
        let missing = || DeviceError::Missing(name.to_owned());
        let (address, actual) = self.image()?.global(name).ok_or_else(missing)?;
        if actual < bytes.len() {
            return Err(wrong_size(name, actual, bytes.len()));
        }
        self.memory
            .write(bytes, address as u64)
            .map_err(|error| copy_failed(&error))
    }

    fn allocate_shared(&self, size: usize) -> Result<SharedBuffer, DeviceError> {
        let host = self.memory.new_block(size)?;
        Ok(SharedBuffer {
            host,
            device: host.as_ptr().expose_provenance() as u64,
            size,
        })
    }

    fn allocate_private(&self, size: usize) -> Result<u64, DeviceError> {
        let block = self.memory.new_block(size)?;
        Ok(block.as_ptr().expose_provenance() as u64)
    }

    fn reserve_heap(&self, size: u64) -> Result<(), DeviceError> {
        self.memory.reserve_heap(size)
    }

    fn launch(&self, kernel: &Kernel, grid: Grid) -> Result<(), DeviceError> {
        let Some(entry) = Entry::of(self.kernels(), kernel) else {
            let name = match kernel {
                Kernel::Begin { .. } => CPU_KERNELS.begin,
                Kernel::Start { .. } | Kernel::StartOver { .. } => CPU_KERNELS.start,
                Kernel::End => CPU_KERNELS.end,
            };
            return Err(DeviceError::Missing(name.to_owned()));
        };
        self.start(entry, grid)
    }

    fn finished(&self) -> Result<bool, DeviceError> {
        match fault::seen() {
            Some(sentence) => Err(DeviceError::Fault(sentence)),
            None => Ok(!self.running()),
        }
    }

    fn resource_usage(&self) -> Result<Vec<String>, DeviceError> {
        Ok(vec![format!(
            "{}: {} bytes of stack a thread, at most {RESIDENT} threads at a time",
            self.info.name, self.stack
        )])
    }
}

impl DeviceMemory for CpuDevice {
    fn allocate(&self, size: u64) -> Option<u64> {
        self.memory.allocate(size)
    }

    fn free(&self, address: u64) -> bool {
        self.memory.free(address)
    }

    fn copy_to_host(&self, from: u64, into: &mut [u8]) -> Result<(), MemoryError> {
        self.memory.read(from, into)
    }

    fn copy_to_device(&self, from: &[u8], to: u64) -> Result<(), MemoryError> {
        self.memory.write(from, to)
    }

    fn staging(self: Arc<Self>) -> Option<Box<dyn Staging>> {
        Staged::lend(self).map(|staged| Box::new(staged) as Box<dyn Staging>)
    }
}
