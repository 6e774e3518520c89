//! NVIDIA: warps of 32 lanes that may run apart.

use core::arch::asm;
use core::arch::nvptx;

use rpc_port::Warp;

// The compiler knows of intrinsics that lanes take part together; of `asm!` it does not.
#[allow(improper_ctypes)]
unsafe extern "C" {
    #[link_name = "llvm.nvvm.activemask"]
    fn active_mask() -> u32;
    #[link_name = "llvm.nvvm.vote.ballot.sync"]
    fn ballot_sync(mask: u32, value: bool) -> u32;
    #[link_name = "llvm.nvvm.bar.warp.sync"]
    fn warp_sync(mask: u32);
    #[link_name = "llvm.nvvm.shfl.sync.idx.i32"]
    fn shuffle(mask: u32, value: u32, lane: u32, clamp: u32) -> u32;
    #[link_name = "llvm.nvvm.read.ptx.sreg.laneid"]
    fn lane_id() -> u32;
    #[link_name = "llvm.nvvm.read.ptx.sreg.warpid"]
    fn warp_id() -> u32;
    #[link_name = "llvm.nvvm.read.ptx.sreg.smid"]
    fn sm_id() -> u32;
    #[link_name = "llvm.nvvm.read.ptx.sreg.nsmid"]
    fn sm_count() -> u32;
}

/// The lanes of this warp.
#[derive(Clone, Copy, Debug)]
pub struct Lanes;

/// 16 aligned bytes are read and written in one access, whatever the host says: code for both cases
/// would make images larger.
pub(crate) const WORDS: bool = true;
/// Lanes of a warp, if that is known when the image is built: geometry folds into constants.
pub(crate) const LANES: Option<u32> = Some(32);

/// The warp this thread is in.
#[inline(always)]
pub(crate) fn warp() -> Lanes {
    Lanes
}

impl Warp for Lanes {
    #[inline(always)]
    fn active_mask(&self) -> u64 {
        // ptxas takes the result of `activemask` for the same in all lanes that run together from
        // there on, and leaves out of each `.sync` operation what tells masks apart; but lanes that
        // took masks apart may come to run together. So each lane gets its copy by a shuffle (A12).
        //
        // SAFETY: the lanes of the mask are those that are here, and each reads its own.
        unsafe {
            let mask = active_mask();
            shuffle(mask, mask, lane_id(), 31).into()
        }
    }

    #[inline(always)]
    fn lane(&self) -> u32 {
        // SAFETY: reads a register.
        unsafe { lane_id() }
    }

    #[inline(always)]
    fn broadcast(&self, mask: u64, value: u64) -> u64 {
        let mask = mask as u32;
        let leader = mask.trailing_zeros();
        // SAFETY: every lane of the mask calls this with the same mask (`Warp`'s contract), and
        // the leader is one of them. 31 is the whole warp as one segment.
        let (low, high) = unsafe {
            (
                shuffle(mask, value as u32, leader, 31),
                shuffle(mask, (value >> 32) as u32, leader, 31),
            )
        };
        u64::from(high) << 32 | u64::from(low)
    }

    #[inline(always)]
    fn ballot(&self, mask: u64, value: bool) -> u64 {
        // SAFETY: every lane of the mask calls this with the same mask (`Warp`'s contract).
        unsafe { ballot_sync(mask as u32, value) }.into()
    }

    #[inline(always)]
    fn sync(&self, mask: u64) {
        // SAFETY: every lane of the mask calls this with the same mask (`Warp`'s contract).
        unsafe { warp_sync(mask as u32) }
    }

    #[inline(always)]
    fn pause(&self, polls: u32) {
        // A poll of host memory takes about a microsecond by itself. Sleeping a little between
        // polls is free alone and leaves the link to others under load; a long wait sleeps longer.
        let nanoseconds = if polls < 64 { 20 } else { 500 };
        // SAFETY: sleeps.
        unsafe { asm!("nanosleep.u32 {};", in(reg32) nanoseconds, options(nomem, nostack)) };
    }

    #[inline(always)]
    fn await_reply(&self) {
        // Cycles of some 0.5 ns. Not `nanosleep`, which takes a microsecond at least.
        let start = clock();
        while clock().wrapping_sub(start) < 600 {}
    }

    #[inline(always)]
    fn stamp(&self) -> Option<u32> {
        // Half a millisecond at 2 GHz. Multiprocessors count differently, which does not matter: a port
        // is mostly used by one.
        Some((long_clock() >> 20) as u32)
    }

    #[inline(always)]
    fn back_off(&self, attempts: u32) {
        // Each attempt reads words of device memory that the holders of ports write, and a port is free
        // for as long as it takes one of many waiting warps to see it: the more wait, the longer each.
        // The hardware picks a time between 0 and twice this, so that they do not stay in step.
        let nanoseconds = 50 << attempts.min(8);
        // SAFETY: sleeps.
        unsafe { asm!("nanosleep.u32 {};", in(reg32) nanoseconds, options(nomem, nostack)) };
    }

    #[inline(always)]
    fn global_address(&self, bytes: &[u8]) -> Option<u64> {
        let is_global: u32;
        // SAFETY: looks at the address, not behind it.
        unsafe {
            asm!("{{ .reg .pred %global; isspacep.global %global, {}; selp.u32 {}, 1, 0, %global; }}",
                in(reg64) bytes.as_ptr(), out(reg32) is_global, options(pure, nomem, nostack));
        }
        (is_global != 0).then_some(bytes.as_ptr() as u64)
    }

    #[inline(always)]
    fn port_hint(&self) -> u32 {
        // Slot first: under light load every SM uses its low slots, which are the low ports.
        // SAFETY: reads registers.
        unsafe { warp_id() * sm_count() + sm_id() }
    }

    #[inline(always)]
    fn port_stride(&self) -> u32 {
        // SAFETY: reads a register.
        unsafe { sm_count() }
    }
}

/// Cycles since some time ago.
#[inline(always)]
fn long_clock() -> u64 {
    let cycles: u64;
    // SAFETY: reads a register.
    unsafe { asm!("mov.u64 {}, %clock64;", out(reg64) cycles, options(nomem, nostack)) };
    cycles
}

/// Cycles, of which 2^32 take some two seconds.
#[inline(always)]
fn clock() -> u32 {
    let cycles: u32;
    // SAFETY: reads a register.
    unsafe { asm!("mov.u32 {}, %clock;", out(reg32) cycles, options(nomem, nostack)) };
    cycles
}

/// This thread's block.
#[inline(always)]
pub fn block() -> [u32; 3] {
    // SAFETY: reads registers.
    unsafe {
        [
            nvptx::_block_idx_x(),
            nvptx::_block_idx_y(),
            nvptx::_block_idx_z(),
        ]
    }
}

/// This thread within its block.
#[inline(always)]
pub fn thread() -> [u32; 3] {
    // SAFETY: reads registers.
    unsafe {
        [
            nvptx::_thread_idx_x(),
            nvptx::_thread_idx_y(),
            nvptx::_thread_idx_z(),
        ]
    }
}

/// Blocks of the grid.
#[inline(always)]
pub fn blocks() -> [u32; 3] {
    // SAFETY: reads registers.
    unsafe {
        [
            nvptx::_grid_dim_x(),
            nvptx::_grid_dim_y(),
            nvptx::_grid_dim_z(),
        ]
    }
}

/// Threads of a block.
#[inline(always)]
pub fn threads() -> [u32; 3] {
    // SAFETY: reads registers.
    unsafe {
        [
            nvptx::_block_dim_x(),
            nvptx::_block_dim_y(),
            nvptx::_block_dim_z(),
        ]
    }
}

/// The global timer.
#[inline(always)]
pub(crate) fn nanoseconds() -> u64 {
    let now;
    // SAFETY: reads a register. Without `nomem` the compiler moves no access to memory across it,
    // so what is timed stays between two readings.
    unsafe { asm!("mov.u64 {}, %globaltimer;", out(reg64) now, options(nostack)) };
    now
}

/// Ends this thread alone, without a trap: the others go on and pinned memory stays readable.
#[inline(always)]
pub(crate) fn end_thread() -> ! {
    // SAFETY: the thread ends here; nothing of it is used after.
    unsafe { asm!("exit;", options(noreturn, nostack)) }
}
