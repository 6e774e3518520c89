//! x86-64, AMDGPU and every other target whose `core` atomics do what they say.
//!
//! AMDGPU: `core` has no scopes, its accesses are at system scope, which includes the device's.
//! x86-64: a host thread's accesses reach every agent (assumption A1).

// The scope is for targets that have more than one.
#![allow(clippy::extra_unused_type_parameters)]

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64, fence};

/// Whether offsets are checked.
pub(super) const CHECKS: bool = cfg!(not(target_arch = "amdgpu"));

/// Ends on an access outside the region.
#[cold]
#[inline(never)]
pub(super) fn out_of_bounds(offset: usize, bytes: usize, size: usize) {
    #[cfg(target_arch = "amdgpu")]
    let _ = (offset, bytes, size);
    #[cfg(not(target_arch = "amdgpu"))]
    panic!("{bytes} aligned bytes at offset {offset} do not lie in a region of {size} bytes");
}

macro_rules! atomic {
    ($($name:ident($($arg:ident: $ty:ty),*) -> $ret:ty, $cell:ident: $plain:ty, $body:expr;)*) => {$(
        /// # Safety
        /// `address` is aligned and allocated, and all accesses to it are atomic.
        #[inline(always)]
        pub(super) unsafe fn $name<S>(address: *mut $plain, $($arg: $ty),*) -> $ret {
            // SAFETY: the caller's promise is what `from_ptr` asks for; the reference is to an
            // atomic and ends with this statement.
            let cell = unsafe { $cell::from_ptr(address) };
            let operation: fn(&$cell, $($ty),*) -> $ret = $body;
            operation(cell, $($arg),*)
        }
    )*};
}

atomic! {
    load32() -> u32, AtomicU32: u32, |c| c.load(Relaxed);
    load64() -> u64, AtomicU64: u64, |c| c.load(Relaxed);
    store32(value: u32) -> (), AtomicU32: u32, |c, v| c.store(v, Relaxed);
    store64(value: u64) -> (), AtomicU64: u64, |c, v| c.store(v, Relaxed);
    fetch_add64_release(value: u64) -> u64, AtomicU64: u64, |c, v| c.fetch_add(v, Release);
    fetch_or64(value: u64) -> u64, AtomicU64: u64, |c, v| c.fetch_or(v, Relaxed);
    fetch_add32(value: u32) -> u32, AtomicU32: u32, |c, v| c.fetch_add(v, Relaxed);
    fetch_add64(value: u64) -> u64, AtomicU64: u64, |c, v| c.fetch_add(v, Relaxed);
    fetch_or32_acquire(value: u32) -> u32, AtomicU32: u32, |c, v| c.fetch_or(v, Acquire);
    fetch_or32(value: u32) -> u32, AtomicU32: u32, |c, v| c.fetch_or(v, Relaxed);
    fetch_and32_release(value: u32) -> u32, AtomicU32: u32, |c, v| c.fetch_and(v, Release);
    fetch_and32(value: u32) -> u32, AtomicU32: u32, |c, v| c.fetch_and(v, Relaxed);
    fetch_or64_acq_rel(value: u64) -> u64, AtomicU64: u64, |c, v| c.fetch_or(v, AcqRel);
    compare_exchange64(current: u64, new: u64) -> u64, AtomicU64: u64,
        |c, old, new| c.compare_exchange(old, new, Relaxed, Relaxed).unwrap_or_else(|found| found);
}

#[inline(always)]
pub(super) fn acquire_fence<S>() {
    fence(Acquire);
}

#[inline(always)]
pub(super) fn acquire_dependent<S>() {
    fence(Acquire);
}

#[inline(always)]
pub(super) fn release_fence<S>() {
    fence(Release);
}

/// See [`Memory::WORDS`](crate::Memory::WORDS).
pub(super) const WORDS: bool = cfg!(target_arch = "x86_64");

/// Whether this processor reads and writes 16 aligned bytes in one access.
pub(super) fn words_here() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        // Intel and AMD both promise it for processors with AVX, for aligned SSE accesses too.
        const AVX: u32 = 1 << 28;
        core::arch::x86_64::__cpuid(1).ecx & AVX != 0
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// # Safety
/// `address` is aligned to 16 bytes and allocated.
#[inline(always)]
pub(super) unsafe fn load128<S>(address: *mut [u64; 2]) -> [u64; 2] {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{__m128i, _mm_cvtsi128_si64, _mm_unpackhi_epi64};
        let value: __m128i;
        // SAFETY: the caller vouches for the address. Written out, so that it is one access (A8)
        // whatever the compiler would make of a load.
        unsafe {
            core::arch::asm!("movdqa {}, [{}]", out(xmm_reg) value, in(reg) address,
                options(nostack, readonly, preserves_flags));
        }
        // SAFETY: SSE2 is part of x86-64.
        unsafe {
            [
                _mm_cvtsi128_si64(value) as u64,
                _mm_cvtsi128_si64(_mm_unpackhi_epi64(value, value)) as u64,
            ]
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let half = address.cast::<u64>();
        // SAFETY: the caller vouches for the address, whose halves are aligned. `WORDS` is false:
        // nobody relies on the two being read at once.
        unsafe { [load64::<S>(half), load64::<S>(half.add(1))] }
    }
}

/// # Safety
/// `address` is aligned to 16 bytes and allocated.
#[inline(always)]
pub(super) unsafe fn store128<S>(address: *mut [u64; 2], value: [u64; 2]) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::_mm_set_epi64x;
        // SAFETY: SSE2 is part of x86-64. The caller vouches for the address; one access, as in
        // `load128`.
        unsafe {
            let value = _mm_set_epi64x(value[1] as i64, value[0] as i64);
            core::arch::asm!("movdqa [{}], {}", in(reg) address, in(xmm_reg) value,
                options(nostack, preserves_flags));
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let half = address.cast::<u64>();
        // SAFETY: as in `load128`.
        unsafe {
            store64::<S>(half, value[0]);
            store64::<S>(half.add(1), value[1]);
        }
    }
}

/// A hint: nothing happens at an address that is not mapped.
#[inline(always)]
pub(super) fn prefetch(address: *const u8, write: bool) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        if write {
            // SAFETY: the instruction accesses nothing that the program sees, faults at no address,
            // and does nothing on the few processors that do not know it. Written out, because the
            // intrinsic takes it for a read unless the compiler may use the extension.
            unsafe {
                core::arch::asm!("prefetchw [{}]", in(reg) address,
                    options(nostack, readonly, preserves_flags));
            }
        } else {
            // SAFETY: SSE is part of x86-64; the instruction faults at no address.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (address, write);
}

/// A double word of plain data. On a host it is atomic, so that another thread that accesses it
/// meanwhile makes the value arbitrary and nothing else; a GPU's is volatile.
///
/// # Safety
/// `address` is aligned and allocated.
#[inline(always)]
pub(super) unsafe fn read8(address: *mut u64) -> u64 {
    // SAFETY: the caller vouches for the address.
    #[cfg(target_arch = "amdgpu")]
    unsafe {
        address.read_volatile()
    }
    // SAFETY: the caller vouches for the address; all of a host's accesses to plain data are these.
    #[cfg(not(target_arch = "amdgpu"))]
    unsafe {
        load64::<()>(address)
    }
}

/// As [`read8`].
///
/// # Safety
/// `address` is aligned and allocated.
#[inline(always)]
pub(super) unsafe fn write8(address: *mut u64, value: u64) {
    // SAFETY: the caller vouches for the address.
    #[cfg(target_arch = "amdgpu")]
    unsafe {
        address.write_volatile(value);
    }
    // SAFETY: as in `read8`.
    #[cfg(not(target_arch = "amdgpu"))]
    unsafe {
        store64::<()>(address, value);
    }
}

/// As [`read8`], 16 bytes.
///
/// # Safety
/// `address` is aligned to 16 bytes and allocated.
#[inline(always)]
pub(super) unsafe fn read16(address: *mut [u64; 2]) -> [u64; 2] {
    // SAFETY: the caller vouches for the address.
    #[cfg(target_arch = "amdgpu")]
    unsafe {
        address.read_volatile()
    }
    // SAFETY: as in `read8`.
    #[cfg(not(target_arch = "amdgpu"))]
    unsafe {
        load128::<()>(address)
    }
}

/// As [`read16`].
///
/// # Safety
/// `address` is aligned to 16 bytes and allocated.
#[inline(always)]
pub(super) unsafe fn write16(address: *mut [u64; 2], value: [u64; 2]) {
    // SAFETY: the caller vouches for the address.
    #[cfg(target_arch = "amdgpu")]
    unsafe {
        address.write_volatile(value);
    }
    // SAFETY: as in `read8`.
    #[cfg(not(target_arch = "amdgpu"))]
    unsafe {
        store128::<()>(address, value);
    }
}
