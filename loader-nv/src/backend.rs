//! NVIDIA devices as loaders choose among them.

use loader_core::device::{Device, DeviceError};
use loader_core::image::ImageKind;
use loader_core::program::{Backend, DeviceOptions};

use crate::{CudaDevice, Options};

/// Takes PTX and cubin.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nvidia;

impl Backend for Nvidia {
    fn accepts(&self, kind: ImageKind) -> bool {
        matches!(kind, ImageKind::Ptx | ImageKind::Cubin)
    }

    fn open(&self, _: ImageKind, options: &DeviceOptions) -> Result<Box<dyn Device>, DeviceError> {
        let stack_size = options
            .stack_size
            .map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        let device = CudaDevice::open(&Options {
            device: options.device.number("NVIDIA GPUs")?,
            stack_size,
            jit_level: options.jit_level,
        })?;
        Ok(Box::new(device))
    }
}
