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

use crate::builtin::{BuiltinImage, Plain};
use crate::fault;

/// An image that can run.
pub(crate) struct Image {
    pub(crate) kernels: BuiltinImage,
    /// Address and size of each global.
    globals: HashMap<String, (usize, usize)>,
    /// Address of each function.
    functions: HashMap<String, usize>,
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
            functions: HashMap::new(),
        }
    }

    /// Loads a shared object. It comes from memory, so that what was checked is what is loaded,
    /// and stays until the process ends: it may have left destructors with any thread.
    pub(crate) fn load(bytes: &[u8]) -> Result<Self, DeviceError> {
        let exports = Exports::of(bytes)?;
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
        let globals = exports.globals.into_iter();
        let globals = globals
            .filter_map(|(name, size)| address(&name).map(|address| (name, (address, size))))
            .collect();
        let functions = exports.functions.into_iter();
        let functions = functions
            .filter_map(|name| address(&name).map(|address| (name, address)))
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
        Ok(Self {
            kernels,
            globals,
            functions,
        })
    }

    /// The function `name`, as a kernel that is run by its name.
    pub(crate) fn plain(&self, name: &str) -> Option<Plain> {
        let address = *self.functions.get(name)?;
        let pointer = std::ptr::with_exposed_provenance::<()>(address);
        // SAFETY: it is the address of a function of the image, which is never unloaded, and not
        // null. That it takes a `CpuThread` and nothing else is what whoever names it says; nothing
        // in a shared object tells.
        Some(unsafe { std::mem::transmute::<*const (), Plain>(pointer) })
    }

    /// The names of all functions.
    pub(crate) fn functions(&self) -> impl Iterator<Item = &str> {
        self.functions.keys().map(String::as_str)
    }

    /// Address and size of a global.
    pub(crate) fn global(&self, name: &str) -> Option<(usize, usize)> {
        self.globals.get(name).copied()
    }
}

/// What the image defines.
struct Exports {
    /// Names and sizes.
    globals: Vec<(String, usize)>,
    functions: Vec<String>,
}

impl Exports {
    fn of(bytes: &[u8]) -> Result<Self, DeviceError> {
        let file = object::read::elf::ElfFile64::<object::LittleEndian>::parse(bytes).map_err(
            |error| DeviceError::Image(format!("the image is no shared object: {error}")),
        )?;
        let (mut globals, mut functions) = (Vec::new(), Vec::new());
        for symbol in file.dynamic_symbols().filter(ObjectSymbol::is_definition) {
            let Ok(name) = symbol.name() else {
                continue;
            };
            match symbol.kind() {
                SymbolKind::Data => globals.push((name.to_owned(), symbol.size() as usize)),
                SymbolKind::Text => functions.push(name.to_owned()),
                _ => {}
            }
        }
        Ok(Self { globals, functions })
    }
}
