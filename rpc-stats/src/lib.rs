#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod histogram;
mod snapshot;

pub use histogram::{Bucket, Histogram};
pub use snapshot::{
    Event, OpcodeStats, PollerState, PollerStats, PortState, PortStats, RunEnd, RunInfo, Snapshot,
};
