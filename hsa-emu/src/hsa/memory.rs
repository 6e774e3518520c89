//! Memory pools, copies, and memory of the host that is lent.

use std::collections::hash_map::Entry;
use std::ffi::c_void;
use std::sync::{Arc, PoisonError};
use std::thread;

use super::agent::{each, put};
use super::runtime::{CPU, GPU, done, machine, runtime};
use super::signal::{Condition, Signal};
use super::types::{Handle, Status, Visit, status};
use crate::memory::{self, Access, Region, pointer};
use crate::pages::PAGE;

/// A memory pool.
struct Pool {
    handle: Handle,
    agent: Handle,
    segment: u32,
    flags: u32,
    /// The device may use it without being allowed to.
    device: bool,
}

const GLOBAL: u32 = 0;
const GROUP: u32 = 3;
const KERNARG: u32 = 1;
const FINE: u32 = 2;
const COARSE: u32 = 4;

const fn pool(handle: u64, agent: Handle, segment: u32, flags: u32) -> Pool {
    Pool {
        handle: Handle { handle },
        agent,
        segment,
        flags,
        device: agent.handle == GPU.handle,
    }
}

static POOLS: [Pool; 5] = [
    pool(0x40, CPU, GLOBAL, FINE),
    pool(0x41, CPU, GLOBAL, FINE | KERNARG),
    pool(0x42, CPU, GLOBAL, COARSE),
    pool(0x43, GPU, GLOBAL, COARSE),
    pool(0x44, GPU, GROUP, 0),
];

/// What a pool says it has.
const SIZE: u64 = 16 << 30;

fn find(handle: Handle) -> Option<&'static Pool> {
    POOLS.iter().find(|pool| pool.handle == handle)
}

/// `hsa_amd_agent_iterate_memory_pools`
///
/// # Safety
/// `callback` is null or takes `data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_amd_agent_iterate_memory_pools(
    agent: Handle,
    callback: Visit,
    data: *mut c_void,
) -> Status {
    if let Err(status) = runtime() {
        return status;
    }
    let pools: Vec<_> = POOLS
        .iter()
        .filter(|pool| pool.agent == agent)
        .map(|pool| pool.handle)
        .collect();
    if pools.is_empty() {
        return status::INVALID_AGENT;
    }
    // SAFETY: as promised.
    unsafe { each(&pools, callback, data) }
}

/// `hsa_amd_memory_pool_get_info`
///
/// # Safety
/// `value` is null or valid for writes of what `attribute` gives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_amd_memory_pool_get_info(
    pool: Handle,
    attribute: u32,
    value: *mut c_void,
) -> Status {
    let Some(pool) = find(pool) else {
        return status::INVALID_MEMORY_POOL;
    };
    if value.is_null() {
        return status::INVALID_ARGUMENT;
    }
    let global = pool.segment == GLOBAL;
    let size = if global {
        SIZE
    } else {
        crate::kernel::MOST_LOCAL.into()
    };
    // SAFETY: each answer has the type that the interface gives its attribute.
    unsafe {
        match attribute {
            0 => put(value, pool.segment),
            1 => put(value, pool.flags),
            2 | 16 => put(value, size as usize),
            5 => put(value, global),
            6 | 7 | 18 => put(value, PAGE as usize),
            15 => put(value, false),
            _ => status::INVALID_ARGUMENT,
        }
    }
}

/// `hsa_amd_agent_memory_pool_get_info`: whether an agent may use a pool.
///
/// # Safety
/// `value` is null or valid for writes of what `attribute` gives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_amd_agent_memory_pool_get_info(
    agent: Handle,
    pool: Handle,
    attribute: u32,
    value: *mut c_void,
) -> Status {
    let Some(pool) = find(pool) else {
        return status::INVALID_MEMORY_POOL;
    };
    if value.is_null() || attribute != 0 {
        return status::INVALID_ARGUMENT;
    }
    let access: u32 = if pool.agent == agent { 1 } else { 2 };
    // SAFETY: not null, so valid for writes.
    unsafe { put(value, access) }
}

/// `hsa_amd_memory_pool_allocate`: zeroed, though the interface does not say so.
///
/// # Safety
/// `at` is null or valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_amd_memory_pool_allocate(
    pool: Handle,
    size: usize,
    _flags: u32,
    at: *mut *mut c_void,
) -> Status {
    if let Err(status) = runtime() {
        return status;
    }
    let Some(pool) = find(pool) else {
        return status::INVALID_MEMORY_POOL;
    };
    if at.is_null() || size == 0 {
        return status::INVALID_ARGUMENT;
    }
    if pool.segment != GLOBAL || size as u64 > SIZE {
        return status::INVALID_ALLOCATION;
    }
    let access = if pool.device {
        Access::Write
    } else {
        Access::None
    };
    let Some(start) = machine().allocate(size as u64, access) else {
        return status::OUT_OF_RESOURCES;
    };
    // SAFETY: not null, so valid for writes.
    unsafe { at.write(pointer(start).cast()) };
    status::SUCCESS
}

/// `hsa_amd_memory_pool_free`
#[unsafe(no_mangle)]
pub extern "C" fn hsa_amd_memory_pool_free(at: *mut c_void) -> Status {
    if at.is_null() || machine().free(at.expose_provenance() as u64) {
        status::SUCCESS
    } else {
        status::INVALID_ALLOCATION
    }
}

/// `hsa_amd_agents_allow_access`
///
/// # Safety
/// `agents` is null or has `count` handles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_amd_agents_allow_access(
    count: u32,
    agents: *const Handle,
    flags: *const u32,
    at: *const c_void,
) -> Status {
    if let Err(status) = runtime() {
        return status;
    }
    if count == 0 || agents.is_null() || !flags.is_null() || at.is_null() {
        return status::INVALID_ARGUMENT;
    }
    for n in 0..count as usize {
        // SAFETY: one of the handles promised.
        let agent = unsafe { agents.add(n).read() };
        if agent != CPU && agent != GPU {
            return status::INVALID_AGENT;
        }
        let start = at.expose_provenance() as u64;
        if machine().size(start).is_none() || (agent == GPU && !machine().allow(start)) {
            return status::INVALID_ALLOCATION;
        }
    }
    status::SUCCESS
}

/// `hsa_amd_memory_fill`: `count` words.
///
/// # Safety
/// `at` is null, or valid for writes of `count` words if it is not the device's memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_amd_memory_fill(at: *mut c_void, value: u32, count: usize) -> Status {
    if let Err(status) = runtime() {
        return status;
    }
    if at.is_null() || !at.addr().is_multiple_of(4) {
        return status::INVALID_ARGUMENT;
    }
    // Held against frees.
    let _space = machine()
        .space
        .read()
        .unwrap_or_else(PoisonError::into_inner);
    for n in 0..count {
        // SAFETY: one of the words promised.
        unsafe { memory::store32(at.cast::<u8>().add(n * 4), value) };
    }
    status::SUCCESS
}

/// `hsa_amd_memory_lock`: the device uses the same address.
///
/// # Safety
/// `device` is null or valid for writes; `host` stays valid until it is unlocked.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_amd_memory_lock(
    host: *mut c_void,
    size: usize,
    _agents: *mut Handle,
    _count: i32,
    device: *mut *mut c_void,
) -> Status {
    let mut runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(status) => return status,
    };
    if host.is_null() || size == 0 || device.is_null() {
        return status::INVALID_ARGUMENT;
    }
    let region = Region {
        start: host.expose_provenance() as u64,
        size: size as u64,
        access: Access::Write,
    };
    match runtime.locked.entry(region.start) {
        Entry::Occupied(mut locks) => match locks.get().checked_add(1) {
            Some(more) => *locks.get_mut() = more,
            None => return status::OUT_OF_RESOURCES,
        },
        Entry::Vacant(locks) => {
            let mut space = machine()
                .space
                .write()
                .unwrap_or_else(PoisonError::into_inner);
            // Known only if it is there: what failed is not to be unlocked.
            if !space.insert(region) {
                return status::OUT_OF_RESOURCES;
            }
            locks.insert(1);
        }
    }
    // SAFETY: not null, so valid for writes.
    unsafe { device.write(host) };
    status::SUCCESS
}

/// `hsa_amd_memory_unlock`
#[unsafe(no_mangle)]
pub extern "C" fn hsa_amd_memory_unlock(host: *mut c_void) -> Status {
    done(runtime().and_then(|mut runtime| {
        let start = host.expose_provenance() as u64;
        let locks = runtime
            .locked
            .get_mut(&start)
            .ok_or(status::INVALID_ARGUMENT)?;
        *locks -= 1;
        if *locks == 0 {
            runtime.locked.remove(&start);
            machine()
                .space
                .write()
                .unwrap_or_else(PoisonError::into_inner)
                .remove(start);
        }
        Ok(())
    }))
}

/// The most that is copied before others get at the memory's registry.
const STEP: usize = 1 << 20;

/// Copies as the copy engine does.
///
/// # Safety
/// What is not the device's memory is valid for `size` bytes.
unsafe fn copy(to: u64, from: u64, size: usize) {
    let mut done = 0;
    while done < size {
        let step = (size - done).min(STEP);
        let _space = machine()
            .space
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        // SAFETY: as promised.
        unsafe { memory::copy(pointer(to + done as u64), pointer(from + done as u64), step) };
        done += step;
    }
}

/// `hsa_memory_copy`
///
/// # Safety
/// Both are valid for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_memory_copy(
    to: *mut c_void,
    from: *const c_void,
    size: usize,
) -> Status {
    if let Err(status) = runtime() {
        return status;
    }
    if size != 0 && (to.is_null() || from.is_null()) {
        return status::INVALID_ARGUMENT;
    }
    // SAFETY: as promised.
    unsafe {
        copy(
            to.expose_provenance() as u64,
            from.expose_provenance() as u64,
            size,
        );
    }
    status::SUCCESS
}

/// `hsa_amd_memory_async_copy`: on a thread of its own, beside kernels.
///
/// # Safety
/// Both addresses are valid for `size` bytes until the signal says that it is done; `dependencies` is
/// null or has `count` handles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_amd_memory_async_copy(
    to: *mut c_void,
    _to_agent: Handle,
    from: *const c_void,
    _from_agent: Handle,
    size: usize,
    count: u32,
    dependencies: *const Handle,
    completion: Handle,
) -> Status {
    if let Err(status) = runtime() {
        return status;
    }
    if to.is_null() || from.is_null() || (count > 0 && dependencies.is_null()) {
        return status::INVALID_ARGUMENT;
    }
    let Some(completion) = Signal::find(completion) else {
        return status::INVALID_SIGNAL;
    };
    let mut before: Vec<Arc<Signal>> = Vec::new();
    for n in 0..count as usize {
        // SAFETY: one of the handles promised.
        match Signal::find(unsafe { dependencies.add(n).read() }) {
            Some(signal) => before.push(signal),
            None => return status::INVALID_SIGNAL,
        }
    }
    let (to, from) = (
        to.expose_provenance() as u64,
        from.expose_provenance() as u64,
    );
    let work = move || {
        for signal in before {
            signal.wait(Condition::Equal, 0, None);
        }
        // SAFETY: the caller promises it until the signal.
        unsafe { copy(to, from, size) };
        completion.update(|value| value.wrapping_sub(1));
    };
    if thread::Builder::new()
        .name("hsa-emu copy".into())
        .spawn(work)
        .is_err()
    {
        return status::OUT_OF_RESOURCES;
    }
    status::SUCCESS
}
