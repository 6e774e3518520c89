#![doc = include_str!("../README.md")]
//! # Map
//!
//! - [`hsa`]: the C interface: agents, memory pools, executables, queues, signals.
//! - `machine`, `memory`, `pages`: the device and its memory; every access of a program is checked.
//! - `image`, `code`: ELF loading and relocation; code, decoded once.
//! - `kernel`, `schedule`: packets and kernel descriptors; waves on worker threads.
//! - `wave`, `group`, `private`: the state of a program.
//! - `isa`: decoding and disassembly; `ops`: a table for each encoding that says what operations do.
//! - `fault`, `trace`, `options`: what people see and set.

#![allow(
    clippy::cast_precision_loss,
    clippy::float_cmp,
    reason = "an instruction rounds and compares as it does"
)]
#![allow(
    clippy::match_same_arms,
    reason = "a table has a line for each number, whatever it answers"
)]
#![allow(
    clippy::trivially_copy_pass_by_ref,
    clippy::redundant_closure_for_method_calls,
    clippy::needless_range_loop,
    reason = "operations look alike, and operands are counted"
)]
#![allow(
    clippy::vec_box,
    clippy::unnecessary_box_returns,
    reason = "waves and faults are large and move often"
)]

mod code;
mod fault;
mod float;
mod group;
pub mod hsa;
mod image;
mod isa;
mod kernel;
mod machine;
mod memory;
mod ops;
mod options;
mod pages;
mod private;
mod random;
mod schedule;
#[cfg(test)]
mod testing;
mod time;
mod trace;
mod wave;
