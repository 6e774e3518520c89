//! NVIDIA: every atomic and fence is written out, with its ordering and scope.
//!
//! `core`'s read-modify-writes come out relaxed at gpu scope whatever was asked, and its fences at
//! system scope. The marks behind the fences are for the check of the PTX (`cargo xtask
//! check-ptx`): a system-scope fence that carries no mark came from somewhere else.

use core::arch::asm;

use crate::scope::Scope;

/// Whether offsets are checked.
pub(super) const CHECKS: bool = false;

/// Never called: offsets are not checked.
pub(super) fn out_of_bounds(_: usize, _: usize, _: usize) {}

/// The address in the global window. Regions are pinned host memory or the device's own, and an atomic
/// that may be one of shared memory instead takes several instructions more.
#[inline(always)]
fn global<T>(address: *mut T) -> u64 {
    let global: u64;
    // SAFETY: computes an address.
    unsafe {
        asm!("cvta.to.global.u64 {}, {};", out(reg64) global, in(reg64) address,
            options(pure, nomem, nostack));
    }
    global
}

/// One instruction at either scope.
macro_rules! scoped {
    ($($name:ident($($arg:ident: $ty:ty),*) -> $ret:ty, $reg:ident, $instruction:literal, $kind:literal;)*) => {$(
        /// # Safety
        /// `address` is aligned and allocated, and all accesses to it are atomic.
        #[inline(always)]
        pub(super) unsafe fn $name<S: Scope>(address: *mut $ret, $($arg: $ty),*) -> $ret {
            let result: $ret;
            // SAFETY: the caller vouches for the address; the instruction has no other effect.
            unsafe {
                if S::SYSTEM {
                    asm!(
                        concat!($instruction, ".sys.global.", $kind, " {result}, [{address}]", $(", {", stringify!($arg), "}",)* ";"),
                        address = in(reg64) global(address), $($arg = in($reg) $arg,)*
                        result = out($reg) result, options(nostack)
                    );
                } else {
                    asm!(
                        concat!($instruction, ".gpu.global.", $kind, " {result}, [{address}]", $(", {", stringify!($arg), "}",)* ";"),
                        address = in(reg64) global(address), $($arg = in($reg) $arg,)*
                        result = out($reg) result, options(nostack)
                    );
                }
            }
            result
        }
    )*};
}

scoped! {
    load32() -> u32, reg32, "ld.relaxed", "u32";
    load64() -> u64, reg64, "ld.relaxed", "u64";
    fetch_add32(value: u32) -> u32, reg32, "atom.relaxed", "add.u32";
    fetch_or64(value: u64) -> u64, reg64, "atom.relaxed", "or.b64";
    fetch_add64(value: u64) -> u64, reg64, "atom.relaxed", "add.u64";
    fetch_add64_release(value: u64) -> u64, reg64, "atom.release", "add.u64";
    fetch_or32_acquire(value: u32) -> u32, reg32, "atom.acquire", "or.b32";
    fetch_or32(value: u32) -> u32, reg32, "atom.relaxed", "or.b32";
    fetch_and32_release(value: u32) -> u32, reg32, "atom.release", "and.b32";
    fetch_and32(value: u32) -> u32, reg32, "atom.relaxed", "and.b32";
    fetch_or64_acq_rel(value: u64) -> u64, reg64, "atom.acq_rel", "or.b64";
    compare_exchange64(current: u64, new: u64) -> u64, reg64, "atom.relaxed", "cas.b64";
}

macro_rules! store {
    ($($name:ident, $ty:ty, $reg:ident, $kind:literal;)*) => {$(
        /// # Safety
        /// `address` is aligned and allocated, and all accesses to it are atomic.
        #[inline(always)]
        pub(super) unsafe fn $name<S: Scope>(address: *mut $ty, value: $ty) {
            // SAFETY: the caller vouches for the address; the instruction has no other effect.
            unsafe {
                if S::SYSTEM {
                    asm!(concat!("st.relaxed.sys.global.", $kind, " [{}], {};"), in(reg64) global(address), in($reg) value, options(nostack));
                } else {
                    asm!(concat!("st.relaxed.gpu.global.", $kind, " [{}], {};"), in(reg64) global(address), in($reg) value, options(nostack));
                }
            }
        }
    )*};
}

store! {
    store32, u32, reg32, "u32";
    store64, u64, reg64, "u64";
}

/// See [`Memory::WORDS`](crate::Memory::WORDS).
pub(super) const WORDS: bool = true;

/// See [`words_here`](crate::words_here).
pub(super) fn words_here() -> bool {
    WORDS
}

/// # Safety
/// `address` is aligned to 16 bytes and allocated.
#[inline(always)]
pub(super) unsafe fn load128<S: Scope>(address: *mut [u64; 2]) -> [u64; 2] {
    let (low, high);
    // SAFETY: the caller vouches for the address; the instruction has no other effect. A vector of
    // two 64-bit halves may be torn, a 128-bit access may not.
    unsafe {
        if S::SYSTEM {
            asm!("{{ .reg .b128 %word; ld.relaxed.sys.global.b128 %word, [{}]; mov.b128 {{{}, {}}}, %word; }}",
                in(reg64) global(address), out(reg64) low, out(reg64) high, options(nostack));
        } else {
            asm!("{{ .reg .b128 %word; ld.relaxed.gpu.global.b128 %word, [{}]; mov.b128 {{{}, {}}}, %word; }}",
                in(reg64) global(address), out(reg64) low, out(reg64) high, options(nostack));
        }
    }
    [low, high]
}

/// # Safety
/// `address` is aligned to 16 bytes and allocated.
#[inline(always)]
pub(super) unsafe fn store128<S: Scope>(address: *mut [u64; 2], value: [u64; 2]) {
    // SAFETY: as in `load128`.
    unsafe {
        if S::SYSTEM {
            asm!("{{ .reg .b128 %word; mov.b128 %word, {{{}, {}}}; st.relaxed.sys.global.b128 [{}], %word; }}",
                in(reg64) value[0], in(reg64) value[1], in(reg64) global(address), options(nostack));
        } else {
            asm!("{{ .reg .b128 %word; mov.b128 %word, {{{}, {}}}; st.relaxed.gpu.global.b128 [{}], %word; }}",
                in(reg64) value[0], in(reg64) value[1], in(reg64) global(address), options(nostack));
        }
    }
}

/// Plain data, as the two halves of one access: `read_volatile` would make two of it.
///
/// # Safety
/// `address` is aligned to 16 bytes and allocated.
#[inline(always)]
pub(super) unsafe fn read16(address: *mut [u64; 2]) -> [u64; 2] {
    let (low, high);
    // SAFETY: the caller vouches for the address; the instruction has no other effect.
    unsafe {
        asm!("ld.volatile.global.v2.u64 {{{}, {}}}, [{}];",
            out(reg64) low, out(reg64) high, in(reg64) global(address), options(nostack));
    }
    [low, high]
}

/// As [`read16`].
///
/// # Safety
/// `address` is aligned to 16 bytes and allocated.
#[inline(always)]
pub(super) unsafe fn write16(address: *mut [u64; 2], value: [u64; 2]) {
    // SAFETY: the caller vouches for the address; the instruction has no other effect.
    unsafe {
        asm!("st.volatile.global.v2.u64 [{}], {{{}, {}}};",
            in(reg64) global(address), in(reg64) value[0], in(reg64) value[1], options(nostack));
    }
}

/// A double word of plain data, as a volatile access.
///
/// # Safety
/// `address` is aligned and allocated.
#[inline(always)]
pub(super) unsafe fn read8(address: *mut u64) -> u64 {
    // SAFETY: the caller vouches for the address.
    unsafe { address.read_volatile() }
}

/// As [`read8`].
///
/// # Safety
/// `address` is aligned and allocated.
#[inline(always)]
pub(super) unsafe fn write8(address: *mut u64, value: u64) {
    // SAFETY: the caller vouches for the address.
    unsafe { address.write_volatile(value) };
}

/// PTX has one fence for acquire and release.
#[inline(always)]
fn fence<S: Scope>() {
    // SAFETY: a fence touches no memory; without `nomem` the compiler moves nothing across it.
    unsafe {
        if S::SYSTEM {
            asm!("fence.acq_rel.sys; // gpurpc:system", options(nostack));
        } else {
            asm!("fence.acq_rel.gpu; // gpurpc:device", options(nostack));
        }
    }
}

#[inline(always)]
pub(super) fn acquire_fence<S: Scope>() {
    fence::<S>();
}

/// Nothing but order for the compiler: a GPU begins no access before the branch that it depends on is
/// decided, and the accesses of a region do not look into a cache that might hold something older (A11).
#[inline(always)]
pub(super) fn acquire_dependent<S: Scope>() {
    // SAFETY: without `nomem` the compiler moves nothing across it.
    unsafe { asm!("", options(nostack, preserves_flags)) };
}

#[inline(always)]
pub(super) fn release_fence<S: Scope>() {
    fence::<S>();
}

/// Nothing: only hosts look at memory that others write.
#[inline(always)]
pub(super) fn prefetch(_: *const u8, _: bool) {}
