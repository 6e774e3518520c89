//! What a GPU image exports, so that a loader can serve it.

use bytemuck::{Pod, Zeroable};

/// Name of the global that holds a [`ClientDescriptor`]. An image without it needs no server.
pub const CLIENT_SYMBOL: &str = "__gpurpc_client";
/// First bytes of the descriptor.
pub const MAGIC: [u8; 8] = *b"gpurpc\0\0";
/// The version of the image ABI that this crate describes.
pub const ABI_VERSION: u32 = 3;

/// Kernel names: first (1x1), on the user's grid, last (1x1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelNames {
    /// `(argc: i32, argv: *const *const u8, envp: *const *const u8)`
    pub begin: &'static str,
    /// as `begin`, then `ret: *mut i32`, into which every thread ORs its result
    pub start: &'static str,
    /// no parameters
    pub end: &'static str,
}

/// The kernels of a GPU image.
pub const GPU_KERNELS: KernelNames = KernelNames {
    begin: "_begin",
    start: "_start",
    end: "_end",
};
/// The kernels of an image for the CPU device: `_start` belongs to the C runtime there. Each takes
/// a `*const` [`CpuThread`] after its other parameters.
pub const CPU_KERNELS: KernelNames = KernelNames {
    begin: "__gpurpc_begin",
    start: "__gpurpc_start",
    end: "__gpurpc_end",
};

/// The RPC client as the image declares it and the host completes it before `_begin` runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct ClientDescriptor {
    /// [`MAGIC`].
    pub magic: [u8; 8],
    /// [`ABI_VERSION`] of the image.
    pub version: u32,
    /// The [`LayoutKind`](crate::LayoutKind) that the image was built for, as its number.
    pub layout: u32,
    /// How many ports the image wishes; 0 leaves it to the host.
    pub wished_ports: u32,
    /// Set by the host: ordinary ports.
    pub ports: u32,
    /// Set by the host: lanes of a warp.
    pub lanes: u32,
    /// Set by the host: messages from this length on that lie in memory which the host can copy
    /// travel as their address; 0 for none.
    pub bulk: u32,
    /// Set by the host: device address of the shared region.
    pub shared: u64,
    /// Set by the host: device address of the private region.
    pub private: u64,
    /// [`NEEDS_WORDS`](Self::NEEDS_WORDS) or 0; the host adds [`WORDS`](Self::WORDS) or 0.
    pub flags: u32,
    /// Must be zero.
    pub reserved: [u32; 3],
}

impl ClientDescriptor {
    /// The host reads and writes 16 aligned bytes in one access.
    pub const WORDS: u32 = 1;
    /// The image does not work with a host that has no [`WORDS`](Self::WORDS).
    pub const NEEDS_WORDS: u32 = 2;

    /// The descriptor an image starts with.
    pub const fn new(layout: crate::LayoutKind, wished_ports: u32) -> Self {
        Self {
            magic: MAGIC,
            version: ABI_VERSION,
            layout: layout as u32,
            wished_ports,
            ports: 0,
            lanes: 0,
            bulk: 0,
            shared: 0,
            private: 0,
            flags: 0,
            reserved: [0; 3],
        }
    }

    /// The descriptor of an image that only works with 16-byte words, or `self` if not `needs`.
    #[must_use]
    pub const fn needs_words(mut self, needs: bool) -> Self {
        if needs {
            self.flags |= Self::NEEDS_WORDS;
        }
        self
    }
}

/// Who a thread of the CPU device is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct CpuThread {
    /// The thread's block.
    pub block: [u32; 3],
    /// The thread within its block.
    pub thread: [u32; 3],
    /// Blocks of the grid.
    pub blocks: [u32; 3],
    /// Threads of a block.
    pub threads: [u32; 3],
}

const _: () = {
    use core::mem::offset_of;
    assert!(size_of::<ClientDescriptor>() == 64 && align_of::<ClientDescriptor>() == 8);
    assert!(offset_of!(ClientDescriptor, version) == 8);
    assert!(offset_of!(ClientDescriptor, layout) == 12);
    assert!(offset_of!(ClientDescriptor, wished_ports) == 16);
    assert!(offset_of!(ClientDescriptor, ports) == 20);
    assert!(offset_of!(ClientDescriptor, lanes) == 24);
    assert!(offset_of!(ClientDescriptor, bulk) == 28);
    assert!(offset_of!(ClientDescriptor, shared) == 32);
    assert!(offset_of!(ClientDescriptor, private) == 40);
    assert!(offset_of!(ClientDescriptor, flags) == 48);
    assert!(size_of::<CpuThread>() == 48 && align_of::<CpuThread>() == 4);
    assert!(offset_of!(CpuThread, thread) == 12);
    assert!(offset_of!(CpuThread, blocks) == 24);
    assert!(offset_of!(CpuThread, threads) == 36);
};
