//! Code objects: checked, loaded, their symbols.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::ptr::null;

use hsa_sys::{
    Api, HSA_AMD_AGENT_INFO_TIMESTAMP_FREQUENCY, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT,
    HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT, HSA_EXECUTABLE_SYMBOL_INFO_TYPE,
    HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS, HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_SIZE,
    HSA_PROFILE_FULL, HSA_STATUS_ERROR_INVALID_SYMBOL_NAME, HSA_SYMBOL_KIND_VARIABLE,
    hsa_code_object_reader_t, hsa_executable_symbol_info_t, hsa_executable_symbol_t,
    hsa_executable_t,
};
use loader_core::device::{DeviceError, DeviceInfo};
use loader_core::image::{self, ImageKind};
use rpc_types::image::GPU_KERNELS;

use crate::agents::attribute_of;
use crate::copies::Signal;
use crate::device::{AmdDevice, Ready};
use crate::hsa::{ask, check};
use crate::image::{CodeObject, KernelInfo, fits, processor};
use crate::memory::{Block, Side, lock};

/// A `u64` of images that LLVM's libc is linked into: ticks a second of the clock that it reads.
const CLOCK: &str = "__llvm_libc_clock_freq";

/// An image on a device.
pub(crate) struct Loaded {
    executable: hsa_executable_t,
    /// The runtime reads from it as long as the reader lives, debuggers as long as the executable.
    _image: Box<[u8]>,
    reader: hsa_code_object_reader_t,
    kernels: BTreeMap<String, LoadedKernel>,
    pub(crate) ready: Ready,
}

/// A kernel of an image.
pub(crate) struct LoadedKernel {
    pub(crate) info: KernelInfo,
    /// What a packet names it by.
    pub(crate) object: u64,
}

impl Loaded {
    pub(crate) fn kernel(&self, name: &str) -> Option<&LoadedKernel> {
        self.kernels.get(name)
    }

    /// The names of all kernels.
    pub(crate) fn kernels(&self) -> impl Iterator<Item = &str> {
        self.kernels.keys().map(String::as_str)
    }

    pub(crate) fn free(self, api: &Api) {
        self.ready.done.destroy(api);
        self.ready.arguments.free(api);
        // SAFETY: each is freed once, since this takes it, the executable first; no kernel runs.
        unsafe {
            (api.hsa_executable_destroy)(self.executable);
            (api.hsa_code_object_reader_destroy)(self.reader);
        }
    }
}

impl AmdDevice {
    pub(crate) fn load_image(&self, image: &[u8]) -> Result<(), DeviceError> {
        if self.loaded.get().is_some() {
            return Err(DeviceError::Image("an image is already loaded".to_owned()));
        }
        let object = self.check_image(image)?;
        let lanes = lanes(&object)?;
        let loaded = self.load_object(image, &object)?;
        let data = match self.data(&loaded, &object) {
            Ok(data) => data,
            Err(error) => {
                // Before the bytes that it reads from.
                loaded.free(&self.runtime);
                return Err(error);
            }
        };
        lock(&self.memory).globals = data;
        if let Some(lanes) = lanes {
            let info = DeviceInfo {
                lanes,
                ..loader_core::device::Device::info(self).clone()
            };
            // Set here only, and behind it no second image is loaded.
            let _ = self.loaded_info.set(info);
        }
        self.loaded.set(loaded).map_err(|loaded| {
            loaded.free(&self.runtime);
            DeviceError::Image("an image is already loaded".to_owned())
        })?;
        self.set_clock()
    }

    /// Tells the image how fast the GPU's steady clock ticks, if it asks: LLVM's libc has a guess
    /// only, by the target.
    fn set_clock(&self) -> Result<(), DeviceError> {
        let Some((address, 8)) = self.global(CLOCK)? else {
            return Ok(());
        };
        let attribute = HSA_AMD_AGENT_INFO_TIMESTAMP_FREQUENCY;
        // SAFETY: the frequency is a 64-bit number.
        match unsafe { attribute_of(&self.runtime, self.agent, attribute, 0_u64) } {
            Ok(hertz) if hertz > 0 => self.write(&hertz.to_le_bytes(), Side::Device, address),
            // A runtime that does not know it leaves the guess.
            _ => Ok(()),
        }
    }

    /// What the image is, if it is for this device.
    fn check_image(&self, image: &[u8]) -> Result<CodeObject, DeviceError> {
        let refused = |sentence: String| DeviceError::Image(format!("the image {sentence}"));
        match image::recognise(image) {
            Ok(ImageKind::AmdGpu) => {}
            Ok(other) => return Err(refused(format!("is {}, not for an AMD GPU", other.name()))),
            Err(reason) => return Err(refused(reason.to_string())),
        }
        let object = CodeObject::parse(image).map_err(refused)?;
        if self.isas.iter().any(|isa| fits(&object.target, isa)) {
            return Ok(object);
        }
        let names: Vec<_> = self.isas.iter().map(|isa| processor(isa)).collect();
        Err(refused(format!(
            "is built for {} and does not run on {}, which takes {}: build it for that target",
            processor(&object.target),
            self.info_name(),
            names.join(" or ")
        )))
    }

    fn info_name(&self) -> &str {
        &loader_core::device::Device::info(self).name
    }

    fn load_object(&self, image: &[u8], object: &CodeObject) -> Result<Loaded, DeviceError> {
        let api = &self.runtime;
        let image: Box<[u8]> = image.into();
        let mut reader = hsa_code_object_reader_t { handle: 0 };
        // SAFETY: the bytes stay where they are until the reader is destroyed, by `Unfinished` or
        // `Loaded`; `reader` is a place for a handle.
        let status = unsafe {
            (api.hsa_code_object_reader_create_from_memory)(
                image.as_ptr().cast(),
                image.len(),
                &raw mut reader,
            )
        };
        check(api, "hsa_code_object_reader_create_from_memory", status)?;
        let mut unfinished = Unfinished {
            api,
            reader: Some(reader),
            executable: None,
        };
        let mut executable = hsa_executable_t { handle: 0 };
        // SAFETY: no options; `executable` is a place for a handle.
        let status = unsafe {
            (api.hsa_executable_create_alt)(
                HSA_PROFILE_FULL,
                HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT,
                null(),
                &raw mut executable,
            )
        };
        check(api, "hsa_executable_create_alt", status)?;
        unfinished.executable = Some(executable);
        // SAFETY: executable, agent and reader exist; no options, and which code object it becomes
        // is not asked.
        let status = unsafe {
            (api.hsa_executable_load_agent_code_object)(
                executable,
                self.agent,
                reader,
                null(),
                std::ptr::null_mut(),
            )
        };
        refuse(api, status)?;
        // SAFETY: the executable exists and is not frozen yet.
        refuse(api, unsafe {
            (api.hsa_executable_freeze)(executable, null())
        })?;
        let valid = ask(api, "hsa_executable_validate", 0_u32, |place| {
            // SAFETY: the executable exists; the result is a 32-bit number.
            unsafe { (api.hsa_executable_validate)(executable, place.cast()) }
        })?;
        if valid != 0 {
            return Err(DeviceError::Image(
                "the HSA runtime does not find the image valid".to_owned(),
            ));
        }
        let kernels = self.kernels(executable, object)?;
        let most = kernels.values().map(|kernel| kernel.info.kernarg).max();
        let arguments = Block::of_host(
            api,
            &self.places.kernarg,
            self.agent,
            most.unwrap_or(0) as usize,
        )?;
        let done = match Signal::new(api, 0) {
            Ok(done) => done,
            Err(error) => {
                arguments.free(api);
                return Err(error);
            }
        };
        unfinished.keep();
        Ok(Loaded {
            executable,
            _image: image,
            reader,
            kernels,
            ready: Ready { arguments, done },
        })
    }

    /// The kernels of the image.
    fn kernels(
        &self,
        executable: hsa_executable_t,
        object: &CodeObject,
    ) -> Result<BTreeMap<String, LoadedKernel>, DeviceError> {
        let mut kernels = BTreeMap::new();
        for info in &object.kernels {
            let Some(symbol) = self.symbol(executable, &info.symbol)? else {
                continue;
            };
            let attribute = HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT;
            // SAFETY: the kernel object is a 64-bit number.
            let object = unsafe { self.symbol_info(symbol, attribute, 0_u64) }?;
            let info = info.clone();
            kernels.insert(info.name.clone(), LoadedKernel { info, object });
        }
        Ok(kernels)
    }

    /// Where the image's writable data lies. The runtime puts an image's segments as far from each
    /// other as the image has them, so one global tells where all lie.
    fn data(
        &self,
        loaded: &Loaded,
        object: &CodeObject,
    ) -> Result<Vec<std::ops::Range<u64>>, DeviceError> {
        for (name, place) in &object.globals {
            if !object.data.iter().any(|range| range.contains(place)) {
                continue;
            }
            if let Some((address, _)) = self.variable(loaded.executable, name)? {
                let base = address.wrapping_sub(*place);
                let moved = |at: u64| at.wrapping_add(base);
                let ranges = object
                    .data
                    .iter()
                    .map(|data| moved(data.start)..moved(data.end));
                return Ok(ranges.filter(|range| range.start <= range.end).collect());
            }
        }
        Ok(Vec::new())
    }

    /// Address and size of a global of the image.
    pub(crate) fn global(&self, name: &str) -> Result<Option<(u64, usize)>, DeviceError> {
        self.variable(self.loaded()?.executable, name)
    }

    fn variable(
        &self,
        executable: hsa_executable_t,
        name: &str,
    ) -> Result<Option<(u64, usize)>, DeviceError> {
        let Some(symbol) = self.symbol(executable, name)? else {
            return Ok(None);
        };
        // SAFETY: the kind is a 32-bit number.
        let kind = unsafe { self.symbol_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_TYPE, 0_u32) }?;
        if kind != HSA_SYMBOL_KIND_VARIABLE {
            return Ok(None);
        }
        let attribute = HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS;
        // SAFETY: the address is a 64-bit number.
        let address = unsafe { self.symbol_info(symbol, attribute, 0_u64) }?;
        let attribute = HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_SIZE;
        // SAFETY: the size is a 32-bit number.
        let size = unsafe { self.symbol_info(symbol, attribute, 0_u32) }?;
        Ok(Some((address, size as usize)))
    }

    fn symbol(
        &self,
        executable: hsa_executable_t,
        name: &str,
    ) -> Result<Option<hsa_executable_symbol_t>, DeviceError> {
        let api = &self.runtime;
        let Ok(name) = CString::new(name) else {
            return Ok(None);
        };
        let mut symbol = hsa_executable_symbol_t { handle: 0 };
        // SAFETY: the executable exists, the name ends with a NUL, the agent is the one it was
        // loaded for, and `symbol` is a place for a handle.
        let status = unsafe {
            (api.hsa_executable_get_symbol_by_name)(
                executable,
                name.as_ptr(),
                &raw const self.agent,
                &raw mut symbol,
            )
        };
        if status == HSA_STATUS_ERROR_INVALID_SYMBOL_NAME {
            return Ok(None);
        }
        check(api, "hsa_executable_get_symbol_by_name", status).map(|()| Some(symbol))
    }

    /// An attribute of a symbol.
    ///
    /// # Safety
    /// The attribute is of `value`'s type.
    unsafe fn symbol_info<T: Copy>(
        &self,
        symbol: hsa_executable_symbol_t,
        attribute: hsa_executable_symbol_info_t,
        value: T,
    ) -> Result<T, DeviceError> {
        let api = &self.runtime;
        ask(api, "hsa_executable_symbol_get_info", value, |place| {
            // SAFETY: the symbol was just looked up; the caller vouches for the place.
            unsafe { (api.hsa_executable_symbol_get_info)(symbol, attribute, place) }
        })
    }

    pub(crate) fn loaded(&self) -> Result<&Loaded, DeviceError> {
        self.loaded
            .get()
            .ok_or_else(|| DeviceError::Image("no image is loaded".to_owned()))
    }
}

/// The lanes of the warps that the image is built for; the device's own if it has no kernels.
fn lanes(object: &CodeObject) -> Result<Option<u32>, DeviceError> {
    let start = object.kernel(GPU_KERNELS.start);
    let Some(kernel) = start.or_else(|| object.kernels.first()) else {
        return Ok(None);
    };
    match kernel.lanes {
        0 => Ok(None),
        lanes @ (32 | 64) => Ok(Some(lanes)),
        lanes => Err(DeviceError::Image(format!(
            "the image is built for wavefronts of {lanes} lanes, and 32 or 64 are known here"
        ))),
    }
}

/// What the runtime said to the image.
fn refuse(api: &Api, status: hsa_sys::hsa_status_t) -> Result<(), DeviceError> {
    if status == hsa_sys::HSA_STATUS_SUCCESS {
        return Ok(());
    }
    Err(DeviceError::Image(format!(
        "the HSA runtime refused the image with {}",
        hsa_sys::describe(api, status)
    )))
}

/// What there is of an image until all of it is.
struct Unfinished<'a> {
    api: &'a Api,
    reader: Option<hsa_code_object_reader_t>,
    executable: Option<hsa_executable_t>,
}

impl Unfinished<'_> {
    /// It is whole now, and somebody else's.
    fn keep(&mut self) {
        (self.reader, self.executable) = (None, None);
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        // SAFETY: made by the calls of `load_object`, destroyed once, the executable first.
        unsafe {
            if let Some(executable) = self.executable {
                (self.api.hsa_executable_destroy)(executable);
            }
            if let Some(reader) = self.reader {
                (self.api.hsa_code_object_reader_destroy)(reader);
            }
        }
    }
}
