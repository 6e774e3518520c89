//! The runtime that is chosen: the system's, or the emulator that is linked in.

use std::ffi::c_void;

use hsa_sys::Api;
use loader_core::cli::DeviceChoice;
use loader_core::device::DeviceError;

use crate::Options;

/// The runtime's functions, and the GPU's number there.
pub(crate) fn choose(options: &Options) -> Result<(Api, u32), DeviceError> {
    match options.device {
        DeviceChoice::Emulator => emulated().map(|api| (api, 0)),
        DeviceChoice::Number(number) => Api::load(options.runtime.as_deref())
            .map(|api| (api, number))
            .map_err(|error| suggest(options.device, DeviceError::Unavailable(error.to_string()))),
    }
}

/// Where there is no GPU, the emulator may serve.
pub(crate) fn suggest(device: DeviceChoice, error: DeviceError) -> DeviceError {
    match error {
        DeviceError::Unavailable(sentence) if device != DeviceChoice::Emulator => {
            DeviceError::Unavailable(format!(
                "{sentence}; --device emu runs images for gfx1100 without a GPU"
            ))
        }
        other => other,
    }
}

/// The emulator's functions. It has types of its own for what `hsa-sys` has from the headers.
fn emulated() -> Result<Api, DeviceError> {
    // SAFETY: each address is that of the emulator's function of this name, whose parameters have
    // the layout of the header's: both are that of the same C declaration.
    unsafe { Api::from_symbols(address) }
        .map_err(|name| DeviceError::Unavailable(format!("the emulator has no function {name}")))
}

fn address(name: &'static str) -> Result<*mut c_void, &'static str> {
    macro_rules! functions {
        ($($function:ident)*) => {
            match name {
                $(stringify!($function) => hsa_emu::hsa::$function as *const (),)*
                _ => return Err(name),
            }
        };
    }
    let function = functions! {
        hsa_agent_get_info
        hsa_agent_iterate_isas
        hsa_amd_agent_iterate_memory_pools
        hsa_amd_agent_memory_pool_get_info
        hsa_amd_agents_allow_access
        hsa_amd_memory_async_copy
        hsa_amd_memory_fill
        hsa_amd_memory_pool_allocate
        hsa_amd_memory_pool_free
        hsa_amd_memory_pool_get_info
        hsa_amd_register_system_event_handler
        hsa_code_object_reader_create_from_memory
        hsa_code_object_reader_destroy
        hsa_executable_create_alt
        hsa_executable_destroy
        hsa_executable_freeze
        hsa_executable_get_symbol_by_name
        hsa_executable_load_agent_code_object
        hsa_executable_symbol_get_info
        hsa_executable_validate
        hsa_init
        hsa_isa_get_info_alt
        hsa_iterate_agents
        hsa_queue_add_write_index_relaxed
        hsa_queue_create
        hsa_queue_destroy
        hsa_queue_load_read_index_scacquire
        hsa_shut_down
        hsa_signal_create
        hsa_signal_destroy
        hsa_signal_load_scacquire
        hsa_signal_store_relaxed
        hsa_signal_store_screlease
        hsa_signal_wait_scacquire
        hsa_status_string
        hsa_system_get_info
    };
    Ok(function.cast_mut().cast())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_emulator_has_every_function() {
        assert!(emulated().is_ok());
        assert!(address("hsa_no_such").is_err());
    }
}
