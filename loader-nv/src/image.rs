//! PTX and cubin: checked, loaded, the compiler's words kept.

use std::borrow::Cow;
use std::ffi::{CString, c_void};
use std::ptr::{null_mut, without_provenance_mut};

use cust::sys::{self, CUjit_option as Jit};
use loader_core::device::DeviceError;
use loader_core::image::{self, ImageKind};

use crate::cuda::{Module, NOT_FOUND, check, code, error};
use crate::device::CudaDevice;

/// Room for each of the compiler's two logs.
const LOG: usize = 16 << 10;

impl CudaDevice {
    pub(crate) fn load_image(&self, image: &[u8]) -> Result<(), DeviceError> {
        if self.module.get().is_some() {
            return Err(DeviceError::Image("an image is already loaded".to_owned()));
        }
        let data = prepare(image)?;
        self.enter()?;
        let (mut said, mut erred) = (vec![0_u8; LOG], vec![0_u8; LOG]);
        let mut options = vec![
            Jit::CU_JIT_INFO_LOG_BUFFER,
            Jit::CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
            Jit::CU_JIT_ERROR_LOG_BUFFER,
            Jit::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
        ];
        // Sizes are passed as the pointers' values.
        let mut values: Vec<*mut c_void> = vec![
            said.as_mut_ptr().cast(),
            without_provenance_mut(LOG),
            erred.as_mut_ptr().cast(),
            without_provenance_mut(LOG),
        ];
        if let Some(level) = self.jit_level {
            options.push(Jit::CU_JIT_OPTIMIZATION_LEVEL);
            values.push(without_provenance_mut(level as usize));
        }
        let mut module = null_mut();
        // SAFETY: `module` is a place for a handle; `data` ends with a NUL if it is text and was
        // found to hold all its parts if it is ELF; the arrays have an entry for each option, the log buffers
        // the sizes that are said.
        let result = unsafe {
            sys::cuModuleLoadDataEx(
                &raw mut module,
                data.as_ptr().cast(),
                options.len() as u32,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        match code(result) {
            0 => {}
            code => return Err(self.refused(code, &one_line(&erred), &one_line(&said))),
        }
        // Another thread's image, should there be one, stays; this one is unloaded.
        self.module
            .set(Module(module))
            .map_err(|_| DeviceError::Image("an image is already loaded".to_owned()))
    }

    /// Why the driver did not take the image.
    fn refused(&self, code: u32, erred: &str, said: &str) -> DeviceError {
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
        let log = if erred.is_empty() { said } else { erred };
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

/// The image as the driver wants it: text with a NUL. The driver is told no length; that an ELF
/// file holds all its parts is part of recognising it.
fn prepare(image: &[u8]) -> Result<Cow<'_, [u8]>, DeviceError> {
    let refused = |sentence: String| Err(DeviceError::Image(sentence));
    match image::recognise(image) {
        Ok(ImageKind::Cubin) => Ok(Cow::Borrowed(image)),
        Ok(ImageKind::Ptx) => {
            let ends = image
                .iter()
                .rposition(|byte| *byte != 0 && !byte.is_ascii_whitespace());
            let text = &image[..ends.map_or(0, |last| last + 1)];
            if text.contains(&0) {
                return refused("the PTX has NUL bytes: it is damaged".to_owned());
            }
            Ok(Cow::Owned([text, b"\n\0"].concat()))
        }
        Ok(other) => refused(format!("{} does not run on an NVIDIA device", other.name())),
        Err(reason) => refused(format!("the image {reason}")),
    }
}

/// A log's lines as one, and not too long a one.
fn one_line(log: &[u8]) -> String {
    let end = log.iter().position(|&byte| byte == 0).unwrap_or(log.len());
    let text = String::from_utf8_lossy(&log[..end]);
    let lines = text
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    let joined = lines
        .filter(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join("; ");
    joined.chars().take(1500).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_gets_its_nul() {
        for end in ["", "\n", "\n\0", "\0\0", " \n\0 "] {
            let text = format!(".version 8.0{end}");
            assert_eq!(*prepare(text.as_bytes()).unwrap(), *b".version 8.0\n\0");
        }
    }

    #[test]
    fn what_the_driver_does_not_take_never_reaches_it() {
        let sentence = |image: &[u8]| prepare(image).unwrap_err().to_string();
        assert!(sentence(b"").starts_with("the image is empty"));
        assert!(sentence(b"hello").starts_with("the image is text"));
        assert!(sentence(b"\x7fELF\x02\x01").contains("cut short"));
        assert_eq!(
            sentence(b".version 8.0\n\0x"),
            "the PTX has NUL bytes: it is damaged"
        );
    }

    #[test]
    fn logs_become_one_sentence() {
        let log = b"ptxas application ptx input, line 3; fatal   : Parsing error\nptxas fatal : x\n\0junk";
        assert_eq!(
            one_line(log),
            "ptxas application ptx input, line 3; fatal : Parsing error; ptxas fatal : x"
        );
        assert_eq!(one_line(b""), "");
        assert_eq!(one_line(&[b'a'; 5000]).len(), 1500);
    }
}
