//! What the runtime shows, for whoever has to find out why a run fails elsewhere.

use std::fmt::Write as _;

use hsa_sys::{
    HSA_AGENT_INFO_WAVEFRONT_SIZE, HSA_AGENT_INFO_WORKGROUP_MAX_SIZE,
    HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT, HSA_AMD_AGENT_INFO_MAX_WAVES_PER_CU,
    HSA_SYSTEM_INFO_VERSION_MAJOR, HSA_SYSTEM_INFO_VERSION_MINOR, Started,
};
use loader_core::device::DeviceError;

use crate::agents::{self, Agent, Kind, Pool, attribute_of};
use crate::hsa::ask;
use crate::{Options, emulator};

/// Agents, pools, targets and which links carry atomics, as lines of text.
///
/// # Errors
/// As for [`AmdDevice::open`](crate::AmdDevice::open).
pub fn diagnose(options: &Options) -> Result<String, DeviceError> {
    let (api, _) = emulator::choose(options)?;
    let started = Started::new(api).map_err(|error| {
        let error = DeviceError::Unavailable(error.to_string());
        emulator::suggest(options.device, error)
    })?;
    let api = &*started;
    let version = |attribute| {
        ask(api, "hsa_system_get_info", 0_u16, |place| {
            // SAFETY: both parts of the version are 16-bit numbers.
            unsafe { (api.hsa_system_get_info)(attribute, place) }
        })
    };
    let (major, minor) = (
        version(HSA_SYSTEM_INFO_VERSION_MAJOR)?,
        version(HSA_SYSTEM_INFO_VERSION_MINOR)?,
    );
    let mut text = format!(
        "loader-amd {}\nHSA runtime interface {major}.{minor}\n",
        env!("CARGO_PKG_VERSION")
    );
    let agents = agents::all(api)?;
    let mut gpus = 0;
    for agent in &agents {
        let what = match agent.kind {
            Kind::Cpu => "CPU".to_owned(),
            Kind::Gpu => {
                gpus += 1;
                format!("GPU {}", gpus - 1)
            }
            Kind::Other => "other agent".to_owned(),
        };
        // Writing to a `String` cannot fail.
        let _ = writeln!(text, "{what}: {}", agent.title());
        if agent.kind == Kind::Gpu {
            text.push_str(&gpu(api, agent));
        }
        for pool in &agent.pools {
            let _ = writeln!(text, "  pool: {}", describe(pool));
        }
    }
    for gpu in agents.iter().filter(|agent| agent.kind == Kind::Gpu) {
        for cpu in agents.iter().filter(|agent| agent.kind == Kind::Cpu) {
            for pool in cpu.pools.iter().filter(|pool| pool.is_fine_grained()) {
                let _ = writeln!(
                    text,
                    "{} to the {} of {}: {}",
                    gpu.title(),
                    describe(pool),
                    cpu.title(),
                    link(api, gpu, pool)
                );
            }
        }
    }
    if gpus == 0 {
        text.push_str("no GPU that runs kernels\n");
    }
    Ok(text)
}

fn gpu(api: &hsa_sys::Api, agent: &Agent) -> String {
    let number = |attribute| {
        // SAFETY: the attributes below are 32-bit numbers.
        unsafe { attribute_of(api, agent.handle, attribute, 0_u32) }
            .map_or_else(|_| "?".to_owned(), |number| number.to_string())
    };
    format!(
        "  targets: {}\n  wavefronts of {} lanes, {} compute units of {} wavefronts, blocks of at most \
         {} threads\n",
        agent.isas.join(" "),
        number(HSA_AGENT_INFO_WAVEFRONT_SIZE),
        number(HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT),
        number(HSA_AMD_AGENT_INFO_MAX_WAVES_PER_CU),
        number(HSA_AGENT_INFO_WORKGROUP_MAX_SIZE),
    )
}

fn describe(pool: &Pool) -> String {
    if !pool.global {
        return format!("{} KiB that are not global", pool.size >> 10);
    }
    let mut words = Vec::new();
    if pool.is_fine_grained() {
        words.push("fine-grained");
    }
    if pool.is_coarse_grained() {
        words.push("coarse-grained");
    }
    if pool.is_kernarg() {
        words.push("kernarg");
    }
    if !pool.allocatable {
        words.push("not allocatable");
    }
    format!("{} MiB {}", pool.size >> 20, words.join(", "))
}

fn link(api: &hsa_sys::Api, gpu: &Agent, pool: &Pool) -> String {
    if !pool.admits(api, gpu.handle) {
        return "no access".to_owned();
    }
    let links = pool.links(api, gpu.handle);
    if links.is_empty() {
        return "access, no link known (integrated, or not told)".to_owned();
    }
    let yes = |all: bool| if all { "yes" } else { "no" };
    format!(
        "access over {} links, atomics of 32 bits {}, of 64 bits {}, coherent {}",
        links.len(),
        yes(links.iter().all(|link| link.atomics32)),
        yes(links.iter().all(|link| link.atomics64)),
        yes(links.iter().all(|link| link.coherent)),
    )
}
