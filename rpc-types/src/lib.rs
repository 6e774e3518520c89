#![doc = include_str!("../README.md")]
//! # Map
//!
//! | module | what it fixes |
//! |---|---|
//! | [`opcode`] | what a call asks for: 32-bit opcodes and their 16-bit form |
//! | [`status`] | how the host answers besides data |
//! | [`packet`] | one lane's share of a port: 64 bytes |
//! | [`stream`] | how a message longer than a packet is cut up |
//! | [`layout`] | where everything lies in the shared and the device-private region |
//! | [`image`] | what a GPU image exports, so that a loader can serve it |
//! | [`llvm`] | what one made with LLVM's libc exports instead |
//!
//! There is no behaviour here and no `unsafe`. All words are little-endian.
#![no_std]
#![forbid(unsafe_code)]

pub mod image;
pub mod layout;
pub mod llvm;
pub mod opcode;
pub mod packet;
pub mod status;
pub mod stream;

pub use image::ClientDescriptor;
pub use layout::{Geometry, LayoutKind};
pub use opcode::Opcode;
pub use packet::Packet;
pub use status::Status;
