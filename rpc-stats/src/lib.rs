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
//! | `observer` | `Observer`: what the pollers tell (feature `recorder`) |
//! | `recorder` | `Recorder`: the thread that publishes it (feature `recorder`) |
//! | `error` | why there are no statistics |
//! | `text` | [`printable`]: text of others, for a terminal |
//!
//! Inside: `format` says what lies where in the file, `payload` writes a snapshot as bytes, `codec`
//! numbers and text, `lock` is how a dead loader is known, and `collect` is what the recorder does each
//! time.
#![forbid(unsafe_code)]

mod codec;
#[cfg(feature = "recorder")]
mod collect;
mod error;
mod format;
mod histogram;
mod lock;
#[cfg(feature = "recorder")]
mod observer;
mod payload;
mod place;
mod reader;
#[cfg(feature = "recorder")]
mod recorder;
mod snapshot;
mod text;
mod writer;

pub use error::{DirectoryError, ReadError, WriteError};
pub use histogram::{Bucket, Histogram};
#[cfg(feature = "recorder")]
pub use observer::{Events, Observer};
pub use place::{Found, clean, directory, runs};
pub use reader::{Liveness, Reader};
#[cfg(feature = "recorder")]
pub use recorder::{Recorder, Source};
pub use snapshot::{
    Event, OpcodeStats, PollerState, PollerStats, PortState, PortStats, RunEnd, RunInfo, Snapshot,
};
pub use text::{is_unsafe, printable};
pub use writer::Writer;
