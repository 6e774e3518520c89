//! Who takes part in an atomic access or fence.

/// The set of agents that an atomic access or fence reaches.
///
/// Two accesses synchronise only if each one's scope includes the other's thread. A smaller scope
/// is cheaper: on an H200 a device-scope fence takes a third of a system-scope one.
pub trait Scope: Copy + Default + Send + Sync + 'static + private::Sealed {
    /// Whether the host takes part.
    const SYSTEM: bool;
}

/// Every thread of the host and of all devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct System;

/// The threads of one device; on a host, those of one process.
///
/// AMDGPU has only the system scope in today's Rust, so there this is another name for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Device;

impl Scope for System {
    const SYSTEM: bool = true;
}

impl Scope for Device {
    const SYSTEM: bool = false;
}

mod private {
    pub trait Sealed {}
    impl Sealed for super::System {}
    impl Sealed for super::Device {}
}
