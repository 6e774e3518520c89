//! Results of the runtime's calls, and asking it for values.

use std::ffi::c_void;

use hsa_sys::{Api, HSA_STATUS_SUCCESS, hsa_status_t};
use loader_core::device::DeviceError;

/// Success, or the error of `call`.
pub(crate) fn check(
    api: &Api,
    call: &'static str,
    status: hsa_status_t,
) -> Result<(), DeviceError> {
    if status == HSA_STATUS_SUCCESS {
        return Ok(());
    }
    Err(DeviceError::Api {
        call,
        reason: hsa_sys::describe(api, status),
    })
}

/// What a call that takes a place for a value writes there; `value` is what lies there before.
pub(crate) fn ask<T: Copy>(
    api: &Api,
    call: &'static str,
    mut value: T,
    into: impl FnOnce(*mut c_void) -> hsa_status_t,
) -> Result<T, DeviceError> {
    let status = into((&raw mut value).cast());
    check(api, call, status).map(|()| value)
}

/// A callback that puts what is iterated over into the `Vec<T>` at `data`.
///
/// # Safety
/// `data` is a `Vec<T>` that nobody else uses meanwhile.
pub(crate) unsafe extern "C" fn collect<T>(item: T, data: *mut c_void) -> hsa_status_t {
    // SAFETY: the caller vouches for it.
    let all = unsafe { &mut *data.cast::<Vec<T>>() };
    all.push(item);
    HSA_STATUS_SUCCESS
}

/// Text with a NUL, or as long as there is room.
pub(crate) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0);
    let text = &bytes[..end.unwrap_or(bytes.len())];
    String::from_utf8_lossy(text).trim().to_owned()
}
