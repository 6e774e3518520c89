//! A device program that is linked into this one.

use rpc_types::ClientDescriptor;
use rpc_types::image::CpuThread;

/// `__gpurpc_begin`: one thread, first.
pub type Begin = unsafe extern "C" fn(i32, *const *const u8, *const *const u8, *const CpuThread);
/// `__gpurpc_start`: every thread of the grid; ORs its result into the last but one.
pub type Start =
    unsafe extern "C" fn(i32, *const *const u8, *const *const u8, *mut i32, *const CpuThread);
/// `__gpurpc_end`: one thread, last.
pub type End = unsafe extern "C" fn(*const CpuThread);

/// A kernel that is run by its name: every thread of the grid.
pub type Plain = unsafe extern "C" fn(*const CpuThread);

/// What a shared object exports, as pointers.
#[derive(Clone, Copy, Debug, Default)]
pub struct BuiltinImage {
    /// The client, if there is one.
    pub client: Option<*mut ClientDescriptor>,
    /// Runs first.
    pub begin: Option<Begin>,
    /// Runs on the grid.
    pub start: Option<Start>,
    /// Runs last.
    pub end: Option<End>,
}

// SAFETY: the client is only an address here; it is accessed by the device's `read_global` and
// `write_global`, which the run calls before any kernel runs.
unsafe impl Send for BuiltinImage {}
// SAFETY: as for `Send`.
unsafe impl Sync for BuiltinImage {}
