//! Shared objects as images.

use std::collections::HashMap;
use std::io::Write;
use std::os::fd::AsRawFd;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use loader_core::device::DeviceError;
use object::{Object, ObjectSymbol, SymbolKind};
use rpc_types::ClientDescriptor;
use rpc_types::image::{CLIENT_SYMBOL, CPU_KERNELS};
use rustix::fs::{MemfdFlags, memfd_create};

use crate::builtin::BuiltinImage;
use crate::fault;

/// An image that can run.
pub(crate) struct Image {
    pub(crate) kernels: BuiltinImage,
    /// Address and size of each global.
    globals: HashMap<String, (usize, usize)>,
}

impl Image {
    /// A program that is linked into this one.
    pub(crate) fn builtin(kernels: BuiltinImage) -> Self {
        let globals = kernels.client.map(|client| {
            (
                CLIENT_SYMBOL.to_owned(),
                (client.expose_provenance(), size_of::<ClientDescriptor>()),
            )
        });
        Self {
            kernels,
            globals: globals.into_iter().collect(),
        }
    }

    /// Loads a shared object. It comes from memory, so that what was checked is what is loaded,
    /// and stays until the process ends: it may have left destructors with any thread.
    pub(crate) fn load(bytes: &[u8]) -> Result<Self, DeviceError> {
        let sizes = sizes(bytes)?;
        let failed =
            |reason: String| DeviceError::Image(format!("the image could not be loaded: {reason}"));
        let mut file: std::fs::File = memfd_create("image", MemfdFlags::CLOEXEC)
            .map_err(|error| failed(error.to_string()))?
            .into();
        file.write_all(bytes).map_err(|error| match error.kind() {
            // Memory counts as a file here.
            std::io::ErrorKind::FileTooLarge => failed(format!("{error} (see ulimit -f)")),
            _ => failed(error.to_string()),
        })?;
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        // SAFETY: loading runs the image's constructors. Its user asks for the program to be run,
        // within this process, and takes its effects as those of any program.
        let library = unsafe { fault::watch(|| Library::open(Some(&path), RTLD_NOW | RTLD_LOCAL)) }
            .map_err(|error| failed(error.to_string().replace(&path, "it")))?;
        let library: &'static Library = Box::leak(Box::new(library));
        // The next image must not get this number: the system's linker knows libraries by their
        // paths, and would give this one for it.
        std::mem::forget(file);
        let address = |name: &str| {
            // SAFETY: the symbol is only taken for its address.
            let symbol = unsafe { library.get::<*mut ()>(name.as_bytes()) }.ok()?;
            Some(symbol.into_raw().expose_provenance()).filter(|&address| address != 0)
        };
        let globals = sizes
            .into_iter()
            .filter_map(|(name, size)| address(&name).map(|address| (name, (address, size))))
            .collect();
        // SAFETY: the image ABI gives the functions of these names these types, and the library
        // is never unloaded.
        let kernels = unsafe {
            BuiltinImage {
                client: None,
                begin: library.get(CPU_KERNELS.begin.as_bytes()).ok().map(|f| *f),
                start: library.get(CPU_KERNELS.start.as_bytes()).ok().map(|f| *f),
                end: library.get(CPU_KERNELS.end.as_bytes()).ok().map(|f| *f),
            }
        };
        Ok(Self { kernels, globals })
    }

    /// Address and size of a global.
    pub(crate) fn global(&self, name: &str) -> Option<(usize, usize)> {
        self.globals.get(name).copied()
    }
}

/// The size of each global that the image defines.
fn sizes(bytes: &[u8]) -> Result<Vec<(String, usize)>, DeviceError> {
    let file = object::read::elf::ElfFile64::<object::LittleEndian>::parse(bytes)
        .map_err(|error| DeviceError::Image(format!("the image is no shared object: {error}")))?;
    let defined = file
        .dynamic_symbols()
        .filter(|symbol| symbol.is_definition() && symbol.kind() == SymbolKind::Data);
    Ok(defined
        .filter_map(|symbol| Some((symbol.name().ok()?.to_owned(), symbol.size() as usize)))
        .collect())
}
