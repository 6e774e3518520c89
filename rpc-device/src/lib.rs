#![doc = include_str!("../README.md")]
//! # Map
//!
//! | module | what is in it |
//! |---|---|
//! | [`grid`] | which thread of which block this is |
//! | [`program`] | [`Program`]: arguments and environment |
//! | [`mod@print`] | what the printing macros do |
//! | [`calls`] | [`exit`], [`call`], [`notify`], [`exchange`] |
//! | [`client`] | the client that the host has set up |
//! | [`clock`] | nanoseconds |
//! | [`mod@entry`] | what [`entry!`] makes, panics included |
//!
//! `target` has one file for each of NVPTX, AMDGPU and hosts: lanes, positions, ending a thread.
#![no_std]
#![cfg_attr(
    target_arch = "nvptx64",
    feature(asm_experimental_arch, link_llvm_intrinsics, stdarch_nvptx)
)]
#![cfg_attr(
    target_arch = "amdgpu",
    feature(core_intrinsics, gpu_intrinsics, stdarch_amdgpu)
)]
#![cfg_attr(
    any(target_arch = "nvptx64", target_arch = "amdgpu"),
    feature(allow_internal_unstable),
    allow(internal_features)
)]

#[cfg(not(any(target_arch = "nvptx64", target_arch = "amdgpu")))]
extern crate std;

pub mod calls;
pub mod client;
pub mod clock;
pub mod entry;
pub mod grid;
pub mod print;
pub mod program;
mod target;

pub use calls::{call, exchange, exit, notify};
pub use program::{Program, Text};
pub use rpc_port::stream::{Prefix, Sink};
pub use rpc_port::{Error, Procedure, StreamProcedure, procedure};
pub use rpc_types::{Opcode, Status};
