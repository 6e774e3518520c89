//! The runtime's start and end, and why there is no GPU.

use std::ffi::{CStr, c_char};
use std::fs::OpenOptions;
use std::io::{self, ErrorKind};
use std::ops::Deref;
use std::ptr::null;

use thiserror::Error;

use crate::{Api, HSA_STATUS_SUCCESS, hsa_status_t};

/// The file through which the runtime reaches the GPUs.
const KFD: &str = "/dev/kfd";

/// Why the runtime did not start.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum StartError {
    /// The system has no driver for AMD GPUs, or none is in use.
    #[error(
        "there is no AMD GPU (no /dev/kfd): load the driver (modprobe amdgpu), or hand the file to \
         the container (--device /dev/kfd --device /dev/dri)"
    )]
    NoDevice,
    /// This user may not use it.
    #[error(
        "/dev/kfd may not be opened by this user (permission denied): add the user to the groups \
         render and video and log in again"
    )]
    Permission,
    /// Something else.
    #[error("the HSA runtime could not start: {0}")]
    Runtime(String),
}

/// A runtime between `hsa_init` and `hsa_shut_down`, which dropping this calls.
#[derive(Debug)]
pub struct Started {
    api: Api,
}

impl Started {
    /// Starts the runtime. It counts how often; each of these is one.
    ///
    /// # Errors
    /// With the reason, as far as it can be told.
    pub fn new(api: Api) -> Result<Self, StartError> {
        // SAFETY: `hsa_init` has no preconditions.
        match unsafe { (api.hsa_init)() } {
            HSA_STATUS_SUCCESS => Ok(Self { api }),
            status => {
                let opened = OpenOptions::new().read(true).write(true).open(KFD);
                Err(reason(opened.map(drop), describe(&api, status)))
            }
        }
    }
}

impl Deref for Started {
    type Target = Api;

    fn deref(&self) -> &Api {
        &self.api
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // SAFETY: the runtime was started by `new`, and this is its one end.
        unsafe { (self.api.hsa_shut_down)() };
    }
}

/// The runtime gives the same status, out of resources, whatever keeps it from the device's file.
fn reason(opened: io::Result<()>, status: String) -> StartError {
    match opened.map_err(|error| error.kind()) {
        Err(ErrorKind::NotFound) => StartError::NoDevice,
        Err(ErrorKind::PermissionDenied) => StartError::Permission,
        _ => StartError::Runtime(status),
    }
}

/// A status by its number and the runtime's words, in one line.
pub fn describe(api: &Api, status: hsa_status_t) -> String {
    let mut text: *const c_char = null();
    // SAFETY: `text` is a place for a pointer. This one function may be called before the start.
    let result = unsafe { (api.hsa_status_string)(status, &raw mut text) };
    if result != HSA_STATUS_SUCCESS || text.is_null() {
        return format!("HSA status {status:#x}");
    }
    // SAFETY: the runtime gave a string that ends with a NUL and is never freed.
    let words = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("HSA status {status:#x} ({})", words.trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_keeps_the_runtime_from_the_device_is_told_apart() {
        let by = |kind: ErrorKind| reason(Err(kind.into()), "HSA status 0x1008".to_owned());
        assert!(by(ErrorKind::NotFound).to_string().contains("no /dev/kfd"));
        let said = by(ErrorKind::PermissionDenied).to_string();
        assert!(said.contains("render and video"), "{said}");
        assert_eq!(
            reason(Ok(()), "HSA status 0x1008".to_owned()).to_string(),
            "the HSA runtime could not start: HSA status 0x1008"
        );
    }
}
