//! AMD: wavefronts of 32 or 64 lanes in lock step.

use core::arch::amdgpu;
use core::intrinsics::gpu::amdgpu_dispatch_ptr;

use rpc_port::Warp;

/// The lanes of this wavefront.
#[derive(Clone, Copy, Debug)]
pub struct Lanes;

/// Whether images rely on 16-byte accesses.
pub(crate) const WORDS: bool = false;
/// Lanes of a wavefront: the host knows.
pub(crate) const LANES: Option<u32> = None;

/// The warp this thread is in.
#[inline(always)]
pub(crate) fn warp() -> Lanes {
    Lanes
}

impl Warp for Lanes {
    #[inline(always)]
    fn active_mask(&self) -> u64 {
        amdgpu::ballot(true)
    }

    #[inline(always)]
    fn lane(&self) -> u32 {
        amdgpu::mbcnt_hi(!0, amdgpu::mbcnt_lo(!0, 0))
    }

    #[inline(always)]
    fn broadcast(&self, mask: u64, value: u64) -> u64 {
        // Not `readlane`: lanes of different masks may execute this together, each with a leader
        // of its own. The index is in bytes of a 4-byte register.
        let leader = mask.trailing_zeros() * 4;
        // SAFETY: the leader is a lane of the mask, which every lane of it calls this with, so it
        // is active.
        let (low, high) = unsafe {
            (
                amdgpu::ds_bpermute(leader, value as u32),
                amdgpu::ds_bpermute(leader, (value >> 32) as u32),
            )
        };
        u64::from(high) << 32 | u64::from(low)
    }

    #[inline(always)]
    fn ballot(&self, mask: u64, value: bool) -> u64 {
        amdgpu::ballot(value) & mask
    }

    #[inline(always)]
    fn sync(&self, _: u64) {
        // Lanes run in lock step and share the counter of outstanding accesses that a fence of
        // the leader waits for (A5): only the compiler must not reorder.
        core::sync::atomic::compiler_fence(core::sync::atomic::Ordering::AcqRel);
        amdgpu::wave_barrier();
    }

    #[inline(always)]
    fn pause(&self, polls: u32) {
        // Units of 64 cycles.
        if polls < 64 {
            amdgpu::s_sleep::<1>();
        } else {
            amdgpu::s_sleep::<8>();
        }
    }

    #[inline(always)]
    fn port_hint(&self) -> u32 {
        // Nothing says where this wavefront runs; blocks of a grid start in order, so counting
        // them spreads those that run at once.
        let lanes = amdgpu::wavefrontsize();
        let wave = crate::grid::thread_index() as u32 / lanes;
        let waves = threads().iter().product::<u32>().div_ceil(lanes);
        crate::grid::block_index() as u32 * waves + wave
    }
}

/// The start of the packet that launched this kernel, as HSA lays it out.
#[repr(C)]
struct Dispatch {
    header: u16,
    setup: u16,
    workgroup_size: [u16; 3],
    reserved: u16,
    /// In threads, not blocks.
    grid_size: [u32; 3],
}

const _: () = assert!(core::mem::offset_of!(Dispatch, grid_size) == 12);

#[inline(always)]
fn dispatch() -> &'static Dispatch {
    // SAFETY: the packet is aligned to 64 bytes, holds at least these fields, and does not change
    // while its kernel runs.
    unsafe { &*amdgpu_dispatch_ptr().cast() }
}

/// This thread's block.
#[inline(always)]
pub fn block() -> [u32; 3] {
    [
        amdgpu::workgroup_id_x(),
        amdgpu::workgroup_id_y(),
        amdgpu::workgroup_id_z(),
    ]
}

/// This thread within its block.
#[inline(always)]
pub fn thread() -> [u32; 3] {
    [
        amdgpu::workitem_id_x(),
        amdgpu::workitem_id_y(),
        amdgpu::workitem_id_z(),
    ]
}

/// Blocks of the grid.
#[inline(always)]
pub fn blocks() -> [u32; 3] {
    let (grid, block) = (dispatch().grid_size, threads());
    core::array::from_fn(|i| grid[i].div_ceil(block[i].max(1)))
}

/// Threads of a block.
#[inline(always)]
pub fn threads() -> [u32; 3] {
    dispatch().workgroup_size.map(u32::from)
}

/// No time: see [`clock`](crate::clock).
#[inline(always)]
pub(crate) fn nanoseconds() -> u64 {
    0
}

/// Ends this thread, and with it its wavefront: called only when the run is ending.
#[inline(always)]
pub(crate) fn end_thread() -> ! {
    amdgpu::endpgm()
}
