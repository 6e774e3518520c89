//! Stands in for the crate of that name on crates.io.
//!
//! The build scripts of `cust` and `cust_raw` call [`include_cuda`] to find a CUDA install and to
//! link with `libcuda`. Here `cuda-shim` defines what they need, so there is nothing to find, and
//! a machine without CUDA can build and start programs that use them.
#![forbid(unsafe_code)]

/// Links with nothing.
pub fn include_cuda() {}
