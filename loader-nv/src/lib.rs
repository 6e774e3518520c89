#![doc = include_str!("../README.md")]
//!
//! | module | what it holds |
//! |---|---|
//! | `arrays` | constructors and destructors, which the image finds in arrays that are made here |
//! | `atomics` | whether additions of device threads to host memory are atomic |
//! | `backend` | [`Nvidia`], for the `main` of a loader |
//! | `device` | [`CudaDevice`]: opening, what it is, closing |
//! | `fits` | which code runs on which architecture |
//! | `image` | PTX and cubin: checked, loaded, the compiler's words kept |
//! | `jit` | the driver's compiler |
//! | `cubin`, `ptx` | which kernels an image has and what they take |
//! | `launch` | starting kernels, seeing them end, faults |
//! | `parameters` | the kernels' names and what they take |
//! | `memory` | shared, private and heap memory; which of it may be copied |
//! | `copies` | copies while a kernel runs, and the page-locked memory that they go through |
//! | `environment` | what the driver reads from the environment when it starts |
//! | [`measure`] | what the driver and the copy engine take by themselves |
//! | `cuda` | results of driver calls, owned handles |

mod arrays;
mod atomics;
mod backend;
mod copies;
mod cubin;
mod cuda;
mod device;
mod environment;
mod fits;
mod image;
mod jit;
mod launch;
pub mod measure;
mod memory;
mod parameters;
mod ptx;

pub use backend::Nvidia;
pub use device::{CudaDevice, DEFAULT_STACK, Options};
pub use environment::prepare_environment;
