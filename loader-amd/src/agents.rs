//! What the runtime shows: agents, their instruction sets, their memory pools.

use hsa_sys::{
    Api, HSA_AGENT_FEATURE_KERNEL_DISPATCH, HSA_AGENT_INFO_DEVICE, HSA_AGENT_INFO_FEATURE,
    HSA_AGENT_INFO_NAME, HSA_AMD_AGENT_INFO_PRODUCT_NAME, HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS,
    HSA_AMD_AGENT_MEMORY_POOL_INFO_LINK_INFO, HSA_AMD_AGENT_MEMORY_POOL_INFO_NUM_LINK_HOPS,
    HSA_AMD_MEMORY_POOL_ACCESS_NEVER_ALLOWED, HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED,
    HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED, HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT,
    HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS, HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED,
    HSA_AMD_MEMORY_POOL_INFO_SEGMENT, HSA_AMD_MEMORY_POOL_INFO_SIZE, HSA_AMD_SEGMENT_GLOBAL,
    HSA_DEVICE_TYPE_CPU, HSA_DEVICE_TYPE_GPU, HSA_ISA_INFO_NAME, HSA_ISA_INFO_NAME_LENGTH,
    hsa_agent_info_t, hsa_agent_t, hsa_amd_agent_memory_pool_info_t, hsa_amd_memory_pool_info_t,
    hsa_amd_memory_pool_link_info_t, hsa_amd_memory_pool_t, hsa_isa_t,
};
use loader_core::device::DeviceError;

use crate::hsa::{ask, check, collect, text};

/// Something that computes or holds memory.
#[derive(Clone, Debug)]
pub(crate) struct Agent {
    pub(crate) handle: hsa_agent_t,
    pub(crate) kind: Kind,
    /// The processor's name: `gfx1100`.
    pub(crate) name: String,
    /// What it is sold as.
    pub(crate) product: String,
    /// What its code may be built for: `amdgcn-amd-amdhsa--gfx1100`.
    pub(crate) isas: Vec<String>,
    pub(crate) pools: Vec<Pool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Cpu,
    /// One that runs kernels.
    Gpu,
    Other,
}

/// Memory of an agent that can be allocated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pool {
    pub(crate) handle: hsa_amd_memory_pool_t,
    pub(crate) global: bool,
    pub(crate) allocatable: bool,
    pub(crate) flags: u32,
    pub(crate) size: usize,
}

impl Pool {
    pub(crate) fn is(&self, flag: u32) -> bool {
        self.global && self.allocatable && self.flags & flag != 0
    }

    /// Host and device see each other's accesses while a kernel runs.
    pub(crate) fn is_fine_grained(&self) -> bool {
        self.is(HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED)
    }

    pub(crate) fn is_coarse_grained(&self) -> bool {
        self.is(HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED)
    }

    /// Made for kernels' arguments.
    pub(crate) fn is_kernarg(&self) -> bool {
        self.is(HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT)
    }
}

/// A link between an agent and a pool, as the atomics across it are concerned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) atomics32: bool,
    pub(crate) atomics64: bool,
    pub(crate) coherent: bool,
}

/// All agents, in the runtime's order.
pub(crate) fn all(api: &Api) -> Result<Vec<Agent>, DeviceError> {
    let mut handles: Vec<hsa_agent_t> = Vec::new();
    // SAFETY: the runtime is started (every caller has it so, here and below); the callback gets
    // the vector, which nobody uses meanwhile.
    let status = unsafe { (api.hsa_iterate_agents)(Some(collect), (&raw mut handles).cast()) };
    check(api, "hsa_iterate_agents", status)?;
    handles
        .iter()
        .map(|&handle| Agent::new(api, handle))
        .collect()
}

impl Agent {
    fn new(api: &Api, handle: hsa_agent_t) -> Result<Self, DeviceError> {
        // SAFETY: these two attributes are 32-bit numbers.
        let number = |attribute| unsafe { attribute_of(api, handle, attribute, 0_u32) };
        let kind = match number(HSA_AGENT_INFO_DEVICE)? {
            HSA_DEVICE_TYPE_CPU => Kind::Cpu,
            HSA_DEVICE_TYPE_GPU
                if number(HSA_AGENT_INFO_FEATURE)? & HSA_AGENT_FEATURE_KERNEL_DISPATCH != 0 =>
            {
                Kind::Gpu
            }
            _ => Kind::Other,
        };
        // SAFETY: a name is of at most 63 bytes and a NUL.
        let name = unsafe { attribute_of(api, handle, HSA_AGENT_INFO_NAME, [0_u8; 64]) }?;
        // SAFETY: likewise.
        let product =
            unsafe { attribute_of(api, handle, HSA_AMD_AGENT_INFO_PRODUCT_NAME, [0_u8; 64]) };
        Ok(Self {
            handle,
            kind,
            name: text(&name),
            product: product.map_or_else(|_| String::new(), |name| text(&name)),
            isas: if kind == Kind::Gpu {
                isas(api, handle)?
            } else {
                Vec::new()
            },
            pools: pools(api, handle)?,
        })
    }

    /// For sentences.
    pub(crate) fn title(&self) -> String {
        match self.product.as_str() {
            "" => self.name.clone(),
            product if product == self.name => self.name.clone(),
            product => format!("{product} ({})", self.name),
        }
    }
}

/// An attribute of an agent, for which `value` has the type.
///
/// # Safety
/// The attribute is of that type, or of one that has no more bytes.
pub(crate) unsafe fn attribute_of<T: Copy>(
    api: &Api,
    agent: hsa_agent_t,
    attribute: hsa_agent_info_t,
    value: T,
) -> Result<T, DeviceError> {
    ask(api, "hsa_agent_get_info", value, |place| {
        // SAFETY: the place has the type's bytes; the caller vouches that it takes no more. A
        // handle or an attribute that the runtime does not know is answered with a status.
        unsafe { (api.hsa_agent_get_info)(agent, attribute, place) }
    })
}

fn isas(api: &Api, agent: hsa_agent_t) -> Result<Vec<String>, DeviceError> {
    let mut handles: Vec<hsa_isa_t> = Vec::new();
    // SAFETY: the callback gets the vector, which nobody uses meanwhile.
    let status =
        unsafe { (api.hsa_agent_iterate_isas)(agent, Some(collect), (&raw mut handles).cast()) };
    check(api, "hsa_agent_iterate_isas", status)?;
    let name = |&isa: &hsa_isa_t| {
        let length = ask(api, "hsa_isa_get_info_alt", 0_u32, |place| {
            // SAFETY: the length is a 32-bit number.
            unsafe { (api.hsa_isa_get_info_alt)(isa, HSA_ISA_INFO_NAME_LENGTH, place) }
        })?;
        let mut name = vec![0_u8; length as usize + 1];
        let place = name.as_mut_ptr().cast();
        // SAFETY: the name is of `length` bytes, and there is one more.
        let status = unsafe { (api.hsa_isa_get_info_alt)(isa, HSA_ISA_INFO_NAME, place) };
        check(api, "hsa_isa_get_info_alt", status).map(|()| text(&name))
    };
    handles.iter().map(name).collect()
}

fn pools(api: &Api, agent: hsa_agent_t) -> Result<Vec<Pool>, DeviceError> {
    let mut handles: Vec<hsa_amd_memory_pool_t> = Vec::new();
    // SAFETY: the callback gets the vector, which nobody uses meanwhile.
    let status = unsafe {
        (api.hsa_amd_agent_iterate_memory_pools)(agent, Some(collect), (&raw mut handles).cast())
    };
    check(api, "hsa_amd_agent_iterate_memory_pools", status)?;
    handles
        .iter()
        .map(|&handle| Pool::new(api, handle))
        .collect()
}

impl Pool {
    fn new(api: &Api, handle: hsa_amd_memory_pool_t) -> Result<Self, DeviceError> {
        // SAFETY: the segment is a 32-bit number.
        let segment =
            unsafe { pool_attribute(api, handle, HSA_AMD_MEMORY_POOL_INFO_SEGMENT, 0_u32) }?;
        let global = segment == HSA_AMD_SEGMENT_GLOBAL;
        let flags = if global {
            // SAFETY: the flags are a 32-bit number, which pools of this segment have.
            unsafe { pool_attribute(api, handle, HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS, 0_u32) }?
        } else {
            0
        };
        // SAFETY: a C `bool`, of one byte.
        let allocatable = unsafe {
            pool_attribute(
                api,
                handle,
                HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED,
                0_u8,
            )
        }?;
        // SAFETY: a size.
        let size = unsafe { pool_attribute(api, handle, HSA_AMD_MEMORY_POOL_INFO_SIZE, 0_usize) }?;
        Ok(Self {
            handle,
            global,
            allocatable: allocatable != 0,
            flags,
            size,
        })
    }

    /// Whether `agent` may be given access to this pool's memory.
    pub(crate) fn admits(&self, api: &Api, agent: hsa_agent_t) -> bool {
        // SAFETY: the access is a 32-bit number.
        let access = unsafe {
            shared_attribute(
                api,
                agent,
                self,
                HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS,
                0_u32,
            )
        };
        access.is_ok_and(|access| access != HSA_AMD_MEMORY_POOL_ACCESS_NEVER_ALLOWED)
    }

    /// The links from `agent` to this pool, as far as the runtime tells; none to its own.
    pub(crate) fn links(&self, api: &Api, agent: hsa_agent_t) -> Vec<Link> {
        let attribute = HSA_AMD_AGENT_MEMORY_POOL_INFO_NUM_LINK_HOPS;
        // SAFETY: the number of hops is a 32-bit number.
        let hops = unsafe { shared_attribute(api, agent, self, attribute, 0_u32) };
        let Ok(hops @ 1..=64) = hops else {
            return Vec::new();
        };
        // Zeroed: should the runtime tell of fewer, the rest have no atomics.
        // SAFETY: all fields are numbers or `bool`, for which zeros are values.
        let empty: hsa_amd_memory_pool_link_info_t = unsafe { std::mem::zeroed() };
        let mut links = vec![empty; hops as usize];
        // SAFETY: the attribute is an array with an element for each hop, and so is this.
        let status = unsafe {
            (api.hsa_amd_agent_memory_pool_get_info)(
                agent,
                self.handle,
                HSA_AMD_AGENT_MEMORY_POOL_INFO_LINK_INFO,
                links.as_mut_ptr().cast(),
            )
        };
        if status != hsa_sys::HSA_STATUS_SUCCESS {
            return Vec::new();
        }
        let link = |info: &hsa_amd_memory_pool_link_info_t| Link {
            atomics32: info.atomic_support_32bit,
            atomics64: info.atomic_support_64bit,
            coherent: info.coherent_support,
        };
        links.iter().map(link).collect()
    }
}

/// An attribute of a pool.
///
/// # Safety
/// As for [`attribute_of`].
unsafe fn pool_attribute<T: Copy>(
    api: &Api,
    pool: hsa_amd_memory_pool_t,
    attribute: hsa_amd_memory_pool_info_t,
    value: T,
) -> Result<T, DeviceError> {
    ask(api, "hsa_amd_memory_pool_get_info", value, |place| {
        // SAFETY: as in `attribute_of`.
        unsafe { (api.hsa_amd_memory_pool_get_info)(pool, attribute, place) }
    })
}

/// An attribute of an agent and a pool.
///
/// # Safety
/// As for [`attribute_of`].
unsafe fn shared_attribute<T: Copy>(
    api: &Api,
    agent: hsa_agent_t,
    pool: &Pool,
    attribute: hsa_amd_agent_memory_pool_info_t,
    value: T,
) -> Result<T, DeviceError> {
    ask(api, "hsa_amd_agent_memory_pool_get_info", value, |place| {
        // SAFETY: as in `attribute_of`.
        unsafe { (api.hsa_amd_agent_memory_pool_get_info)(agent, pool.handle, attribute, place) }
    })
}
