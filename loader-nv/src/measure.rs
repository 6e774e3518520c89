//! What the driver and the copy engine take by themselves: what measurements are compared to.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::time::{Duration, Instant};

use cust::context::{Context, CurrentContext};
use cust::device::Device as CustDevice;
use cust::sys;
use loader_core::device::DeviceError;

use crate::cuda::{Module, Pinned, Private, Stream, check, check_cust};
use crate::device::CudaDevice;

/// An image with nothing in it.
const EMPTY: &[u8] = b".version 6.0\n.target sm_70\n.address_size 64\n\0";

/// Creates a context on a device and loads an empty image, as every program that uses CUDA must at
/// least.
///
/// # Errors
/// [`DeviceError::Unavailable`] without a driver, else what the driver says.
pub fn empty_context(device: u32) -> Result<(), DeviceError> {
    cuda_shim::available().map_err(|reason| DeviceError::Unavailable(reason.to_string()))?;
    check_cust("cuInit", cust::init(cust::CudaFlags::empty()))?;
    let device = check_cust("cuDeviceGet", CustDevice::get_device(device))?;
    let context = check_cust("cuDevicePrimaryCtxRetain", Context::new(device))?;
    check_cust("cuCtxSetCurrent", CurrentContext::set_current(&context))?;
    let mut module = null_mut();
    // SAFETY: `module` is a place for a handle, the image ends with a NUL, and there are no options.
    let result = unsafe {
        sys::cuModuleLoadDataEx(
            &raw mut module,
            EMPTY.as_ptr().cast::<c_void>(),
            0,
            null_mut(),
            null_mut(),
        )
    };
    check("cuModuleLoadDataEx", result)?;
    drop(Module(module));
    Ok(())
}

/// Which way a copy goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the device to page-locked host memory.
    ToHost,
    /// From page-locked host memory to the device.
    ToDevice,
}

/// Copies of one size between device memory and page-locked host memory, on a stream of their own.
pub struct Copies<'d> {
    device: &'d CudaDevice,
    // Freed in this order: the stream first.
    stream: Stream,
    pinned: Pinned,
    private: Private,
}

impl CudaDevice {
    /// Memory for copies of `bytes` bytes.
    ///
    /// # Errors
    /// When the driver refuses it.
    pub fn copies(&self, bytes: usize) -> Result<Copies<'_>, DeviceError> {
        self.enter()?;
        Ok(Copies {
            device: self,
            stream: Stream::new()?,
            pinned: Pinned::new(bytes)?,
            private: Private::new(bytes as u64)?,
        })
    }
}

impl Copies<'_> {
    /// How long `count` copies take, each waited for.
    ///
    /// # Errors
    /// What the driver says.
    pub fn time(&self, direction: Direction, count: u32) -> Result<Duration, DeviceError> {
        self.device.enter()?;
        let begun = Instant::now();
        for _ in 0..count {
            self.copy(direction)?;
        }
        Ok(begun.elapsed())
    }

    /// Whether bytes go to the device and come back as they were.
    ///
    /// # Errors
    /// What the driver says.
    pub fn check(&self) -> Result<bool, DeviceError> {
        const SENT: u8 = 0xA5;
        self.device.enter()?;
        self.fill(SENT);
        self.copy(Direction::ToDevice)?;
        self.fill(!SENT);
        self.copy(Direction::ToHost)?;
        let host = self.pinned.host.as_ptr();
        // SAFETY: the buffer's bytes, which `fill` has initialised; no copy is under way.
        let bytes = unsafe { std::slice::from_raw_parts(host, self.pinned.size) };
        Ok(bytes.iter().all(|&byte| byte == SENT))
    }

    fn fill(&self, byte: u8) {
        // SAFETY: the buffer belongs to `self`, and no copy is under way: each is waited for.
        unsafe { self.pinned.host.write_bytes(byte, self.pinned.size) };
    }

    fn copy(&self, direction: Direction) -> Result<(), DeviceError> {
        let (host, device) = (self.pinned.host.as_ptr().cast(), self.private.address);
        let (size, stream) = (self.pinned.size, self.stream.raw());
        // SAFETY: both buffers have `size` bytes, belong to `self`, and are left alone until the
        // stream is done, which is waited for.
        let result = unsafe {
            match direction {
                Direction::ToHost => sys::cuMemcpyDtoHAsync_v2(host, device, size, stream),
                Direction::ToDevice => sys::cuMemcpyHtoDAsync_v2(device, host, size, stream),
            }
        };
        check("cuMemcpyAsync", result)?;
        self.stream.synchronize()
    }
}
