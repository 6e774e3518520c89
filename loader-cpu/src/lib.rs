#![doc = include_str!("../README.md")]
//! # Map
//!
//! | module | what is in it |
//! |---|---|
//! | [`device`] | [`CpuDevice`]: opening it, what it is, [`Cpu`] for loaders to choose |
//! | [`builtin`] | [`BuiltinImage`]: a program linked into this one |
//!
//! `image` loads shared objects, `launch` runs grids on threads, `memory` allocates and copies,
//! `staging` lends memory for copies, `fault` catches what a wild pointer does.

pub mod builtin;
pub mod device;
mod fault;
mod image;
mod launch;
mod memory;
mod staging;

pub use builtin::BuiltinImage;
pub use device::{Cpu, CpuDevice};

/// That what the guide shows compiles.
#[cfg(doctest)]
#[doc = include_str!("../../docs/procedures.md")]
struct Procedures;
