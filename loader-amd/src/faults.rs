//! What went wrong on a device. The runtime tells by callbacks: memory faults by one for the whole
//! process, everything else by one for each queue.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hsa_sys::{
    Api, HSA_AMD_GPU_MEMORY_FAULT_EVENT, HSA_AMD_MEMORY_FAULT_DRAMECC, HSA_AMD_MEMORY_FAULT_HANG,
    HSA_AMD_MEMORY_FAULT_HOST_ONLY, HSA_AMD_MEMORY_FAULT_IMPRECISE, HSA_AMD_MEMORY_FAULT_NX,
    HSA_AMD_MEMORY_FAULT_PAGE_NOT_PRESENT, HSA_AMD_MEMORY_FAULT_READ_ONLY,
    HSA_AMD_MEMORY_FAULT_SRAMECC, HSA_STATUS_ERROR, HSA_STATUS_ERROR_EXCEPTION,
    HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION, HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION,
    HSA_STATUS_ERROR_MEMORY_FAULT, HSA_STATUS_ERROR_OUT_OF_RESOURCES, HSA_STATUS_SUCCESS,
    hsa_agent_t, hsa_amd_event_t, hsa_queue_t, hsa_status_t,
};
use loader_core::device::DeviceError;

use crate::hsa::check;

/// The faults that were told: each agent's handle, and what happened.
static FAULTS: Mutex<Vec<(u64, String)>> = Mutex::new(Vec::new());

fn faults() -> MutexGuard<'static, Vec<(u64, String)>> {
    // Each change is one call.
    FAULTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Asks to be told of faults, from now on, on `agent` and all others.
pub(crate) fn watch(api: &Api, agent: hsa_agent_t) -> Result<(), DeviceError> {
    faults().retain(|(other, _)| *other != agent.handle);
    // SAFETY: the callback is there as long as the process, and needs no data.
    let status = unsafe {
        (api.hsa_amd_register_system_event_handler)(Some(on_event), std::ptr::null_mut())
    };
    // One device after another in the same process: the runtime has the handler already.
    if status == HSA_STATUS_ERROR {
        return Ok(());
    }
    check(api, "hsa_amd_register_system_event_handler", status)
}

/// # Safety
/// `event` is an event that lives until this returns.
unsafe extern "C" fn on_event(event: *const hsa_amd_event_t, _: *mut c_void) -> hsa_status_t {
    // SAFETY: the runtime vouches for it.
    let event = unsafe { &*event };
    // Every event there is so far starts with its agent.
    // SAFETY: the union has one member, whose fields are numbers.
    let fault = unsafe { event.__bindgen_anon_1.memory_fault };
    let sentence = if event.event_type == HSA_AMD_GPU_MEMORY_FAULT_EVENT {
        memory_fault(fault.virtual_address, fault.fault_reason_mask)
    } else {
        format!("a hardware exception (event {})", event.event_type)
    };
    faults().push((fault.agent.handle, sentence));
    // Handled: without this the runtime ends the process.
    HSA_STATUS_SUCCESS
}

/// A memory fault in words.
fn memory_fault(address: u64, mask: u32) -> String {
    let reasons = [
        (
            HSA_AMD_MEMORY_FAULT_PAGE_NOT_PRESENT,
            "nothing is mapped there",
        ),
        (
            HSA_AMD_MEMORY_FAULT_READ_ONLY,
            "a write to read-only memory",
        ),
        (HSA_AMD_MEMORY_FAULT_NX, "execution of data"),
        (HSA_AMD_MEMORY_FAULT_HOST_ONLY, "memory of the host only"),
        (HSA_AMD_MEMORY_FAULT_DRAMECC, "an ECC error of the memory"),
        (HSA_AMD_MEMORY_FAULT_IMPRECISE, "the address is not exact"),
        (
            HSA_AMD_MEMORY_FAULT_SRAMECC,
            "an ECC error of the registers",
        ),
        (HSA_AMD_MEMORY_FAULT_HANG, "the GPU was reset"),
    ];
    let words: Vec<_> = reasons
        .iter()
        .filter(|(bit, _)| mask & *bit as u32 != 0)
        .map(|(_, words)| *words)
        .collect();
    let words = if words.is_empty() {
        format!("reason {mask:#x}")
    } else {
        words.join(", ")
    };
    format!("memory fault at {address:#x} ({words})")
}

/// What a queue's callback has told: the first status, 0 for none.
///
/// Never freed: the runtime may call as long as the process lives.
pub(crate) struct QueueErrors(AtomicU32);

impl QueueErrors {
    pub(crate) fn new() -> &'static Self {
        Box::leak(Box::new(Self(AtomicU32::new(HSA_STATUS_SUCCESS))))
    }

    /// For `hsa_queue_create`, along with [`on_queue_error`].
    pub(crate) fn data(&'static self) -> *mut c_void {
        std::ptr::from_ref(self).cast_mut().cast()
    }
}

/// # Safety
/// `data` is [`QueueErrors::data`].
pub(crate) unsafe extern "C" fn on_queue_error(
    status: hsa_status_t,
    _: *mut hsa_queue_t,
    data: *mut c_void,
) {
    // SAFETY: the caller vouches for it; only shared references exist.
    let errors = unsafe { &*data.cast::<QueueErrors>() };
    // What follows the first is a consequence. Relaxed: the status is all there is to see.
    let _ = errors.0.compare_exchange(
        HSA_STATUS_SUCCESS,
        status,
        Ordering::Relaxed,
        Ordering::Relaxed,
    );
}

/// The fault that ended what ran on `agent`, if one did.
pub(crate) fn seen(api: &Api, agent: hsa_agent_t, errors: &QueueErrors) -> Option<DeviceError> {
    let fault = faults()
        .iter()
        .find(|(other, _)| *other == agent.handle)
        .map(|(_, sentence)| sentence.clone());
    if let Some(sentence) = fault {
        return Some(DeviceError::Fault(sentence));
    }
    match errors.0.load(Ordering::Relaxed) {
        HSA_STATUS_SUCCESS => None,
        status => Some(queue_error(api, status)),
    }
}

fn queue_error(api: &Api, status: hsa_status_t) -> DeviceError {
    let said = hsa_sys::describe(api, status);
    let words = match status {
        HSA_STATUS_ERROR_OUT_OF_RESOURCES => {
            return DeviceError::Api {
                call: "starting the kernel",
                reason: format!(
                    "the GPU has not enough stack or registers for it: try a smaller --stack-size \
                     or fewer --threads: {said}"
                ),
            };
        }
        HSA_STATUS_ERROR_EXCEPTION => "trap",
        HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION => "illegal instruction",
        HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION => "address that no memory has",
        HSA_STATUS_ERROR_MEMORY_FAULT => "memory fault",
        _ => "queue error",
    };
    DeviceError::Fault(format!("{words}: {said}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_faults_are_named() {
        assert_eq!(
            memory_fault(0xDEAD_0000, 3),
            "memory fault at 0xdead0000 (nothing is mapped there, a write to read-only memory)"
        );
        assert_eq!(memory_fault(0, 0), "memory fault at 0x0 (reason 0x0)");
        assert!(memory_fault(1, 1 << 31).contains("reset"));
    }

    #[test]
    fn the_first_status_of_a_queue_counts() {
        let errors = QueueErrors::new();
        for status in [HSA_STATUS_ERROR_EXCEPTION, HSA_STATUS_ERROR] {
            // SAFETY: the data is that of `errors`.
            unsafe { on_queue_error(status, std::ptr::null_mut(), errors.data()) };
        }
        assert_eq!(errors.0.load(Ordering::Relaxed), HSA_STATUS_ERROR_EXCEPTION);
    }
}
