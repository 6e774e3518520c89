#![doc = include_str!("../README.md")]
//! # Map
//!
//! | module | what is in it |
//! |---|---|
//! | `snapshot` | [`Snapshot`]: what is known of a run at one time |
//! | `histogram` | [`Histogram`]: how long things took |
//! | `reader` | [`Reader`]: a monitor's side of the file |
//! | `writer` | [`Writer`]: a loader's side of the file |
//! | `place` | [`directory`], [`runs`], [`clean`]: where the files lie |
//! | `error` | why there are no statistics |
//!
//! Inside: `format` says what lies where in the file, `payload` writes a snapshot as bytes, `codec`
//! numbers and text, and `lock` is how a dead loader is known.
#![forbid(unsafe_code)]

mod codec;
mod error;
mod format;
mod histogram;
mod lock;
mod payload;
mod place;
mod reader;
mod snapshot;
mod writer;

pub use error::{DirectoryError, ReadError, WriteError};
pub use histogram::{Bucket, Histogram};
pub use place::{Found, clean, directory, runs};
pub use reader::{Liveness, Reader};
pub use snapshot::{
    Event, OpcodeStats, PollerState, PollerStats, PortState, PortStats, RunEnd, RunInfo, Snapshot,
};
pub use writer::Writer;
