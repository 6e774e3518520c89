#![doc = include_str!("../README.md")]
//! # Map
//!
//! | module | what is in it |
//! |---|---|
//! | [`Policy`] | what the device may ask of the host |
//! | `files` | streams by handle, and what C's `<stdio.h>` does with them |
//! | [`printf`] | C's formatted output |
#![forbid(unsafe_code)]

use std::sync::Arc;

use rpc_server::{Output, Table};

mod files;
pub mod printf;

/// What the device may ask of the host, besides what every program may.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Policy {
    /// `system` runs commands of the host's shell.
    pub system: bool,
}

/// Registers the services; the standard streams' text goes to `output`.
pub fn install(table: &mut Table, output: &Arc<dyn Output>, policy: Policy) {
    files::install(table, output, policy);
    printf::install(table, output);
}
