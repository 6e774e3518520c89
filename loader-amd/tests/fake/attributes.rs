//! What the pretended agents and pools are.

use super::*;

unsafe fn name(place: *mut c_void, text: &[u8]) -> hsa_status_t {
    unsafe {
        place
            .cast::<u8>()
            .copy_from_nonoverlapping(text.as_ptr(), text.len());
        place.cast::<u8>().add(text.len()).write(0);
    }
    HSA_STATUS_SUCCESS
}

type Callback<T> = Option<unsafe extern "C" fn(T, *mut c_void) -> hsa_status_t>;

pub(crate) unsafe extern "C" fn system(
    attribute: hsa_system_info_t,
    place: *mut c_void,
) -> hsa_status_t {
    enter!("hsa_system_get_info");
    unsafe { put::<u16>(place, u16::from(attribute == HSA_SYSTEM_INFO_VERSION_MAJOR)) }
}

pub(crate) unsafe extern "C" fn agents(
    callback: Callback<hsa_agent_t>,
    data: *mut c_void,
) -> hsa_status_t {
    enter!("hsa_iterate_agents");
    let handles = if with(|state| state.without_gpu) {
        &[CPU][..]
    } else {
        &[CPU, GPU]
    };
    for &handle in handles {
        unsafe { callback.expect("a callback")(hsa_agent_t { handle }, data) };
    }
    HSA_STATUS_SUCCESS
}

pub(crate) unsafe extern "C" fn agent(
    agent: hsa_agent_t,
    attribute: hsa_agent_info_t,
    place: *mut c_void,
) -> hsa_status_t {
    enter!("hsa_agent_get_info");
    let gpu = agent.handle == GPU;
    let number = match attribute {
        HSA_AGENT_INFO_NAME => {
            let text: &[u8] = if gpu { b"gfx1100" } else { b"a CPU" };
            return unsafe { name(place, text) };
        }
        HSA_AMD_AGENT_INFO_PRODUCT_NAME => return unsafe { name(place, b"Pretended GPU") },
        HSA_AGENT_INFO_WORKGROUP_MAX_DIM => return unsafe { put(place, [1024_u16; 3]) },
        HSA_AGENT_INFO_GRID_MAX_DIM => return unsafe { put(place, [u32::MAX; 3]) },
        HSA_AGENT_INFO_DEVICE if gpu => HSA_DEVICE_TYPE_GPU,
        HSA_AGENT_INFO_DEVICE => HSA_DEVICE_TYPE_CPU,
        HSA_AGENT_INFO_FEATURE => u32::from(gpu),
        HSA_AGENT_INFO_WAVEFRONT_SIZE => 32,
        HSA_AGENT_INFO_WORKGROUP_MAX_SIZE => 1024,
        HSA_AGENT_INFO_GRID_MAX_SIZE => u32::MAX,
        HSA_AGENT_INFO_QUEUE_MIN_SIZE => 128,
        HSA_AGENT_INFO_QUEUE_MAX_SIZE => 1 << 17,
        HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT => 96,
        HSA_AMD_AGENT_INFO_MAX_WAVES_PER_CU => 32,
        _ => return HSA_STATUS_ERROR_INVALID_ARGUMENT,
    };
    unsafe { put(place, number) }
}

pub(crate) unsafe extern "C" fn isas(
    _: hsa_agent_t,
    callback: Callback<hsa_isa_t>,
    data: *mut c_void,
) -> hsa_status_t {
    enter!("hsa_agent_iterate_isas");
    unsafe { callback.expect("a callback")(hsa_isa_t { handle: 5 }, data) }
}

pub(crate) unsafe extern "C" fn isa(
    _: hsa_isa_t,
    attribute: hsa_isa_info_t,
    place: *mut c_void,
) -> hsa_status_t {
    enter!("hsa_isa_get_info_alt");
    let text = IMAGE_TARGET.as_bytes();
    if attribute == HSA_ISA_INFO_NAME_LENGTH {
        unsafe { put(place, text.len() as u32 + 1) }
    } else {
        unsafe { name(place, text) }
    }
}

pub(crate) unsafe extern "C" fn pools(
    agent: hsa_agent_t,
    callback: Callback<hsa_amd_memory_pool_t>,
    data: *mut c_void,
) -> hsa_status_t {
    enter!("hsa_amd_agent_iterate_memory_pools");
    let own = if agent.handle == CPU {
        &POOLS[..2]
    } else {
        &POOLS[2..]
    };
    for &handle in own {
        unsafe { callback.expect("a callback")(hsa_amd_memory_pool_t { handle }, data) };
    }
    HSA_STATUS_SUCCESS
}

pub(crate) unsafe extern "C" fn pool(
    pool: hsa_amd_memory_pool_t,
    attribute: hsa_amd_memory_pool_info_t,
    place: *mut c_void,
) -> hsa_status_t {
    enter!("hsa_amd_memory_pool_get_info");
    let flags = match pool.handle {
        11 => HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED,
        12 => {
            HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED
                | HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT
        }
        _ => HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED,
    };
    match attribute {
        HSA_AMD_MEMORY_POOL_INFO_SEGMENT => unsafe { put(place, HSA_AMD_SEGMENT_GLOBAL) },
        HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS => unsafe { put(place, flags) },
        HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED => unsafe { put(place, true) },
        HSA_AMD_MEMORY_POOL_INFO_SIZE => unsafe { put(place, 1_usize << 34) },
        _ => HSA_STATUS_ERROR_INVALID_ARGUMENT,
    }
}

pub(crate) unsafe extern "C" fn agent_pool(
    _: hsa_agent_t,
    _: hsa_amd_memory_pool_t,
    attribute: hsa_amd_agent_memory_pool_info_t,
    place: *mut c_void,
) -> hsa_status_t {
    enter!("hsa_amd_agent_memory_pool_get_info");
    let atomics = !with(|state| state.without_atomics);
    match attribute {
        HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS => unsafe {
            put(place, HSA_AMD_MEMORY_POOL_ACCESS_DISALLOWED_BY_DEFAULT)
        },
        HSA_AMD_AGENT_MEMORY_POOL_INFO_NUM_LINK_HOPS => unsafe { put(place, 1_u32) },
        HSA_AMD_AGENT_MEMORY_POOL_INFO_LINK_INFO => unsafe {
            let link = hsa_amd_memory_pool_link_info_t {
                min_latency: 0,
                max_latency: 0,
                min_bandwidth: 0,
                max_bandwidth: 0,
                atomic_support_32bit: atomics,
                atomic_support_64bit: atomics,
                coherent_support: true,
                link_type: 2,
                numa_distance: 20,
            };
            put(place, link)
        },
        _ => HSA_STATUS_ERROR_INVALID_ARGUMENT,
    }
}

pub(crate) unsafe extern "C" fn symbol(
    symbol: hsa_executable_symbol_t,
    attribute: hsa_executable_symbol_info_t,
    place: *mut c_void,
) -> hsa_status_t {
    enter!("hsa_executable_symbol_get_info");
    match attribute {
        HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT => unsafe { put(place, symbol.handle) },
        HSA_EXECUTABLE_SYMBOL_INFO_TYPE => unsafe { put(place, HSA_SYMBOL_KIND_VARIABLE) },
        HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS => {
            static VARIABLE: AtomicI64 = AtomicI64::new(0x1122);
            unsafe { put(place, (&raw const VARIABLE).expose_provenance() as u64) }
        }
        HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_SIZE => unsafe { put(place, 8_u32) },
        _ => HSA_STATUS_ERROR_INVALID_ARGUMENT,
    }
}
