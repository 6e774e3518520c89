#![doc = include_str!("../README.md")]
//! # Map
//!
//! | module | what is in it |
//! |---|---|
//! | [`warp`] | [`Warp`]: lanes that act together; [`HostWarp`] of one lane, `TeamWarp` for tests |
//! | [`transport`] | [`Transport`]: one per layout, the only place that touches shared memory |
//! | [`process`] | [`Process`]: one side of the protocol, with its ports |
//! | [`client`] | [`Client`]: the device's side |
//! | [`server`] | [`Server`]: the host's side |
//! | [`port`] | [`Port`]: the typestate |
//! | [`dynamic`] | [`DynamicPort`]: the same port for loops, with messages of any length |
//! | [`stream`] | how a message is cut into packets and put together again |
//! | [`procedure`] | [`Procedure`]: a call's opcode and types, for both sides at once |
//!
//! Data goes one way: a procedure uses a dynamic port, which uses a process, which uses a
//! transport, which uses `rpc-bitmap`.
//!
//! The three faults that the author of the typestate found in its forerunner cannot occur here: a
//! server path that forgets a port (dropping one gives it back), an odd number of sends and
//! receives that blocks a port (a port opens at either parity), two flags per side (ownership is
//! `inbox == outbox`, nothing else). `tests/defects.rs` shows each.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(any(feature = "std", test))]
extern crate std;

pub mod client;
pub mod dynamic;
pub mod error;
pub mod port;
pub mod procedure;
pub mod process;
pub mod server;
pub mod stream;
pub mod transport;
pub mod warp;

pub use client::Client;
pub use dynamic::DynamicPort;
pub use error::Error;
pub use port::{Opened, Port};
pub use procedure::{Kept, Procedure, StreamProcedure};
pub use process::Process;
pub use server::Server;
pub use stream::Sink;
pub use transport::{Compact, First, Line, Llvm, Llvm22, Transport};
#[cfg(feature = "std")]
pub use warp::TeamWarp;
pub use warp::{HostWarp, Warp};
