//! Results of driver calls, and handles that give back what they hold.

use std::ptr::{NonNull, null_mut};

use cust::error::{CudaError, CudaResult};
use cust::sys::{self, CUresult};
use loader_core::device::DeviceError;

/// `CUDA_ERROR_NOT_FOUND`.
pub(crate) const NOT_FOUND: u32 = CUresult::CUDA_ERROR_NOT_FOUND as u32;
/// `CUDA_ERROR_NOT_READY`.
pub(crate) const NOT_READY: u32 = CUresult::CUDA_ERROR_NOT_READY as u32;

/// The driver's own number for a result: 0 for success.
pub(crate) fn code(result: CUresult) -> u32 {
    match result {
        CUresult::CUDA_ERROR_UNKNOWN => cuda_shim::last_raw_error(),
        other => other as u32,
    }
}

/// Whether this code says that a kernel did something illegal (or its device broke), whichever
/// call reports it: all later calls give it too.
fn is_fault(code: u32) -> bool {
    // ECC, NVLink, contained; illegal address; time-out; assert; stack, instruction, alignment,
    // address space, program counter, launch failed (a trap); tensor memory leak.
    matches!(code, 214 | 220 | 226 | 700 | 702 | 710 | 714..=719 | 721)
}

/// The error for a code that is not success.
pub(crate) fn error(call: &'static str, code: u32) -> DeviceError {
    let reason = cuda_shim::describe(code);
    if is_fault(code) {
        DeviceError::Fault(reason)
    } else {
        DeviceError::Api { call, reason }
    }
}

/// Success, or the error of `call`.
pub(crate) fn check(call: &'static str, result: CUresult) -> Result<(), DeviceError> {
    match code(result) {
        0 => Ok(()),
        code => Err(error(call, code)),
    }
}

/// The same for what `cust` returns.
pub(crate) fn check_cust<T>(call: &'static str, result: CudaResult<T>) -> Result<T, DeviceError> {
    result.map_err(|failed| error(call, cust_code(failed)))
}

/// The driver's own number for an error of `cust`.
pub(crate) fn cust_code(error: CudaError) -> u32 {
    match error {
        CudaError::UnknownError => cuda_shim::last_raw_error(),
        other => other as u32,
    }
}

/// A stream that does not wait for the legacy stream, nor the other way round. `cust`'s own type
/// drops that flag, and copies would then queue behind the running kernel.
pub(crate) struct Stream(sys::CUstream);

// SAFETY: a stream is a handle that the driver allows any thread to use, several at once.
unsafe impl Send for Stream {}
// SAFETY: as above; the driver locks what it has to.
unsafe impl Sync for Stream {}

impl Stream {
    pub(crate) fn new() -> Result<Self, DeviceError> {
        let flags = sys::CUstream_flags_enum::CU_STREAM_NON_BLOCKING as u32;
        let mut stream = null_mut();
        // SAFETY: `stream` is a place for a handle. Without a current context the call fails.
        check("cuStreamCreate", unsafe {
            sys::cuStreamCreate(&raw mut stream, flags)
        })?;
        Ok(Self(stream))
    }

    pub(crate) fn raw(&self) -> sys::CUstream {
        self.0
    }

    /// Waits until everything in the stream is done.
    pub(crate) fn synchronize(&self) -> Result<(), DeviceError> {
        // SAFETY: the stream exists until `self` is dropped.
        check("cuStreamSynchronize", unsafe {
            sys::cuStreamSynchronize(self.0)
        })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: made by `new`, destroyed once. A failure (a fault before) leaves nothing to do.
        unsafe { sys::cuStreamDestroy_v2(self.0) };
    }
}

/// Tells when what was put into a stream before it is done.
pub(crate) struct Event(sys::CUevent);

// SAFETY: an event is a handle that the driver allows any thread to use.
unsafe impl Send for Event {}

impl Event {
    pub(crate) fn new() -> Result<Self, DeviceError> {
        let flags = sys::CUevent_flags_enum::CU_EVENT_DISABLE_TIMING as u32;
        let mut event = null_mut();
        // SAFETY: `event` is a place for a handle.
        check("cuEventCreate", unsafe {
            sys::cuEventCreate(&raw mut event, flags)
        })?;
        Ok(Self(event))
    }

    /// Puts the event into the stream, anew.
    pub(crate) fn record(&mut self, stream: &Stream) -> Result<(), DeviceError> {
        // SAFETY: both exist until they are dropped.
        check("cuEventRecord", unsafe {
            sys::cuEventRecord(self.0, stream.raw())
        })
    }

    /// Whether the stream has come to it; never waits.
    pub(crate) fn is_done(&self) -> Result<bool, DeviceError> {
        // SAFETY: the event exists until `self` is dropped.
        let result = unsafe { sys::cuEventQuery(self.0) };
        if code(result) == NOT_READY {
            return Ok(false);
        }
        check("cuEventQuery", result)?;
        Ok(true)
    }

    /// Waits until the stream has come to it.
    pub(crate) fn synchronize(&self) -> Result<(), DeviceError> {
        // SAFETY: as above.
        check("cuEventSynchronize", unsafe {
            sys::cuEventSynchronize(self.0)
        })
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: made by `new`, destroyed once.
        unsafe { sys::cuEventDestroy_v2(self.0) };
    }
}

/// Page-locked host memory that the device reaches, zeroed.
pub(crate) struct Pinned {
    pub(crate) host: NonNull<u8>,
    pub(crate) device: u64,
    pub(crate) size: usize,
}

// SAFETY: it is plain memory, of which this is the only owner; the driver frees it from any
// thread. Who reads and writes it when is the business of those who take its address.
unsafe impl Send for Pinned {}

impl Pinned {
    pub(crate) fn new(size: usize) -> Result<Self, DeviceError> {
        let flags = sys::CU_MEMHOSTALLOC_PORTABLE | sys::CU_MEMHOSTALLOC_DEVICEMAP;
        let (mut host, mut device) = (null_mut(), 0);
        // SAFETY: `host` is a place for a pointer.
        let result = unsafe { sys::cuMemHostAlloc(&raw mut host, size.max(1), flags) };
        check("cuMemHostAlloc", result)?;
        let Some(host) = NonNull::new(host.cast::<u8>()) else {
            return Err(error(
                "cuMemHostAlloc",
                CUresult::CUDA_ERROR_OUT_OF_MEMORY as u32,
            ));
        };
        let mut pinned = Self {
            host,
            device: 0,
            size,
        };
        // SAFETY: the driver gave `size` bytes that nobody else knows of yet.
        unsafe { host.write_bytes(0, size) };
        // SAFETY: `device` is a place for an address, `host` was mapped just now.
        let result =
            unsafe { sys::cuMemHostGetDevicePointer_v2(&raw mut device, host.as_ptr().cast(), 0) };
        check("cuMemHostGetDevicePointer", result)?;
        pinned.device = device;
        Ok(pinned)
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // SAFETY: made by cuMemHostAlloc, freed once. The call waits for kernels, so none that
        // still runs loses memory that it uses.
        unsafe { sys::cuMemFreeHost(self.host.as_ptr().cast()) };
    }
}

/// Memory of the device.
pub(crate) struct Private {
    pub(crate) address: u64,
    pub(crate) size: u64,
}

impl Private {
    pub(crate) fn new(size: u64) -> Result<Self, DeviceError> {
        let mut address = 0;
        // SAFETY: `address` is a place for an address.
        let result = unsafe { sys::cuMemAlloc_v2(&raw mut address, size.max(1) as usize) };
        check("cuMemAlloc", result)?;
        Ok(Self { address, size })
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        // SAFETY: made by cuMemAlloc, freed once. The call waits for kernels.
        unsafe { sys::cuMemFree_v2(self.address) };
    }
}

/// A loaded image.
pub(crate) struct Module(pub(crate) sys::CUmodule);

// SAFETY: a handle that any thread may use; the driver locks what it has to.
unsafe impl Send for Module {}
// SAFETY: as above.
unsafe impl Sync for Module {}

impl Drop for Module {
    fn drop(&mut self) {
        // SAFETY: made by cuModuleLoadDataEx, unloaded once; its functions and globals are looked
        // up anew for each use, so none outlives it.
        unsafe { sys::cuModuleUnload(self.0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_told_from_failures() {
        assert!(matches!(error("x", 700), DeviceError::Fault(_)));
        let trap = error("cuStreamQuery", 719).to_string();
        assert!(
            trap.starts_with("the program faulted on the device: CUDA error 719 (CUDA_ERROR_LAUN"),
            "{trap}"
        );
        for code in [1, 2, 100, 209, 218, 500, 600, 701, 720, 999] {
            assert!(
                matches!(error("x", code), DeviceError::Api { .. }),
                "{code}"
            );
        }
    }
}
