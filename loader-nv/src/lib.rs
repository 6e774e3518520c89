#![doc = include_str!("../README.md")]
//!
//! | module | what it holds |
//! |---|---|
//! | `atomics` | whether additions of device threads to host memory are atomic |
//! | `backend` | [`Nvidia`], for the `main` of a loader |
//! | `device` | [`CudaDevice`]: opening, what it is, closing |
//! | `fits` | which code runs on which architecture |
//! | `image` | PTX and cubin: checked, loaded, the compiler's words kept |
//! | `launch` | kernels and their parameters, faults |
//! | `memory` | shared, private and heap memory; which of it may be copied |
//! | `copies` | copies while a kernel runs, and the page-locked memory that they go through |
//! | `environment` | what the driver reads from the environment when it starts |
//! | [`measure`] | what the driver and the copy engine take by themselves |
//! | `cuda` | results of driver calls, owned handles |

mod atomics;
mod backend;
mod copies;
mod cuda;
mod device;
mod environment;
mod fits;
mod image;
mod launch;
pub mod measure;
mod memory;

pub use backend::Nvidia;
pub use device::{CudaDevice, DEFAULT_STACK, Options};
pub use environment::prepare_environment;
