#![doc = include_str!("../README.md")]
//!
//! | module | what it holds |
//! |---|---|
//! | `backend` | [`Amd`], for the `main` of a loader |
//! | `device` | [`AmdDevice`]: opening, what it is, closing |
//! | `agents` | agents, instruction sets, memory pools, as the runtime shows them |
//! | `image` | code objects: target and kernels by their metadata |
//! | `load` | code objects on the device, their symbols |
//! | `kernarg` | a kernel's arguments, hidden ones by kind |
//! | `launch` | the queue and its packets |
//! | `faults` | what the runtime tells by callbacks |
//! | `memory` | shared, private and heap memory; which of it may be copied |
//! | `copies` | copies while a kernel runs |
//! | `emulator` | the system's runtime or the emulator |
//! | `diagnose` | what there is, as text |
//! | `hsa` | results of the runtime's calls |

mod agents;
mod backend;
mod copies;
mod device;
mod diagnose;
mod emulator;
mod faults;
mod hsa;
mod image;
mod kernarg;
mod launch;
mod load;
mod memory;

pub use backend::Amd;
pub use device::{AmdDevice, DEFAULT_STACK, Options};
pub use diagnose::diagnose;
