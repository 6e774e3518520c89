#![doc = include_str!("../README.md")]
//!
//! | module | what it holds |
//! |---|---|
//! | `bindings` | types, constants and the list of functions, made from the headers |
//! | `api` | the list as a table of pointers |
//! | `load` | the table from a library; which library |
//! | `started` | `hsa_init` and its end; why there is no GPU |
//!
//! Names are the C interface's. Enumerations are integers with constants, so that a value that is
//! newer than the headers is no error.

mod api;
#[allow(
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    clippy::pedantic
)]
mod bindings;
mod load;
mod started;

use api::api;

pub use bindings::*;
pub use load::{DEFAULT, ENVIRONMENT, LoadError};
pub use started::{StartError, Started, describe};

/// `HSA_AMD_AGENT_INFO_TIMESTAMP_FREQUENCY`, as `u64` in Hz: newer than the headers that the rest
/// was made from, and an invalid argument for a runtime that is as old.
pub const HSA_AMD_AGENT_INFO_TIMESTAMP_FREQUENCY: hsa_amd_agent_info_t = 40982;
