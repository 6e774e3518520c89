//! PTX and cubin: checked, loaded, the compiler's words kept.

use std::borrow::Cow;
use std::ffi::CString;
use std::ptr::null_mut;

use cust::sys;
use loader_core::device::DeviceError;
use loader_core::image::{self, ImageKind};

use crate::arrays;
use crate::cubin::Cubin;
use crate::cuda::{Module, NOT_FOUND, check, code, error};
use crate::device::CudaDevice;
use crate::jit::Compiler;
use crate::ptx;

impl CudaDevice {
    pub(crate) fn load_image(&self, image: &[u8]) -> Result<(), DeviceError> {
        if self.module.get().is_some() {
            return Err(DeviceError::Image("an image is already loaded".to_owned()));
        }
        let Prepared { data, text } = prepare(image)?;
        self.enter()?;
        if !text {
            return self.load_cubin(&data);
        }
        let text = String::from_utf8_lossy(&data);
        if arrays::has_any(&text) {
            let cubin = self.link(&data)?;
            let kind = image::recognise(&cubin).ok();
            if kind != Some(ImageKind::Cubin) {
                return Err(DeviceError::Image(
                    "what the driver's compiler made of the PTX is no cubin".to_owned(),
                ));
            }
            return self.load_cubin(&cubin);
        }
        self.load_module(&data)?;
        // Set here only, and behind this no second image is loaded.
        let _ = self.signatures.set(ptx::kernels(&text));
        Ok(())
    }

    /// Loads a cubin that was found to hold all its parts.
    fn load_cubin(&self, data: &[u8]) -> Result<(), DeviceError> {
        let cubin = Cubin::parse(data)
            .map_err(|sentence| DeviceError::Image(format!("the image {sentence}")))?;
        self.load_module(data)?;
        let _ = self.signatures.set(cubin.kernels);
        self.make_arrays(&cubin.variables)
    }

    /// Gives the image to the driver: text that ends with a NUL, or a cubin that holds all its parts.
    fn load_module(&self, data: &[u8]) -> Result<(), DeviceError> {
        let mut compiler = Compiler::new(self.jit_level);
        let mut module = null_mut();
        // SAFETY: `module` is a place for a handle; `data` ends with a NUL if it is text and was
        // found to hold all its parts if it is ELF; the arrays have an entry for each option, the log
        // buffers the sizes that are said.
        let result = unsafe {
            sys::cuModuleLoadDataEx(
                &raw mut module,
                data.as_ptr().cast(),
                compiler.options.len() as u32,
                compiler.options.as_mut_ptr(),
                compiler.values.as_mut_ptr(),
            )
        };
        match code(result) {
            0 => {}
            code => return Err(self.refused(code, &compiler.words())),
        }
        // Another thread's image, should there be one, stays; this one is unloaded.
        self.module
            .set(Module(module))
            .map_err(|_| DeviceError::Image("an image is already loaded".to_owned()))
    }

    /// Why the driver did not take the image; `log` is what its compiler said.
    pub(crate) fn refused(&self, code: u32, log: &str) -> DeviceError {
        let failed = error("cuModuleLoadDataEx", code);
        if matches!(failed, DeviceError::Fault(_)) {
            return failed;
        }
        let reason = match code {
            209 => format!(
                "the image has no code for {} (sm_{})",
                self.info.name, self.architecture
            ),
            222 => "the PTX is of a newer version than this driver takes".to_owned(),
            218 => "the driver's compiler refused the PTX".to_owned(),
            _ => format!(
                "the driver refused the image with {}",
                cuda_shim::describe(code)
            ),
        };
        let colon = if log.is_empty() { "" } else { ": " };
        DeviceError::Image(format!("{reason}{colon}{log}"))
    }

    /// Address and size of a global of the image.
    pub(crate) fn global(&self, name: &str) -> Result<Option<(u64, usize)>, DeviceError> {
        let module = self.loaded()?;
        let Ok(name) = CString::new(name) else {
            return Ok(None);
        };
        self.enter()?;
        let (mut address, mut size) = (0, 0);
        // SAFETY: the first two are places for an address and a size, `name` ends with a NUL, and
        // the module is loaded as long as `self` lives.
        let result = unsafe {
            sys::cuModuleGetGlobal_v2(&raw mut address, &raw mut size, module.0, name.as_ptr())
        };
        if code(result) == NOT_FOUND {
            return Ok(None);
        }
        check("cuModuleGetGlobal", result)?;
        Ok(Some((address, size)))
    }

    pub(crate) fn loaded(&self) -> Result<&Module, DeviceError> {
        self.module
            .get()
            .ok_or_else(|| DeviceError::Image("no image is loaded".to_owned()))
    }
}

/// An image as the driver wants it.
struct Prepared<'i> {
    data: Cow<'i, [u8]>,
    /// Whether it is PTX; else it is a cubin.
    text: bool,
}

/// The image as the driver wants it: text with a NUL. The driver is told no length; that an ELF
/// file holds all its parts is part of recognising it.
fn prepare(image: &[u8]) -> Result<Prepared<'_>, DeviceError> {
    let refused = |sentence: String| Err(DeviceError::Image(sentence));
    match image::recognise(image) {
        Ok(ImageKind::Cubin) => Ok(Prepared {
            data: Cow::Borrowed(image),
            text: false,
        }),
        Ok(ImageKind::Ptx) => {
            let ends = image
                .iter()
                .rposition(|byte| *byte != 0 && !byte.is_ascii_whitespace());
            let text = &image[..ends.map_or(0, |last| last + 1)];
            if text.contains(&0) {
                return refused("the PTX has NUL bytes: it is damaged".to_owned());
            }
            Ok(Prepared {
                data: Cow::Owned([text, b"\n\0"].concat()),
                text: true,
            })
        }
        Ok(other) => refused(format!("{} does not run on an NVIDIA device", other.name())),
        Err(reason) => refused(format!("the image {reason}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_gets_its_nul() {
        for end in ["", "\n", "\n\0", "\0\0", " \n\0 "] {
            let text = format!(".version 8.0{end}");
            let prepared = prepare(text.as_bytes()).unwrap();
            assert!(prepared.text);
            assert_eq!(*prepared.data, *b".version 8.0\n\0");
        }
    }

    #[test]
    fn what_the_driver_does_not_take_never_reaches_it() {
        let sentence = |image: &[u8]| prepare(image).map(drop).unwrap_err().to_string();
        assert!(sentence(b"").starts_with("the image is empty"));
        assert!(sentence(b"hello").starts_with("the image is text"));
        assert!(sentence(b"\x7fELF\x02\x01").contains("cut short"));
        assert_eq!(
            sentence(b".version 8.0\n\0x"),
            "the PTX has NUL bytes: it is damaged"
        );
    }
}
