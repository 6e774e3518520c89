#![doc = include_str!("../README.md")]
//! # Map
//!
//! | module | what is in it |
//! |---|---|
//! | [`table`] | [`Table`]: which handler serves which opcode |
//! | [`handler`] | what a handler gets and gives: [`Call`], [`Flow`], [`End`], [`Failure`] |
//! | [`conversation`] | [`Conversation`]: a port as an `async fn` sees it |
//! | [`messages`] | [`Messages`], [`PerLane`], [`Piece`]: what lanes have sent |
//! | [`service`] | [`Service`]: poller threads over a transport, until drained or dropped |
//! | [`options`] | [`Options`]: threads, polling, bounds |
//! | [`builtin`] | the services of every program: print, exit, panic, memory |
//! | [`output`] | [`Output`]: where the device's text goes |
//! | [`memory`] | [`DeviceMemory`], [`Staging`]: the device's memory while a kernel runs |
//! | [`counters`] | [`Counters`]: exact numbers per opcode |
//! | [`probe`] | [`Probe`]: what is to be seen of a service while it works |
//! | [`observe`] | [`Observe`]: what a monitor is told |
//!
//! Inside: `poller` scans ports, opens calls and resumes conversations; `exchange` joins a
//! conversation to its poller; `pool` runs what may block; `budget` bounds the messages in flight;
//! `reports` has said what pollers report; `port` hides the layout from handlers; `shared` is what all
//! threads of a service see.
#![forbid(unsafe_code)]

pub mod builtin;
pub mod conversation;
pub mod counters;
pub mod handler;
pub mod memory;
pub mod messages;
pub mod observe;
pub mod options;
pub mod output;
pub mod probe;
pub mod service;
pub mod table;

mod budget;
mod exchange;
mod poller;
mod pool;
mod port;
mod reports;
mod shared;
#[doc(hidden)]
pub mod single;

pub use budget::Reservation;
pub use conversation::Conversation;
pub use counters::{Counters, OpcodeCounters};
pub use handler::{Call, End, EndCause, Failure, Flow};
pub use memory::{DeviceMemory, MemoryError, NoMemory, Staging};
pub use messages::{Messages, PerLane, Piece};
pub use observe::{CallInfo, Observe, Outcome};
pub use options::{Options, Poll, Report};
pub use output::{Captured, Output, Standard, Stream};
pub use probe::{ExchangeState, OpenExchange, PollerState, PollerView, Probe};
pub use rpc_port::server::GROUP;
pub use service::{Drained, Service};
pub use table::Table;
