//! AMD devices as loaders choose among them.

use loader_core::device::{Device, DeviceError};
use loader_core::image::ImageKind;
use loader_core::program::{Backend, DeviceOptions};

use crate::{AmdDevice, Options};

/// Takes amdgcn code objects.
#[derive(Clone, Copy, Debug, Default)]
pub struct Amd;

impl Backend for Amd {
    fn accepts(&self, kind: ImageKind) -> bool {
        kind == ImageKind::AmdGpu
    }

    fn open(&self, _: ImageKind, options: &DeviceOptions) -> Result<Box<dyn Device>, DeviceError> {
        let device = AmdDevice::open(&Options {
            device: options.device,
            stack_size: options.stack_size,
            runtime: options.hsa_runtime.clone(),
        })?;
        Ok(Box::new(device))
    }
}
