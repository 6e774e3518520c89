//! What an image made with LLVM's libc for GPUs carries in place of our descriptor.
//!
//! Its client is an object in a global of the image: port count, addresses of the arrays of the
//! shared region, and a lock bit for each port. There is no status on its wire: nothing tells such
//! a device of an error but the results of the services themselves.

use bytemuck::{Pod, Zeroable};

use crate::layout::{Geometry, LayoutKind};

/// The global that holds the client object, in LLVM 20 and later.
pub const CLIENT_SYMBOL: &str = "__llvm_rpc_client";
/// The global that holds the client object's address, in LLVM 17 to 19.
pub const CLIENT_POINTER_SYMBOL: &str = "__llvm_libc_rpc_client";
/// Bytes of the doorbell in front of the arrays of [`LayoutKind::Llvm`].
pub const DOORBELL: usize = 64;
/// Bytes of a port's header.
pub const HEADER_SIZE: usize = 16;

/// The most ports that a client object of this form has locks for.
///
/// # Panics
/// If the layout is none whose client is an object of LLVM's.
pub(crate) const fn max_ports(layout: LayoutKind) -> u32 {
    match layout {
        LayoutKind::Llvm22 => 4096,
        LayoutKind::Llvm => 16384,
        LayoutKind::Compact | LayoutKind::Line | LayoutKind::First => {
            panic!("no layout whose client is an object of LLVM's")
        }
    }
}

/// The start of a client object of [`LayoutKind::Llvm22`]; the locks follow, all zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Client22 {
    /// All ports.
    pub ports: u32,
    /// Must be zero.
    pub reserved: u32,
    /// Device address of the server's mailboxes.
    pub inbox: u64,
    /// Device address of the client's mailboxes.
    pub outbox: u64,
    /// Device address of the headers.
    pub header: u64,
    /// Device address of the packets.
    pub packet: u64,
}

/// The start of a client object of [`LayoutKind::Llvm`]; the locks follow, all zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Client {
    /// All ports.
    pub ports: u32,
    /// Must be zero.
    pub reserved: u32,
    /// Device address of the doorbell.
    pub doorbell: u64,
    /// Device address of the server's mailboxes.
    pub inbox: u64,
    /// Device address of the client's mailboxes.
    pub outbox: u64,
    /// Device address of the headers.
    pub header: u64,
    /// Device address of the packets.
    pub packet: u64,
}

/// Bytes of the client object of one of LLVM's layouts, locks included.
///
/// # Panics
/// If the layout is none whose client is an object of LLVM's.
pub const fn client_size(layout: LayoutKind) -> usize {
    let locks = max_ports(layout) as usize / 8;
    match layout {
        LayoutKind::Llvm22 => size_of::<Client22>() + locks,
        _ => size_of::<Client>() + locks,
    }
}

/// The layout whose client object has this size.
pub const fn layout_of_size(size: u64) -> Option<LayoutKind> {
    let forms = [LayoutKind::Llvm22, LayoutKind::Llvm];
    let mut i = 0;
    while i < forms.len() {
        if client_size(forms[i]) as u64 == size {
            return Some(forms[i]);
        }
        i += 1;
    }
    None
}

impl Client22 {
    /// The client of a shared region of this geometry at device address `shared`.
    #[must_use]
    pub const fn new(geometry: &Geometry, shared: u64) -> Self {
        Self {
            ports: geometry.total_ports(),
            reserved: 0,
            inbox: shared + geometry.replies() as u64,
            outbox: shared + geometry.requests() as u64,
            header: shared + geometry.headers() as u64,
            packet: shared + geometry.packets() as u64,
        }
    }
}

impl Client {
    /// The client of a shared region of this geometry at device address `shared`, whose doorbell is
    /// not in use.
    #[must_use]
    pub const fn new(geometry: &Geometry, shared: u64) -> Self {
        let old = Client22::new(geometry, shared);
        Self {
            ports: old.ports,
            reserved: 0,
            doorbell: shared,
            inbox: old.inbox,
            outbox: old.outbox,
            header: old.header,
            packet: old.packet,
        }
    }
}

const _: () = {
    use core::mem::offset_of;
    assert!(offset_of!(Client22, inbox) == 8 && offset_of!(Client22, packet) == 32);
    assert!(size_of::<Client22>() == 40 && client_size(LayoutKind::Llvm22) == 552);
    assert!(offset_of!(Client, doorbell) == 8 && offset_of!(Client, inbox) == 16);
    assert!(offset_of!(Client, packet) == 40);
    assert!(size_of::<Client>() == 48 && client_size(LayoutKind::Llvm) == 2096);
};

#[cfg(test)]
mod tests {
    use super::*;

    /// The figures of the releases: offsets, and bytes in all.
    #[test]
    fn everything_lies_where_the_images_expect_it() {
        for (layout, start, total, lanes, bytes) in [
            (LayoutKind::Llvm22, 0, 4096, 32, 8_486_912),
            (LayoutKind::Llvm22, 0, 4096, 64, 16_875_520),
            (LayoutKind::Llvm, 64, 8448, 32, 17_504_320),
            (LayoutKind::Llvm, 64, 16384, 32, 33_947_712),
        ] {
            let g = Geometry::new(layout, total - 1, lanes).unwrap();
            let n = total as usize;
            assert_eq!(g.total_ports(), total);
            assert_eq!(g.replies(), start);
            assert_eq!(g.requests(), start + 4 * n);
            assert_eq!(g.headers(), start + 8 * n);
            assert_eq!(g.packets(), start + 24 * n);
            assert_eq!(g.packet(0, 1) - g.packet(0, 0), 64);
            assert_eq!(g.packet(total, 0), bytes, "{layout:?} {total} {lanes}");
            assert!(g.stop() >= bytes && g.stop() + 4 <= g.shared_size());
        }
    }

    #[test]
    fn the_size_tells_the_form() {
        assert_eq!(layout_of_size(552), Some(LayoutKind::Llvm22));
        assert_eq!(layout_of_size(2096), Some(LayoutKind::Llvm));
        for other in [0, 8, 551, 2097, u64::MAX] {
            assert_eq!(layout_of_size(other), None);
        }
    }

    #[test]
    fn more_ports_than_there_are_locks_are_refused() {
        assert!(Geometry::new(LayoutKind::Llvm22, 4095, 64).is_some());
        assert!(Geometry::new(LayoutKind::Llvm22, 4096, 64).is_none());
        assert!(Geometry::new(LayoutKind::Llvm, 16383, 32).is_some());
        assert!(Geometry::new(LayoutKind::Llvm, 16384, 32).is_none());
    }

    #[test]
    fn the_objects_point_at_the_arrays() {
        let g = Geometry::new(LayoutKind::Llvm, 7, 32).unwrap();
        let client = Client::new(&g, 0x1000);
        assert_eq!(
            (client.ports, client.doorbell, client.inbox),
            (8, 0x1000, 0x1040)
        );
        assert_eq!(
            (client.outbox, client.header, client.packet),
            (0x1060, 0x1080, 0x1100)
        );
        let g = Geometry::new(LayoutKind::Llvm22, 7, 32).unwrap();
        let client = Client22::new(&g, 0x1000);
        assert_eq!(
            (client.ports, client.inbox, client.outbox),
            (8, 0x1000, 0x1020)
        );
        assert_eq!((client.header, client.packet), (0x1040, 0x10C0));
    }
}
