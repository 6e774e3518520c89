//! The clients of images made with LLVM's libc.

use rpc_types::llvm::{
    CLIENT_POINTER_SYMBOL, CLIENT_SYMBOL, Client, Client22, client_size, layout_of_size,
};
use rpc_types::{Geometry, LayoutKind};

use super::ServeError;
use crate::device::{Device, DeviceError, StartForm};

/// Where an image keeps its client object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In the global that is named for it.
    Global,
    /// At this device address.
    Address(u64),
    /// Nowhere: it makes one of what its `_start` is passed.
    Arguments,
}

/// The layout that the image's client of LLVM's expects, and where it is; `None` if there is none.
pub(super) fn find(device: &dyn Device) -> Result<Option<(LayoutKind, Place)>, ServeError> {
    if let Some(size) = device.global_size(CLIENT_SYMBOL)? {
        let layout = layout_of_size(size).ok_or(ServeError::LlvmSize(size))?;
        return Ok(Some((layout, Place::Global)));
    }
    let Some(bytes) = device.read_global(CLIENT_POINTER_SYMBOL, size_of::<u64>())? else {
        let passed = device.start_form() != StartForm::Plain;
        return Ok(passed.then_some((LayoutKind::First, Place::Arguments)));
    };
    let address = bytemuck::try_pod_read_unaligned(&bytes).unwrap_or(0);
    if address == 0 {
        return Err(ServeError::LlvmPointer);
    }
    Ok(Some((LayoutKind::Llvm22, Place::Address(address))))
}

/// Completes the client for a shared region of this geometry at device address `shared`.
pub(super) fn complete(
    device: &dyn Device,
    place: Place,
    geometry: &Geometry,
    shared: u64,
) -> Result<(), DeviceError> {
    if place == Place::Arguments {
        return Ok(());
    }
    // The locks are zero.
    let mut object = vec![0; client_size(geometry.layout)];
    let (old, new) = (
        Client22::new(geometry, shared),
        Client::new(geometry, shared),
    );
    let head = match geometry.layout {
        LayoutKind::Llvm => bytemuck::bytes_of(&new),
        _ => bytemuck::bytes_of(&old),
    };
    object[..head.len()].copy_from_slice(head);
    let Place::Address(address) = place else {
        return device.write_global(CLIENT_SYMBOL, &object);
    };
    device
        .copy_to_device(&object, address)
        .map_err(|error| DeviceError::Api {
            call: "completing the image's RPC client",
            reason: error.to_string(),
        })
}
