//! Memory of the pools.

use super::*;

pub(super) unsafe extern "C" fn pool_allocate(
    pool: hsa_amd_memory_pool_t,
    size: usize,
    flags: u32,
    place: *mut *mut c_void,
) -> hsa_status_t {
    enter!("hsa_amd_memory_pool_allocate");
    assert!(POOLS.contains(&pool.handle) && size > 0 && flags == 0);
    if size > 1 << 32 {
        return HSA_STATUS_ERROR_INVALID_ALLOCATION;
    }
    // Never freed, so that no address comes twice. Not zeroed either.
    let layout = std::alloc::Layout::from_size_align(size, 4096).unwrap();
    // SAFETY: the size is not 0.
    let memory = unsafe { std::alloc::alloc(layout) };
    assert!(!memory.is_null(), "there is memory for a test");
    // SAFETY: so much was just allocated.
    unsafe { memory.write_bytes(0xA5, size) };
    let address = memory.expose_provenance() as u64;
    with(|state| {
        state.live.insert(address, "memory");
        state.sizes.insert(address, size);
    });
    // SAFETY: the loader's place for what is made.
    unsafe { *place = memory.cast() };
    HSA_STATUS_SUCCESS
}

pub(super) unsafe extern "C" fn pool_free(memory: *mut c_void) -> hsa_status_t {
    known(memory.addr() as u64, "memory", true);
    HSA_STATUS_SUCCESS
}

pub(super) unsafe extern "C" fn allow_access(
    count: u32,
    agents: *const hsa_agent_t,
    flags: *const u32,
    memory: *const c_void,
) -> hsa_status_t {
    enter!("hsa_amd_agents_allow_access");
    known(memory.addr() as u64, "memory", false);
    // SAFETY: the loader points to `count` agents.
    assert!(count == 1 && flags.is_null() && unsafe { (*agents).handle } == GPU);
    HSA_STATUS_SUCCESS
}

pub(super) unsafe extern "C" fn fill(
    memory: *mut c_void,
    value: u32,
    count: usize,
) -> hsa_status_t {
    enter!("hsa_amd_memory_fill");
    known(memory.addr() as u64, "memory", false);
    let size = with(|state| state.sizes[&(memory.addr() as u64)]);
    assert!(count * 4 <= size.next_multiple_of(4096));
    // SAFETY: memory of `pool_allocate`, of at least so many words, which nobody else uses now.
    let words = unsafe { std::slice::from_raw_parts_mut(memory.cast::<u32>(), count) };
    words.fill(value);
    HSA_STATUS_SUCCESS
}

pub(super) unsafe extern "C" fn copy(
    to: *mut c_void,
    _: hsa_agent_t,
    from: *const c_void,
    _: hsa_agent_t,
    size: usize,
    dependencies: u32,
    _: *const hsa_signal_t,
    done: hsa_signal_t,
) -> hsa_status_t {
    enter!("hsa_amd_memory_async_copy");
    known(done.handle, "signal", false);
    assert!(dependencies == 0 && value(done).load(Ordering::Relaxed) == 1);
    if with(|state| state.copies_hang) {
        return HSA_STATUS_SUCCESS;
    }
    // SAFETY: both sides lie in allocations of the loader that do not overlap, as it promises.
    unsafe { to.cast::<u8>().copy_from_nonoverlapping(from.cast(), size) };
    value(done).fetch_sub(1, Ordering::Release);
    HSA_STATUS_SUCCESS
}
