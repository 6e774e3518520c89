//! How many ports a client gets.

use rpc_types::{Geometry, LayoutKind};

use crate::device::{Device, DeviceInfo, Grid, SharedBuffer};

/// How many ports: what the user says, else what the image wishes, else one for each warp.
pub(super) fn ports(asked: Option<u32>, wished: u32, warps: u32, layout: LayoutKind) -> u32 {
    let own = if wished == 0 { warps } else { wished };
    asked.map_or_else(|| own.clamp(1, layout.max_ports()), |asked| asked.max(1))
}

/// Ports for each warp of a grid: those whose last call nobody waited for are not free at once.
const PER_WARP: u32 = 8;
/// And at least so many: callers begin their search at different ports.
const LEAST: u32 = 256;

/// How many ports the warps of a grid make use of, at most as many as can be resident: memory for
/// more takes time to be page-locked.
pub(super) fn warps(info: &DeviceInfo, grid: Grid) -> u32 {
    let count = |n: [u32; 3]| n.iter().fold(1_u32, |all, n| all.saturating_mul(*n));
    let block = count(grid.threads).div_ceil(info.lanes.max(1));
    let ports = count(grid.blocks)
        .saturating_mul(block)
        .saturating_mul(PER_WARP);
    ports.max(LEAST).min(info.resident_warps)
}

/// Shared memory for an image that has not been read yet: what the default layout takes, with the
/// ports that the user or the grid asks for. `None` if that cannot be had: then the image will
/// tell how much is really needed.
pub(crate) fn expected(
    device: &dyn Device,
    grid: Grid,
    asked: Option<u32>,
) -> Option<SharedBuffer> {
    let info = device.info();
    let ports = ports(asked, 0, warps(info, grid), LayoutKind::Line);
    let geometry = Geometry::new(LayoutKind::Line, ports, info.lanes)?;
    device.allocate_shared(geometry.shared_size()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rpc_types::layout::MAX_PORTS;

    #[test]
    fn ports_by_user_image_and_device() {
        let line = |asked, wished, warps| ports(asked, wished, warps, LayoutKind::Line);
        assert_eq!(line(Some(3), 5, 7), 3);
        assert_eq!(line(None, 5, 7), 5);
        assert_eq!(line(None, 0, 7), 7);
        assert_eq!(line(None, u32::MAX, 7), MAX_PORTS);
        assert_eq!(line(None, 0, u32::MAX), MAX_PORTS);
        assert_eq!(line(None, 0, 0), 1);
        assert_eq!(ports(None, 0, 8448, LayoutKind::Llvm22), 4095);
    }
}
