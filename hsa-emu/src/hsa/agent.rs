//! Agents, their isa, and the system.

use std::ffi::{CStr, c_char, c_void};

use super::runtime::{CPU, Data, GPU, done, machine, runtime};
use super::types::{EventHandler, Handle, Status, Visit, status};
use crate::options::{COMPUTE_UNITS, WAVES_PER_UNIT};
use crate::time;

/// The isa of the GPU.
const ISA: Handle = Handle { handle: 0x30 };
/// Its name.
const ISA_NAME: &CStr = c"amdgcn-amd-amdhsa--gfx1100";
/// Most packets of a queue.
pub(crate) const MOST_PACKETS: u32 = 1 << 17;
/// Fewest.
pub(crate) const FEWEST_PACKETS: u32 = 64;

/// Writes an answer where the caller wants it.
///
/// # Safety
/// `value` is valid for writes of a `T`, aligned or not.
pub(crate) unsafe fn put<T>(value: *mut c_void, answer: T) -> Status {
    // SAFETY: as promised.
    unsafe { value.cast::<T>().write_unaligned(answer) };
    status::SUCCESS
}

/// Writes a name into an array of `N` bytes, cut to fit.
///
/// # Safety
/// `value` is valid for writes of `N` bytes.
unsafe fn put_name<const N: usize>(value: *mut c_void, name: &str) -> Status {
    let mut bytes = [0; N];
    let length = name.len().min(N - 1);
    bytes[..length].copy_from_slice(&name.as_bytes()[..length]);
    // SAFETY: as promised.
    unsafe { put(value, bytes) }
}

/// Calls `visit` for each handle until it says otherwise.
///
/// # Safety
/// `visit` takes `data`.
pub(crate) unsafe fn each(handles: &[Handle], visit: Visit, data: *mut c_void) -> Status {
    let Some(visit) = visit else {
        return status::INVALID_ARGUMENT;
    };
    for &handle in handles {
        // SAFETY: as promised.
        let status = unsafe { visit(handle, data) };
        if status != status::SUCCESS {
            return status;
        }
    }
    status::SUCCESS
}

/// `hsa_iterate_agents`
///
/// # Safety
/// `callback` is null or takes `data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_iterate_agents(callback: Visit, data: *mut c_void) -> Status {
    if let Err(status) = runtime() {
        return status;
    }
    // SAFETY: as promised.
    unsafe { each(&[CPU, GPU], callback, data) }
}

/// `hsa_agent_get_info`
///
/// # Safety
/// `value` is null or valid for writes of what `attribute` gives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_agent_get_info(
    agent: Handle,
    attribute: u32,
    value: *mut c_void,
) -> Status {
    if let Err(status) = runtime() {
        return status;
    }
    if value.is_null() {
        return status::INVALID_ARGUMENT;
    }
    let gpu = match agent {
        CPU => false,
        GPU => true,
        _ => return status::INVALID_AGENT,
    };
    let of_gpu = |number: u32| if gpu { number } else { 0 };
    // SAFETY: each answer has the type that the interface gives its attribute.
    unsafe {
        match attribute {
            0 => put_name::<64>(value, if gpu { "gfx1100" } else { "CPU" }),
            1 => put_name::<64>(value, if gpu { "AMD" } else { "CPU" }),
            2 => put(value, of_gpu(1)),
            3 => put(value, 1u32),
            4 => put(value, u32::from(!gpu)),
            5 | 23 => put(value, 2u32),
            6 => put(value, of_gpu(32)),
            7 => put(value, [of_gpu(1024) as u16; 3]),
            8 => put(value, of_gpu(1024)),
            9 => put(value, [if gpu { i32::MAX as u32 } else { 0 }; 3]),
            10 => put(value, if gpu { u32::MAX } else { 0 }),
            11 => put(value, of_gpu(32)),
            12 => put(value, of_gpu(128)),
            13 => put(value, of_gpu(FEWEST_PACKETS)),
            14 => put(value, of_gpu(MOST_PACKETS)),
            15 => put(value, 0u32),
            16 => put(value, u32::from(gpu)),
            17 => put(value, u32::from(gpu)),
            18 => put(value, [0u32; 4]),
            19 if gpu => put(value, ISA),
            20 => put(value, [0u8; 128]),
            21 | 22 => put(value, 1u16),
            24 => put(value, gpu),
            0xa000 => put(value, of_gpu(0x744c)),
            0xa001 => put(value, 64u32),
            0xa002 => put(
                value,
                if gpu {
                    COMPUTE_UNITS
                } else {
                    machine().options.workers as u32
                },
            ),
            0xa003 => put(value, of_gpu(1000)),
            0xa004 => put(value, u32::from(gpu)),
            0xa006 | 0xa00f => put(value, 0u32),
            0xa007 => put(value, of_gpu(384)),
            0xa008 => put(value, of_gpu(1000)),
            0xa009 => put_name::<64>(value, if gpu { "emulated gfx1100" } else { "CPU" }),
            0xa00a => put(value, of_gpu(WAVES_PER_UNIT)),
            0xa00b => put(value, of_gpu(2)),
            0xa00c | 0xa00d => put(value, of_gpu(1)),
            0xa011 => put_name::<21>(value, if gpu { "GPU-XX" } else { "CPU-XX" }),
            // Ticks a second of what `s_sendmsg_rtn` and the like read.
            0xa016 => put(value, time::FREQUENCY),
            _ => status::INVALID_ARGUMENT,
        }
    }
}

/// `hsa_agent_iterate_isas`
///
/// # Safety
/// `callback` is null or takes `data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_agent_iterate_isas(
    agent: Handle,
    callback: Visit,
    data: *mut c_void,
) -> Status {
    if let Err(status) = runtime() {
        return status;
    }
    if agent != GPU {
        return status::INVALID_AGENT;
    }
    // SAFETY: as promised.
    unsafe { each(&[ISA], callback, data) }
}

/// `hsa_isa_get_info_alt`
///
/// # Safety
/// `value` is null or valid for writes of what `attribute` gives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_isa_get_info_alt(
    isa: Handle,
    attribute: u32,
    value: *mut c_void,
) -> Status {
    if isa != ISA {
        return status::INVALID_ISA;
    }
    if value.is_null() {
        return status::INVALID_ARGUMENT;
    }
    let name = ISA_NAME.to_bytes_with_nul();
    // SAFETY: each answer has the type that the interface gives its attribute; a name's length is
    // asked for first.
    unsafe {
        match attribute {
            0 => put(value, name.len() as u32),
            1 => {
                value.cast::<u8>().copy_from(name.as_ptr(), name.len());
                status::SUCCESS
            }
            12 => put(value, [1024u16; 3]),
            13 => put(value, 1024u32),
            14 => put(value, [i32::MAX as u32; 3]),
            16 => put(value, u64::from(u32::MAX)),
            _ => status::INVALID_ARGUMENT,
        }
    }
}

/// `hsa_system_get_info`
///
/// # Safety
/// `value` is null or valid for writes of what `attribute` gives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_system_get_info(attribute: u32, value: *mut c_void) -> Status {
    if let Err(status) = runtime() {
        return status;
    }
    if value.is_null() {
        return status::INVALID_ARGUMENT;
    }
    // SAFETY: each answer has the type that the interface gives its attribute.
    unsafe {
        match attribute {
            0 | 1 => put(value, 1u16),
            2 => put(value, time::ticks()),
            3 => put(value, time::FREQUENCY),
            4 => put(value, u64::MAX),
            5 => put(value, 0u32),
            6 => put(value, 1u32),
            7 => put(value, [0u8; 128]),
            _ => status::INVALID_ARGUMENT,
        }
    }
}

/// `hsa_amd_register_system_event_handler`: one at most.
#[unsafe(no_mangle)]
pub extern "C" fn hsa_amd_register_system_event_handler(
    callback: EventHandler,
    data: *mut c_void,
) -> Status {
    done(runtime().and_then(|mut runtime| {
        if runtime.handler.is_some() {
            return Err(status::ERROR);
        }
        runtime.handler = callback.map(|callback| (Some(callback), Data(data)));
        Ok(())
    }))
}

/// `hsa_status_string`
///
/// # Safety
/// `text` is null or valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_status_string(code: Status, text: *mut *const c_char) -> Status {
    let name = match code {
        status::SUCCESS => c"the function has been executed successfully",
        1 => c"iteration was ended by the application",
        status::ERROR => c"a generic error has occurred",
        status::INVALID_ARGUMENT => c"one of the arguments does not meet a precondition",
        status::INVALID_QUEUE_CREATION => c"the requested queue creation is not valid",
        status::INVALID_ALLOCATION => c"the requested allocation is not valid",
        status::INVALID_AGENT => c"the agent is invalid",
        status::INVALID_SIGNAL => c"the signal is invalid",
        status::INVALID_QUEUE => c"the queue is invalid",
        status::OUT_OF_RESOURCES => c"the runtime is out of resources",
        status::INVALID_PACKET_FORMAT => c"the packet is malformed",
        status::NOT_INITIALIZED => c"the runtime is not initialized",
        status::INCOMPATIBLE_ARGUMENTS => {
            c"the arguments are incompatible: the code object is for another isa than gfx1100"
        }
        status::INVALID_ISA => c"the isa is invalid",
        status::INVALID_CODE_OBJECT => c"the code object is invalid",
        status::INVALID_EXECUTABLE => c"the executable is invalid",
        status::FROZEN_EXECUTABLE => c"the executable is frozen",
        status::INVALID_SYMBOL_NAME => c"there is no symbol of this name",
        status::VARIABLE_UNDEFINED => c"a variable has no definition",
        status::EXCEPTION => c"a wave was ended by a trap or an exception",
        status::INVALID_EXECUTABLE_SYMBOL => c"the symbol is invalid",
        status::INVALID_CODE_OBJECT_READER => c"the code object reader is invalid",
        status::INVALID_MEMORY_POOL => c"the memory pool is invalid",
        status::MEMORY_APERTURE_VIOLATION => {
            c"a wave accessed local or private memory beyond its end"
        }
        status::ILLEGAL_INSTRUCTION => c"a wave met an illegal instruction",
        status::MEMORY_FAULT => c"a wave accessed memory that is not there for it",
        _ => return status::INVALID_ARGUMENT,
    };
    if text.is_null() {
        return status::INVALID_ARGUMENT;
    }
    // SAFETY: not null, so valid for writes; the text lives as long as the library.
    unsafe { text.write(name.as_ptr()) };
    status::SUCCESS
}

/// Copies the last fault as text with its end into `size` bytes at `text`, and gives the length of all
/// of it; not a function of HSA.
///
/// # Safety
/// `text` is null or valid for writes of `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpurpc_emu_last_fault(text: *mut c_char, size: usize) -> usize {
    let last = machine().last_fault.lock();
    let last = last.unwrap_or_else(std::sync::PoisonError::into_inner);
    if !text.is_null() && size > 0 {
        let length = last.len().min(size - 1);
        // SAFETY: as promised, for no more than `size` bytes.
        unsafe {
            text.cast::<u8>().copy_from(last.as_ptr(), length);
            text.add(length).write(0);
        }
    }
    last.len()
}
