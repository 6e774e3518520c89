//! The memory between an image's client and its server.

use rpc_bitmap::{Raw, System};
use rpc_types::{Geometry, LayoutKind};

use crate::device::{Mailbox, SharedBuffer};

/// The memory that an image's client and its server both reach.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    pub(super) geometry: Geometry,
    pub(super) shared: SharedBuffer,
}

impl Region {
    /// What lies where.
    pub const fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// What the kernel is to get, in the layout [`First`](LayoutKind::First):
    /// [`Kernel::StartOver`](crate::device::Kernel::StartOver).
    pub fn mailbox(&self) -> Option<Mailbox> {
        let at = |offset: usize| self.shared.device + offset as u64;
        let geometry = &self.geometry;
        (geometry.layout == LayoutKind::First).then(|| Mailbox {
            inbox: at(geometry.replies()),
            outbox: at(geometry.requests()),
            buffer: at(geometry.packets()),
        })
    }

    /// The memory, for a [`Transport`](rpc_port::Transport).
    ///
    /// # Safety
    /// The device outlives it, and besides the device only one server reaches it.
    pub unsafe fn memory(&self) -> Raw<System> {
        // SAFETY: the buffer is page-aligned, has `shared_size` bytes and belongs to the device, which
        // the caller keeps.
        unsafe { Raw::new(self.shared.host.as_ptr(), self.geometry.shared_size()) }
    }
}
