//! The HSA runtime's C interface: what a loader finds in `libhsa-runtime64.so.1`.
//!
//! Handles are checked before they are used; whatever else a function needs of its pointers, the HSA
//! specification says. Two agents exist, a CPU and a GPU named `gfx1100`.

mod agent;
mod executable;
mod memory;
mod queue;
mod runtime;
mod signal;
mod types;

pub use agent::*;
pub use executable::*;
pub use memory::*;
pub use queue::*;
pub use runtime::{hsa_init, hsa_shut_down};
pub use signal::*;
pub use types::*;
