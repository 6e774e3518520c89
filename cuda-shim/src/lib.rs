#![doc = include_str!("../README.md")]
//!
//! | module | what it holds |
//! |---|---|
//! | `driver` | the driver's library, opened on first use |
//! | `errors` | result codes, those newer than the bindings included |
//! | `trampolines` | a C function of the same name for each driver function |

mod driver;
mod errors;
mod trampolines;

pub use driver::{DriverError, available};
pub use errors::{describe, last_raw_error};

/// The driver functions that this crate defines and the installed driver does not have; all of
/// them without a driver.
pub fn missing() -> Vec<&'static str> {
    let absent = |t: &&trampolines::Trampoline| driver::symbol(t.name).is_none();
    trampolines::ALL
        .iter()
        .filter(absent)
        .map(|t| t.name.trim_end_matches('\0'))
        .collect()
}
