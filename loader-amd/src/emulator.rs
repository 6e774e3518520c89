//! The runtime that is chosen: the system's, or the emulator that is linked in.

use hsa_sys::Api;
use loader_core::cli::DeviceChoice;
use loader_core::device::DeviceError;

use crate::Options;

/// The runtime's functions, and the GPU's number there.
pub(crate) fn choose(options: &Options) -> Result<(Api, u32), DeviceError> {
    match options.device {
        DeviceChoice::Emulator => Err(DeviceError::Unavailable(
            "this program was built without the emulator".to_owned(),
        )),
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
