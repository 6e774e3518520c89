//! What the pretended agents and pools are.

use super::*;

/// Answers with the bytes of an attribute, or that there is no such attribute.
///
/// # Safety
/// `place` has room for them, as the caller of a `get_info` function promises for the attribute that it
/// names.
unsafe fn give(place: *mut c_void, bytes: Option<Vec<u8>>) -> hsa_status_t {
    let Some(bytes) = bytes else {
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    };
    // SAFETY: the caller's promise.
    unsafe {
        place
            .cast::<u8>()
            .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len())
    };
    HSA_STATUS_SUCCESS
}

/// A text as the runtime gives it: with its zero.
fn text(text: &str) -> Vec<u8> {
    [text.as_bytes(), b"\0"].concat()
}

type Callback<T> = Option<unsafe extern "C" fn(T, *mut c_void) -> hsa_status_t>;

pub(crate) unsafe extern "C" fn system(
    attribute: hsa_system_info_t,
    place: *mut c_void,
) -> hsa_status_t {
    enter!("hsa_system_get_info");
    let number = u16::from(attribute == HSA_SYSTEM_INFO_VERSION_MAJOR);
    // SAFETY: the loader asks for an attribute with a place that is as large.
    unsafe { give(place, Some(number.to_ne_bytes().into())) }
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
        // SAFETY: the loader's own callback, with the data that came with it.
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
        HSA_AGENT_INFO_DEVICE if gpu => Some(HSA_DEVICE_TYPE_GPU),
        HSA_AGENT_INFO_DEVICE => Some(HSA_DEVICE_TYPE_CPU),
        HSA_AGENT_INFO_FEATURE => Some(u32::from(gpu)),
        HSA_AGENT_INFO_WAVEFRONT_SIZE => Some(32),
        HSA_AGENT_INFO_WORKGROUP_MAX_SIZE => Some(1024),
        HSA_AGENT_INFO_GRID_MAX_SIZE => Some(u32::MAX),
        HSA_AGENT_INFO_QUEUE_MIN_SIZE => Some(128),
        HSA_AGENT_INFO_QUEUE_MAX_SIZE => Some(1 << 17),
        HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT => Some(96),
        HSA_AMD_AGENT_INFO_MAX_WAVES_PER_CU => Some(32),
        _ => None,
    };
    let bytes = match attribute {
        HSA_AGENT_INFO_NAME => Some(text(if gpu { "gfx1100" } else { "a CPU" })),
        HSA_AMD_AGENT_INFO_PRODUCT_NAME => Some(text("Pretended GPU")),
        HSA_AGENT_INFO_WORKGROUP_MAX_DIM => Some([1024_u16; 3].map(u16::to_ne_bytes).concat()),
        HSA_AGENT_INFO_GRID_MAX_DIM => Some([u32::MAX; 3].map(u32::to_ne_bytes).concat()),
        _ => number.map(|number| number.to_ne_bytes().into()),
    };
    // SAFETY: the loader asks for an attribute with a place that is as large.
    unsafe { give(place, bytes) }
}

pub(crate) unsafe extern "C" fn isas(
    _: hsa_agent_t,
    callback: Callback<hsa_isa_t>,
    data: *mut c_void,
) -> hsa_status_t {
    enter!("hsa_agent_iterate_isas");
    // SAFETY: the loader's own callback, with the data that came with it.
    unsafe { callback.expect("a callback")(hsa_isa_t { handle: 5 }, data) }
}

pub(crate) unsafe extern "C" fn isa(
    _: hsa_isa_t,
    attribute: hsa_isa_info_t,
    place: *mut c_void,
) -> hsa_status_t {
    enter!("hsa_isa_get_info_alt");
    let target = text(IMAGE_TARGET);
    let bytes = if attribute == HSA_ISA_INFO_NAME_LENGTH {
        (target.len() as u32).to_ne_bytes().into()
    } else {
        target
    };
    // SAFETY: the loader asks for an attribute with a place that is as large.
    unsafe { give(place, Some(bytes)) }
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
        // SAFETY: the loader's own callback, with the data that came with it.
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
    let bytes = match attribute {
        HSA_AMD_MEMORY_POOL_INFO_SEGMENT => Some(HSA_AMD_SEGMENT_GLOBAL.to_ne_bytes().into()),
        HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS => Some(flags.to_ne_bytes().into()),
        HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED => Some(vec![1]),
        HSA_AMD_MEMORY_POOL_INFO_SIZE => Some((1_usize << 34).to_ne_bytes().into()),
        _ => None,
    };
    // SAFETY: the loader asks for an attribute with a place that is as large.
    unsafe { give(place, bytes) }
}

pub(crate) unsafe extern "C" fn agent_pool(
    _: hsa_agent_t,
    _: hsa_amd_memory_pool_t,
    attribute: hsa_amd_agent_memory_pool_info_t,
    place: *mut c_void,
) -> hsa_status_t {
    enter!("hsa_amd_agent_memory_pool_get_info");
    let atomics = !with(|state| state.without_atomics);
    if attribute == HSA_AMD_AGENT_MEMORY_POOL_INFO_LINK_INFO {
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
        // SAFETY: the loader asks for it with a place for one link, for there is one hop.
        unsafe { place.cast::<hsa_amd_memory_pool_link_info_t>().write(link) };
        return HSA_STATUS_SUCCESS;
    }
    let number = match attribute {
        HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS => {
            Some(HSA_AMD_MEMORY_POOL_ACCESS_DISALLOWED_BY_DEFAULT)
        }
        HSA_AMD_AGENT_MEMORY_POOL_INFO_NUM_LINK_HOPS => Some(1_u32),
        _ => None,
    };
    let bytes = number.map(|number| number.to_ne_bytes().into());
    // SAFETY: the loader asks for an attribute with a place that is as large.
    unsafe { give(place, bytes) }
}

pub(crate) unsafe extern "C" fn symbol(
    symbol: hsa_executable_symbol_t,
    attribute: hsa_executable_symbol_info_t,
    place: *mut c_void,
) -> hsa_status_t {
    enter!("hsa_executable_symbol_get_info");
    static VARIABLE: AtomicI64 = AtomicI64::new(0x1122);
    let bytes = match attribute {
        HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT => Some(symbol.handle.to_ne_bytes().into()),
        HSA_EXECUTABLE_SYMBOL_INFO_TYPE => Some(HSA_SYMBOL_KIND_VARIABLE.to_ne_bytes().into()),
        HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS => {
            let address = (&raw const VARIABLE).expose_provenance() as u64;
            Some(address.to_ne_bytes().into())
        }
        HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_SIZE => Some(8_u32.to_ne_bytes().into()),
        _ => None,
    };
    // SAFETY: the loader asks for an attribute with a place that is as large.
    unsafe { give(place, bytes) }
}
