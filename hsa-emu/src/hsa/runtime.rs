//! What exists between `hsa_init` and `hsa_shut_down`.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use super::executable::{Executable, Reader, SymbolEntry};
use super::queue::QueueState;
use super::types::{EventHandler, Handle, Status, status};
use crate::machine::Machine;
use crate::options::Options;
use crate::trace;

/// The CPU.
pub(crate) const CPU: Handle = Handle { handle: 0x10 };
/// The GPU.
pub(crate) const GPU: Handle = Handle { handle: 0x20 };

/// Where a handler's data lies; whoever registered it takes care of its threads.
pub(crate) struct Data(pub(crate) *mut std::ffi::c_void);

// SAFETY: only passed back to the callback it came with, as the interface says it is.
unsafe impl Send for Data {}

/// Objects by handle.
#[derive(Default)]
pub(crate) struct Runtime {
    /// How often `hsa_init` was called.
    references: u32,
    /// Code object readers.
    pub(crate) readers: HashMap<u64, Arc<Reader>>,
    /// Executables.
    pub(crate) executables: HashMap<u64, Executable>,
    /// Symbols of executables.
    pub(crate) symbols: HashMap<u64, SymbolEntry>,
    /// Queues by the address that users know.
    pub(crate) queues: HashMap<u64, Arc<QueueState>>,
    /// Memory of the host that the device may use, by address: how often it was locked.
    pub(crate) locked: HashMap<u64, u32>,
    /// Who is told of memory faults.
    pub(crate) handler: Option<(EventHandler, Data)>,
}

static RUNTIME: LazyLock<Mutex<Runtime>> = LazyLock::new(Mutex::default);
static MACHINE: LazyLock<Machine> = LazyLock::new(|| {
    let options = Options::from_environment();
    if let Some(path) = &options.trace
        && let Err(error) = trace::start(path)
    {
        eprintln!("hsa-emu: cannot write the trace to {path}: {error}");
    }
    Machine::new(options)
});
static NEXT: AtomicU64 = AtomicU64::new(0x100);

/// The device.
pub(crate) fn machine() -> &'static Machine {
    &MACHINE
}

/// A number that was none before.
pub(crate) fn new_handle() -> u64 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// The objects, whether or not there is a runtime.
pub(crate) fn lock() -> MutexGuard<'static, Runtime> {
    RUNTIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The objects of the runtime.
///
/// # Errors
/// Outside `hsa_init` and `hsa_shut_down`.
pub(crate) fn runtime() -> Result<MutexGuard<'static, Runtime>, Status> {
    let runtime = lock();
    if runtime.references == 0 {
        return Err(status::NOT_INITIALIZED);
    }
    Ok(runtime)
}

/// The status of a function that gives it in both cases.
pub(crate) fn done(result: Result<(), Status>) -> Status {
    result.err().unwrap_or(status::SUCCESS)
}

/// `hsa_init`
#[unsafe(no_mangle)]
pub extern "C" fn hsa_init() -> Status {
    let mut runtime = lock();
    match runtime.references.checked_add(1) {
        Some(references) => runtime.references = references,
        None => return status::ERROR,
    }
    // Options are read now rather than at the first kernel.
    machine();
    status::SUCCESS
}

/// `hsa_shut_down`: the last one stops kernels and frees everything but what was allocated from pools,
/// which a copy may still use.
#[unsafe(no_mangle)]
pub extern "C" fn hsa_shut_down() -> Status {
    let mut runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(status) => return status,
    };
    runtime.references -= 1;
    if runtime.references > 0 {
        return status::SUCCESS;
    }
    let Runtime {
        queues,
        executables,
        locked,
        ..
    } = std::mem::take(&mut *runtime);
    drop(runtime);
    for queue in queues.into_values() {
        queue.end();
    }
    drop(executables);
    // The host's memory is its own again.
    let mut space = machine()
        .space
        .write()
        .unwrap_or_else(PoisonError::into_inner);
    for start in locked.into_keys() {
        space.remove(start);
    }
    status::SUCCESS
}
