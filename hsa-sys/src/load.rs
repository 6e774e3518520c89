//! The runtime's library: which one, and what it may lack.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use libloading::Library;
use thiserror::Error;

use crate::Api;

/// The environment variable that names another library.
pub const ENVIRONMENT: &str = "GPURPC_HSA_RUNTIME";
/// Where the runtime is looked for when nobody says: by the system's search path, then where AMD's
/// packages put it, which not every installation adds to that path.
pub const DEFAULT: [&str; 2] = [
    "libhsa-runtime64.so.1",
    "/opt/rocm/lib/libhsa-runtime64.so.1",
];

/// Why there is no table of functions.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The library is not there, or is none.
    #[error(
        "the HSA runtime could not be loaded ({reason}): install it (Debian: libhsa-runtime64-1, \
         AMD: hsa-rocr) or name the library in {ENVIRONMENT}"
    )]
    Library {
        /// What the dynamic linker said, for each that was tried.
        reason: String,
    },
    /// The library has no such function.
    #[error(
        "{library} has no function {name}, so it is not an HSA runtime or one that is too old: \
         install a newer one or name another in {ENVIRONMENT}"
    )]
    Symbol {
        /// The library.
        library: String,
        /// The function.
        name: &'static str,
    },
}

impl Api {
    /// The functions of `library`; if that is `None`, of the one that [`ENVIRONMENT`] names, else of
    /// the first of [`DEFAULT`] that is there. The library stays loaded: the runtime has threads.
    ///
    /// # Errors
    /// When the library or one of the functions is missing.
    pub fn load(library: Option<&Path>) -> Result<Self, LoadError> {
        let named = library
            .map(|path| path.as_os_str().to_owned())
            .or_else(|| std::env::var_os(ENVIRONMENT).filter(|name| !name.is_empty()));
        let names = named.map_or_else(
            || DEFAULT.iter().map(OsString::from).collect(),
            |name| vec![name],
        );
        let mut reasons = Vec::new();
        for name in &names {
            // SAFETY: the runtime's initialisers are those of a library that is made to be loaded
            // into any process. Which file that is, the user or the system says.
            match unsafe { Library::new(name) } {
                Ok(library) => return Self::from_library(library, name),
                Err(error) => reasons.push(said(name, &error)),
            }
        }
        Err(LoadError::Library {
            reason: reasons.join("; "),
        })
    }

    fn from_library(library: Library, name: &OsStr) -> Result<Self, LoadError> {
        let symbol = |function: &'static str| {
            // SAFETY: read as an address only.
            unsafe { library.get::<*mut core::ffi::c_void>(function.as_bytes()) }
                .ok()
                .map(|symbol| *symbol)
                .filter(|address| !address.is_null())
                .ok_or_else(|| LoadError::Symbol {
                    library: name.display().to_string(),
                    name: function,
                })
        };
        // SAFETY: the library calls itself the HSA runtime, whose functions have these names and
        // types for good; it is never unloaded, by the line below.
        let api = unsafe { Self::from_symbols(symbol) };
        std::mem::forget(library);
        api
    }
}

/// What the dynamic linker said, in one line that names the library.
fn said(name: &OsStr, error: &libloading::Error) -> String {
    let name = name.display().to_string();
    let source = std::error::Error::source(error);
    let said = source.map_or_else(|| error.to_string(), ToString::to_string);
    let said = said.trim_matches('"');
    if said.contains(&name) {
        said.to_owned()
    } else {
        format!("{name}: {said}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_library_is_named() {
        let error = Api::load(Some(Path::new("/no/such/libhsa.so"))).unwrap_err();
        let said = error.to_string();
        assert!(matches!(error, LoadError::Library { .. }));
        assert!(
            said.contains("/no/such/libhsa.so: cannot open shared object file"),
            "{said}"
        );
        assert!(said.contains(ENVIRONMENT) && !said.contains('\n'), "{said}");
    }

    #[test]
    fn a_library_that_is_another_is_told_by_what_it_lacks() {
        let said = Api::load(Some(Path::new("libc.so.6")))
            .unwrap_err()
            .to_string();
        assert!(said.starts_with("libc.so.6 has no function hsa_"), "{said}");
    }

    #[test]
    fn names_are_those_of_the_interface() {
        assert!(Api::NAMES.len() > 30);
        assert!(Api::NAMES.iter().all(|name| name.starts_with("hsa_")));
    }
}
