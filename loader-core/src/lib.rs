#![doc = include_str!("../README.md")]
//! # Map
//!
//! | module | what is in it |
//! |---|---|
//! | [`device`] | [`Device`](device::Device): what a device API must do |
//! | [`program`] | [`Backend`](program::Backend) and the `main` of every loader |
//! | [`cli`] | the command line |
//! | [`image`] | which kind an image is, or why it is none; files that hold several |
//! | [`links`] | names of LLVM's loaders, as links to ours |
//! | [`block`] | arguments and environment as the device finds them |
//! | [`heap`] | a heap over device addresses |
//! | [`staging`] | buffers that a device lends for copies |
//! | [`run`] | the run: load, serve, wait |
//! | [`end`] | how a run ends, and what then is to be done |
//! | [`serve`] | a server behind the client that an image carries |
//! | [`exit`] | the exit codes |
//! | [`report`] | what was called, as JSON lines |
//! | [`outputs`] | files that are not to be written, for something would be lost |
//!
//! `kernels` runs `_begin`, `_start` and `_end` on a thread of its own, `signals` watches for
//! interrupts, `place` finds a device for an image, `stats` publishes what happens for monitors.

pub mod block;
pub mod cli;
pub mod device;
pub mod end;
pub mod exit;
pub mod heap;
pub mod image;
mod kernels;
pub mod links;
pub mod outputs;
mod place;
pub mod program;
pub mod report;
pub mod run;
pub mod serve;
mod signals;
pub mod staging;
mod stats;
