#![doc = include_str!("../README.md")]
//! # Map
//!
//! | module | what is in it |
//! |---|---|
//! | [`scope`] | [`System`] and [`Device`]: who takes part, as types |
//! | [`memory`] | [`Memory`]: relaxed atomics, fences and plain copies at offsets of a region |
//! | [`raw`] | [`Raw`]: a region given by its address, each target's instructions |
//! | [`heap`] | [`Heap`]: a region of this process's own (feature `std`) |
//! | [`bitmap`] | [`Bitmap`]: one bit per port over any [`Memory`] |
//!
//! The assumptions cited as *A1*, *A2*, ... are numbered in the repository's
//! `docs/memory-model.md`.
#![no_std]
#![cfg_attr(target_arch = "nvptx64", feature(asm_experimental_arch))]
#![cfg_attr(target_arch = "amdgpu", feature(stdarch_amdgpu))]

#[cfg(any(feature = "std", loom, test))]
extern crate std;

pub mod bitmap;
#[cfg(feature = "std")]
pub mod heap;
pub mod memory;
#[cfg(loom)]
pub mod model;
pub mod raw;
pub mod scope;

pub use bitmap::Bitmap;
#[cfg(feature = "std")]
pub use heap::Heap;
pub use memory::Memory;
pub use raw::{Raw, prefetch, words_here};
pub use scope::{Device, Scope, System};
