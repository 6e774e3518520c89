//! The driver's library, opened on first use and never closed.

use std::ffi::{CStr, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use cust_raw::cudaError_enum;
use libloading::Library;
use thiserror::Error;

/// The file that an NVIDIA driver installs for programs.
const LIBRARY: &str = "libcuda.so.1";

/// Why there is no driver.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum DriverError {
    /// The driver's library is not there or did not load; holds the dynamic linker's words.
    #[error("no NVIDIA driver: libcuda.so.1 could not be loaded ({0})")]
    NotLoaded(String),
}

fn library() -> &'static Result<Library, DriverError> {
    static OPENED: OnceLock<Result<Library, DriverError>> = OnceLock::new();
    OPENED.get_or_init(|| {
        // SAFETY: opening a library runs its initialisers. This is the system's driver, found
        // where the dynamic linker looks, which any CUDA program runs at its start; it has no
        // requirements on its caller. It stays open for the life of the process.
        unsafe { Library::new(LIBRARY) }
            .map_err(|error| DriverError::NotLoaded(error.to_string().replace('\n', " ")))
    })
}

/// Whether an NVIDIA driver is installed. Opens its library; asks it nothing.
///
/// # Errors
/// One sentence that says why there is none.
///
/// ```
/// if let Err(reason) = cuda_shim::available() {
///     eprintln!("{reason}"); // no NVIDIA driver: libcuda.so.1 could not be loaded (...)
/// }
/// ```
pub fn available() -> Result<(), DriverError> {
    library().as_ref().map(|_| ()).map_err(Clone::clone)
}

/// The address of the driver's function of that name, which ends with a NUL.
pub(crate) fn symbol(name: &'static str) -> Option<*mut c_void> {
    let library = library().as_ref().ok()?;
    let name = CStr::from_bytes_with_nul(name.as_bytes()).ok()?;
    // SAFETY: the symbol's value is only taken as an address; whoever calls it says why it has the
    // type that it is called with.
    let address = unsafe { library.get::<*mut c_void>(name.to_bytes_with_nul()) }.ok()?;
    (!address.is_null()).then_some(*address)
}

/// Where one function of the driver is remembered.
pub(crate) struct Slot {
    /// With a NUL at its end.
    name: &'static str,
    address: AtomicPtr<c_void>,
}

impl Slot {
    pub(crate) const fn new(name: &'static str) -> Self {
        Self {
            name,
            address: AtomicPtr::new(std::ptr::null_mut()),
        }
    }

    /// The function's address, or the code to answer with when there is none.
    pub(crate) fn address(&self) -> Result<*mut c_void, u32> {
        // Relaxed is enough: what the address points to was there before any thread could have
        // got it from the dynamic linker, whose own lock orders that; two threads that both look
        // it up store the same value.
        let known = self.address.load(Ordering::Relaxed);
        if !known.is_null() {
            return Ok(known);
        }
        if library().is_err() {
            return Err(cudaError_enum::CUDA_ERROR_NO_DEVICE as u32);
        }
        let address = symbol(self.name)
            .ok_or(cudaError_enum::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND as u32)?;
        self.address.store(address, Ordering::Relaxed);
        Ok(address)
    }
}
