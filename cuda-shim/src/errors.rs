//! Result codes: those that the bindings know, those that they do not, and words for both.

use std::cell::Cell;
use std::ffi::{CStr, CString, c_char};
use std::sync::Mutex;

use cust_raw::cudaError_enum;

use crate::driver::symbol;

macro_rules! codes {
    ($($name:ident),* $(,)?) => {
        /// Each code that the bindings' Rust enum has, with its name.
        const KNOWN: &[(u32, &CStr)] = &[$((
            cudaError_enum::$name as u32,
            match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => c"",
            },
        )),*];
    };
}

codes! {
    CUDA_SUCCESS, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_NOT_INITIALIZED,
    CUDA_ERROR_DEINITIALIZED, CUDA_ERROR_PROFILER_DISABLED, CUDA_ERROR_PROFILER_NOT_INITIALIZED,
    CUDA_ERROR_PROFILER_ALREADY_STARTED, CUDA_ERROR_PROFILER_ALREADY_STOPPED,
    CUDA_ERROR_STUB_LIBRARY, CUDA_ERROR_NO_DEVICE, CUDA_ERROR_INVALID_DEVICE,
    CUDA_ERROR_DEVICE_NOT_LICENSED, CUDA_ERROR_INVALID_IMAGE, CUDA_ERROR_INVALID_CONTEXT,
    CUDA_ERROR_CONTEXT_ALREADY_CURRENT, CUDA_ERROR_MAP_FAILED, CUDA_ERROR_UNMAP_FAILED,
    CUDA_ERROR_ARRAY_IS_MAPPED, CUDA_ERROR_ALREADY_MAPPED, CUDA_ERROR_NO_BINARY_FOR_GPU,
    CUDA_ERROR_ALREADY_ACQUIRED, CUDA_ERROR_NOT_MAPPED, CUDA_ERROR_NOT_MAPPED_AS_ARRAY,
    CUDA_ERROR_NOT_MAPPED_AS_POINTER, CUDA_ERROR_ECC_UNCORRECTABLE, CUDA_ERROR_UNSUPPORTED_LIMIT,
    CUDA_ERROR_CONTEXT_ALREADY_IN_USE, CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, CUDA_ERROR_INVALID_PTX,
    CUDA_ERROR_INVALID_GRAPHICS_CONTEXT, CUDA_ERROR_NVLINK_UNCORRECTABLE,
    CUDA_ERROR_JIT_COMPILER_NOT_FOUND, CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
    CUDA_ERROR_JIT_COMPILATION_DISABLED, CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY,
    CUDA_ERROR_INVALID_SOURCE, CUDA_ERROR_FILE_NOT_FOUND, CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND,
    CUDA_ERROR_SHARED_OBJECT_INIT_FAILED, CUDA_ERROR_OPERATING_SYSTEM, CUDA_ERROR_INVALID_HANDLE,
    CUDA_ERROR_ILLEGAL_STATE, CUDA_ERROR_NOT_FOUND, CUDA_ERROR_NOT_READY,
    CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, CUDA_ERROR_LAUNCH_TIMEOUT,
    CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED,
    CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE,
    CUDA_ERROR_CONTEXT_IS_DESTROYED, CUDA_ERROR_ASSERT, CUDA_ERROR_TOO_MANY_PEERS,
    CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED,
    CUDA_ERROR_HARDWARE_STACK_ERROR, CUDA_ERROR_ILLEGAL_INSTRUCTION, CUDA_ERROR_MISALIGNED_ADDRESS,
    CUDA_ERROR_INVALID_ADDRESS_SPACE, CUDA_ERROR_INVALID_PC, CUDA_ERROR_LAUNCH_FAILED,
    CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, CUDA_ERROR_NOT_PERMITTED, CUDA_ERROR_NOT_SUPPORTED,
    CUDA_ERROR_SYSTEM_NOT_READY, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH,
    CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, CUDA_ERROR_MPS_CONNECTION_FAILED,
    CUDA_ERROR_MPS_RPC_FAILURE, CUDA_ERROR_MPS_SERVER_NOT_READY, CUDA_ERROR_MPS_MAX_CLIENTS_REACHED,
    CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
    CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, CUDA_ERROR_STREAM_CAPTURE_MERGE,
    CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, CUDA_ERROR_STREAM_CAPTURE_UNJOINED,
    CUDA_ERROR_STREAM_CAPTURE_ISOLATION, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
    CUDA_ERROR_CAPTURED_EVENT, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, CUDA_ERROR_TIMEOUT,
    CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, CUDA_ERROR_EXTERNAL_DEVICE, CUDA_ERROR_UNKNOWN,
}

const UNKNOWN: u32 = cudaError_enum::CUDA_ERROR_UNKNOWN as u32;

thread_local! {
    static LAST: Cell<u32> = const { Cell::new(0) };
}

/// The code of the last driver call on this thread that did not answer `CUDA_SUCCESS`, as the
/// driver gave it; 0 if there was none.
///
/// The bindings know the codes up to CUDA 11.4. A newer one reaches a caller as
/// `CUDA_ERROR_UNKNOWN` (999), because a Rust enum must not hold a value that it does not list:
/// this is how to learn which one it was.
pub fn last_raw_error() -> u32 {
    LAST.get()
}

/// What a trampoline returns for what the driver returned.
pub(crate) fn settle(raw: u32) -> u32 {
    if raw == 0 {
        return 0;
    }
    LAST.set(raw);
    if known(raw).is_some() { raw } else { UNKNOWN }
}

fn known(code: u32) -> Option<&'static CStr> {
    KNOWN
        .iter()
        .find(|(known, _)| *known == code)
        .map(|(_, name)| *name)
}

/// What the driver's `function` (of the form of `cuGetErrorString`) says about `code`.
fn ask(function: &'static str, code: u32) -> Option<&'static CStr> {
    type Explain = unsafe extern "C" fn(u32, *mut *const c_char) -> u32;
    let address = symbol(function)?;
    // SAFETY: the driver's cuGetErrorName and cuGetErrorString have this signature; their enum
    // parameter is a C `int`, for which any value is allowed.
    let explain = unsafe { std::mem::transmute::<*mut std::ffi::c_void, Explain>(address) };
    let mut text = std::ptr::null();
    // SAFETY: `text` is a place for a pointer.
    let result = unsafe { explain(code, &raw mut text) };
    if result != 0 || text.is_null() {
        return None;
    }
    // SAFETY: on success the driver gives a NUL-terminated string of its own constant data.
    Some(unsafe { CStr::from_ptr(text) })
}

/// The code's name in `cuda.h`.
pub(crate) fn name(code: u32) -> &'static CStr {
    ask("cuGetErrorName\0", code)
        .or_else(|| known(code))
        .unwrap_or(c"unrecognized error code")
}

/// The code in words. Without a driver that could say more: its name, in words.
pub(crate) fn explanation(code: u32) -> &'static CStr {
    if let Some(text) = ask("cuGetErrorString\0", code) {
        return text;
    }
    match code {
        0 => c"no error",
        100 => c"no CUDA-capable device is detected",
        _ => known(code).map_or(c"unrecognized error code", spell_out),
    }
}

/// `CUDA_ERROR_NOT_FOUND` as `not found`. Kept for good: there are at most as many as codes.
fn spell_out(name: &'static CStr) -> &'static CStr {
    static MADE: Mutex<Vec<(&'static CStr, &'static CStr)>> = Mutex::new(Vec::new());
    let mut made = MADE
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some((_, text)) = made.iter().find(|(of, _)| *of == name) {
        return text;
    }
    let words = name
        .to_string_lossy()
        .replace("CUDA_ERROR_", "")
        .replace('_', " ")
        .to_lowercase();
    let text: &'static CStr = CString::new(words).map_or(name, |words| Box::leak(words.into()));
    made.push((name, text));
    text
}

/// A code for a message: `CUDA error 719 (CUDA_ERROR_LAUNCH_FAILED: unspecified launch failure)`.
///
/// ```
/// assert!(cuda_shim::describe(100).contains("CUDA_ERROR_NO_DEVICE"));
/// ```
pub fn describe(code: u32) -> String {
    let (name, text) = (
        name(code).to_string_lossy(),
        explanation(code).to_string_lossy(),
    );
    if name == text {
        return format!("CUDA error {code} ({name})");
    }
    format!("CUDA error {code} ({name}: {text})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_codes_become_unknown_and_are_kept() {
        assert_eq!(settle(719), 719);
        assert_eq!(last_raw_error(), 719);
        assert_eq!(settle(0), 0);
        assert_eq!(last_raw_error(), 719, "success does not overwrite it");
        assert_eq!(settle(721), UNKNOWN);
        assert_eq!(last_raw_error(), 721);
        assert_eq!(settle(u32::MAX), UNKNOWN);
    }

    #[test]
    fn every_code_has_words() {
        for (code, name) in KNOWN {
            assert!(!explanation(*code).is_empty(), "{name:?}");
            assert!(
                describe(*code).contains(&format!("CUDA error {code} (CUDA_")),
                "{name:?}"
            );
        }
        assert!(describe(123_456).contains("CUDA error 123456"));
    }
}
