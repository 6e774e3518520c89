//! The C types and numbers, as `hsa.h` and `hsa_ext_amd.h` define them.

use std::ffi::c_void;

/// A result code.
pub type Status = u32;

/// Result codes.
pub mod status {
    use super::Status;
    /// Done.
    pub const SUCCESS: Status = 0;
    /// A generic failure.
    pub const ERROR: Status = 0x1000;
    /// An argument is none.
    pub const INVALID_ARGUMENT: Status = 0x1001;
    /// A queue cannot be made like this.
    pub const INVALID_QUEUE_CREATION: Status = 0x1002;
    /// Memory cannot be had like this.
    pub const INVALID_ALLOCATION: Status = 0x1003;
    /// No agent.
    pub const INVALID_AGENT: Status = 0x1004;
    /// No signal.
    pub const INVALID_SIGNAL: Status = 0x1006;
    /// No queue.
    pub const INVALID_QUEUE: Status = 0x1007;
    /// Something has run out.
    pub const OUT_OF_RESOURCES: Status = 0x1008;
    /// A packet is none.
    pub const INVALID_PACKET_FORMAT: Status = 0x1009;
    /// Not between init and shut-down.
    pub const NOT_INITIALIZED: Status = 0x100b;
    /// Things that do not fit together, such as a code object and an agent.
    pub const INCOMPATIBLE_ARGUMENTS: Status = 0x100d;
    /// No code object.
    pub const INVALID_CODE_OBJECT: Status = 0x1010;
    /// No executable.
    pub const INVALID_EXECUTABLE: Status = 0x1011;
    /// The executable is frozen.
    pub const FROZEN_EXECUTABLE: Status = 0x1012;
    /// No symbol of this name.
    pub const INVALID_SYMBOL_NAME: Status = 0x1013;
    /// A variable has no definition.
    pub const VARIABLE_UNDEFINED: Status = 0x1015;
    /// The program trapped.
    pub const EXCEPTION: Status = 0x1016;
    /// No isa.
    pub const INVALID_ISA: Status = 0x100f;
    /// No symbol.
    pub const INVALID_EXECUTABLE_SYMBOL: Status = 0x1019;
    /// No code object reader.
    pub const INVALID_CODE_OBJECT_READER: Status = 0x1021;
    /// No memory pool.
    pub const INVALID_MEMORY_POOL: Status = 40;
    /// An access outside local or private memory.
    pub const MEMORY_APERTURE_VIOLATION: Status = 41;
    /// An instruction that is none.
    pub const ILLEGAL_INSTRUCTION: Status = 42;
    /// An access to no memory.
    pub const MEMORY_FAULT: Status = 43;
}

/// A handle; which kind is said by the argument's name.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handle {
    /// Its number.
    pub handle: u64,
}

/// A queue as users see it.
#[repr(C)]
#[derive(Debug)]
pub struct Queue {
    /// Who may submit.
    pub kind: u32,
    /// Which packets it takes.
    pub features: u32,
    /// The ring of packets.
    pub base: *mut c_void,
    /// The signal that says there are packets.
    pub doorbell: Handle,
    /// Packets of the ring.
    pub size: u32,
    /// Zero.
    pub reserved: u32,
    /// Its number.
    pub id: u64,
}

/// What a system event handler is told of a memory fault.
#[repr(C)]
#[derive(Debug)]
pub struct Event {
    /// 0: a memory fault.
    pub kind: u32,
    /// The device.
    pub agent: Handle,
    /// The address.
    pub address: u64,
    /// Why.
    pub reasons: u32,
}

/// Bits of [`Event::reasons`].
pub mod reason {
    /// No memory is there.
    pub const NOT_PRESENT: u32 = 1;
    /// It must not be written.
    pub const READ_ONLY: u32 = 1 << 1;
    /// The host has not allowed it.
    pub const HOST_ONLY: u32 = 1 << 3;
}

/// A callback for agents, pools or isas.
pub type Visit = Option<unsafe extern "C" fn(Handle, *mut c_void) -> Status>;
/// A queue's error callback.
pub type QueueError = Option<unsafe extern "C" fn(Status, *mut Queue, *mut c_void)>;
/// A system event handler.
pub type EventHandler = Option<unsafe extern "C" fn(*const Event, *mut c_void) -> Status>;

const _: () = assert!(size_of::<Queue>() == 40);
const _: () = assert!(std::mem::offset_of!(Event, agent) == 8);
const _: () = assert!(std::mem::offset_of!(Event, reasons) == 24);
