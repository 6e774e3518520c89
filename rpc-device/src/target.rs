//! What differs between targets.
//!
//! Each file has `Lanes` (the [`Warp`](rpc_port::Warp)), the position functions of
//! [`grid`](crate::grid), `LANES`, `WORDS`, `warp`, `nanoseconds` and `end_thread`.

#[cfg(target_arch = "amdgpu")]
mod amdgpu;
#[cfg(not(any(target_arch = "nvptx64", target_arch = "amdgpu")))]
pub(crate) mod host;
#[cfg(target_arch = "nvptx64")]
mod nvptx;

#[cfg(target_arch = "amdgpu")]
pub(crate) use amdgpu::{LANES, WORDS, end_thread, nanoseconds, warp};
#[cfg(target_arch = "amdgpu")]
pub use amdgpu::{Lanes, block, blocks, thread, threads};
#[cfg(not(any(target_arch = "nvptx64", target_arch = "amdgpu")))]
pub(crate) use host::{LANES, WORDS, end_thread, nanoseconds, warp};
#[cfg(not(any(target_arch = "nvptx64", target_arch = "amdgpu")))]
pub use host::{Lanes, block, blocks, thread, threads};
#[cfg(target_arch = "nvptx64")]
pub(crate) use nvptx::{LANES, WORDS, end_thread, nanoseconds, warp};
#[cfg(target_arch = "nvptx64")]
pub use nvptx::{Lanes, block, blocks, thread, threads};
