//! PTX and cubin: checked, loaded, the compiler's words kept.

use std::borrow::Cow;
use std::ffi::{CString, c_void};
use std::ptr::{null_mut, without_provenance_mut};

use cust::sys::{self, CUjit_option as Jit};
use loader_core::device::DeviceError;

use crate::cuda::{Module, NOT_FOUND, check, code, error};
use crate::device::CudaDevice;

/// Room for each of the compiler's two logs.
const LOG: usize = 16 << 10;

impl CudaDevice {
    pub(crate) fn load_image(&self, image: &[u8]) -> Result<(), DeviceError> {
        if self.module.get().is_some() {
            return Err(DeviceError::Image("an image is already loaded".to_owned()));
        }
        let data = prepare(image).map_err(|reason| DeviceError::Image(reason.to_owned()))?;
        self.enter()?;
        let (mut said, mut erred) = (vec![0_u8; LOG], vec![0_u8; LOG]);
        let mut options = [
            Jit::CU_JIT_INFO_LOG_BUFFER,
            Jit::CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
            Jit::CU_JIT_ERROR_LOG_BUFFER,
            Jit::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
        ];
        // Sizes are passed as the pointers' values.
        let mut values: [*mut c_void; 4] = [
            said.as_mut_ptr().cast(),
            without_provenance_mut(LOG),
            erred.as_mut_ptr().cast(),
            without_provenance_mut(LOG),
        ];
        let mut module = null_mut();
        // SAFETY: `module` is a place for a handle; `data` ends with a NUL if it is text and was
        // found to hold all its parts if it is ELF; the arrays have four entries, the log buffers
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

/// The image as the driver wants it: text with a NUL, ELF with every part inside.
fn prepare(image: &[u8]) -> Result<Cow<'_, [u8]>, &'static str> {
    if image.starts_with(b"\x7fELF") {
        check_elf(image)?;
        return Ok(Cow::Borrowed(image));
    }
    let ends = image
        .iter()
        .rposition(|byte| *byte != 0 && !byte.is_ascii_whitespace());
    let text = &image[..ends.map_or(0, |last| last + 1)];
    if text.is_empty() {
        return Err("the image is empty");
    }
    if text.contains(&0) {
        return Err("the image is neither a cubin nor PTX: it has NUL bytes");
    }
    let mut ended = Vec::with_capacity(text.len() + 2);
    ended.extend_from_slice(text);
    ended.extend_from_slice(b"\n\0");
    Ok(Cow::Owned(ended))
}

/// The driver is told no length and trusts the headers: those of a truncated file would send it
/// past the end.
fn check_elf(image: &[u8]) -> Result<(), &'static str> {
    const TRUNCATED: &str = "the cubin is truncated or damaged";
    fn field<const N: usize>(image: &[u8], at: usize) -> Option<u64> {
        let bytes = image.get(at..at.checked_add(N)?)?;
        Some(
            bytes
                .iter()
                .rev()
                .fold(0, |value, &byte| value << 8 | u64::from(byte)),
        )
    }
    // A table at `offset` of `count` entries of `size` bytes; `place` gives where in an entry the
    // file offset and length of what it describes are, or none for an entry without contents.
    let table =
        |offset: u64, size: u64, count: u64, least: u64, place: fn(u64) -> (usize, usize)| {
            if count == 0 {
                return Some(());
            }
            let end = offset.checked_add(size.checked_mul(count)?)?;
            if size < least || end > image.len() as u64 {
                return None;
            }
            for index in 0..count {
                let entry = (offset + index * size) as usize;
                let (start, length) = place(field::<4>(image, entry + 4)?);
                if length == 0 {
                    continue;
                }
                let (start, length) = (
                    field::<8>(image, entry + start)?,
                    field::<8>(image, entry + length)?,
                );
                if start.checked_add(length)? > image.len() as u64 {
                    return None;
                }
            }
            Some(())
        };
    let well = || {
        let header = |at| field::<2>(image, at);
        // Sections: NOBITS (8) and NULL (0) have no contents. Segments: all have.
        table(
            field::<8>(image, 40)?,
            header(58)?,
            header(60)?,
            64,
            |kind| {
                if kind == 8 || kind == 0 {
                    (0, 0)
                } else {
                    (24, 32)
                }
            },
        )?;
        table(field::<8>(image, 32)?, header(54)?, header(56)?, 56, |_| {
            (8, 32)
        })
    };
    if image.get(4..6) != Some(&[2, 1]) || field::<2>(image, 18) != Some(190) {
        return Err("the image is an ELF file but not a cubin");
    }
    well().ok_or(TRUNCATED)
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

    /// Header, one section header, eight bytes of contents.
    fn cubin() -> Vec<u8> {
        let mut elf = vec![0; 136];
        elf[..6].copy_from_slice(b"\x7fELF\x02\x01");
        elf[18] = 190;
        elf[40] = 64; // section headers at 64
        elf[58] = 64; // bytes of each
        elf[60] = 1; // how many
        elf[68] = 1; // PROGBITS
        elf[64 + 24] = 128; // its contents
        elf[64 + 32] = 8;
        elf
    }

    #[test]
    fn text_gets_its_nul() {
        for text in [
            &b".version 8.0"[..],
            b".version 8.0\n",
            b".version 8.0\n\0",
            b".version 8.0\0\0",
        ] {
            assert_eq!(
                prepare(text).unwrap().strip_suffix(b"\n\0"),
                Some(&b".version 8.0"[..])
            );
        }
    }

    #[test]
    fn what_is_neither_is_refused() {
        assert_eq!(prepare(b""), Err("the image is empty"));
        assert_eq!(prepare(b" \n"), Err("the image is empty"));
        assert!(prepare(b".version\0 8.0").unwrap_err().contains("NUL"));
        let mut other = cubin();
        other[18] = 62;
        assert_eq!(
            prepare(&other),
            Err("the image is an ELF file but not a cubin")
        );
    }

    #[test]
    fn a_cubin_must_hold_all_its_parts() {
        let elf = cubin();
        assert!(prepare(&elf).is_ok());
        for length in 20..elf.len() {
            assert_eq!(
                prepare(&elf[..length]),
                Err("the cubin is truncated or damaged"),
                "{length}"
            );
        }
        for (at, value) in [
            (64 + 32, 9),
            (64 + 31, 255),
            (47, 255),
            (58, 8),
            (61, 255),
            (56, 1),
        ] {
            let mut broken = elf.clone();
            broken[at] = value;
            assert_eq!(
                prepare(&broken),
                Err("the cubin is truncated or damaged"),
                "{at}"
            );
        }
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
