//! What can be wrong with an image's client.

use std::io;

use rpc_types::LayoutKind;
use rpc_types::image::{ABI_VERSION, CLIENT_SYMBOL};
use rpc_types::packet::MAX_LANES;
use thiserror::Error;

use crate::device::DeviceError;

/// Why an image's client cannot be served.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The client's descriptor does not start as one.
    #[error(
        "the image's {CLIENT_SYMBOL} is not an RPC client of gpurpc: give that name to nothing else, \
         and build the image with the rpc-device of this release"
    )]
    Magic,
    /// The client is of another version.
    #[error(
        "the image's RPC client has ABI version {0}, and this loader serves version {ABI_VERSION}: \
         build the image with the rpc-device of this release, or take the loader of that one"
    )]
    Version(u32),
    /// The client's layout has no name here.
    #[error(
        "the image's RPC client has layout {0}, and this loader knows 1 (Compact), 2 (Line), 3 \
         (Llvm22) and 4 (Llvm): build the image for one of those"
    )]
    Layout(u32),
    /// The image was made with an LLVM libc that this release does not know.
    #[error(
        "the image's {symbol} has {0} bytes, and this loader knows 552 (LLVM 20 to 22) and 2096 \
         (since April 2026): build the image with one of those",
        symbol = rpc_types::llvm::CLIENT_SYMBOL
    )]
    LlvmSize(u64),
    /// The image was made with an older LLVM libc, and does not say where its client is.
    #[error(
        "the image's {symbol} is null, so there is no RPC client to serve: build the image with the \
         libc of LLVM 20 or later",
        symbol = rpc_types::llvm::CLIENT_POINTER_SYMBOL
    )]
    LlvmPointer,
    /// More ports are asked for than the layout has.
    #[error(
        "--ports {asked} is more than the {most} that layout {layout} of this image has",
        layout = .layout.name()
    )]
    Ports {
        /// Ports that were asked for.
        asked: u32,
        /// Which layout.
        layout: LayoutKind,
        /// The most it has.
        most: u32,
    },
    /// What must be zero is not.
    #[error(
        "the image's RPC client has fields set that ABI version {ABI_VERSION} does not have: build \
         the image with the rpc-device of this release"
    )]
    Reserved,
    /// The host's processor lacks something that the image needs.
    #[error(
        "the image needs a host whose processor reads and writes 16 bytes in one access (x86-64 \
         with AVX), which this one does not: build the image with the feature `compact`"
    )]
    Words,
    /// The image's layout has no room for the device.
    #[error(
        "layout {layout} of this image has no room for {ports} ports of {lanes} lanes: give --ports \
         from 1 to {most}, and take a device whose warps have 1 to {MAX_LANES} lanes",
        layout = .layout.name(),
        most = .layout.max_ports()
    )]
    Geometry {
        /// Which layout.
        layout: LayoutKind,
        /// Ports that were wanted.
        ports: u32,
        /// Lanes of the device's warps.
        lanes: u32,
    },
    /// The device refused memory or a copy.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The server's threads could not be started.
    #[error("the server could not be started: {0}")]
    Threads(io::Error),
}
