//! The driver's compiler: its options and logs, and PTX made to a cubin.

use std::ffi::c_void;
use std::ptr::{null_mut, without_provenance_mut};

use cust::sys::{self, CUjit_option as Option_, CUjitInputType};
use loader_core::device::DeviceError;

use crate::cuda::{check, code};
use crate::device::CudaDevice;

/// Room for each of the compiler's two logs.
const LOG: usize = 16 << 10;

/// Options that the compiler is called with, and where it writes its words.
pub(crate) struct Compiler {
    said: Vec<u8>,
    erred: Vec<u8>,
    pub(crate) options: Vec<Option_>,
    /// For each option its value; sizes and numbers are passed as the pointers' values.
    pub(crate) values: Vec<*mut c_void>,
}

impl Compiler {
    pub(crate) fn new(level: Option<u32>) -> Self {
        let (mut said, mut erred) = (vec![0_u8; LOG], vec![0_u8; LOG]);
        let mut options = vec![
            Option_::CU_JIT_INFO_LOG_BUFFER,
            Option_::CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
            Option_::CU_JIT_ERROR_LOG_BUFFER,
            Option_::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
        ];
        let mut values: Vec<*mut c_void> = vec![
            said.as_mut_ptr().cast(),
            without_provenance_mut(LOG),
            erred.as_mut_ptr().cast(),
            without_provenance_mut(LOG),
        ];
        if let Some(level) = level {
            options.push(Option_::CU_JIT_OPTIMIZATION_LEVEL);
            values.push(without_provenance_mut(level as usize));
        }
        Self {
            said,
            erred,
            options,
            values,
        }
    }

    /// What the compiler has said, errors first choice.
    pub(crate) fn words(&self) -> String {
        let erred = one_line(&self.erred);
        if erred.is_empty() {
            one_line(&self.said)
        } else {
            erred
        }
    }
}

/// A linker of the driver's.
struct Linker(sys::CUlinkState);

impl Drop for Linker {
    fn drop(&mut self) {
        // SAFETY: made by cuLinkCreate, destroyed once; what it gave has been copied.
        unsafe { sys::cuLinkDestroy(self.0) };
    }
}

impl CudaDevice {
    /// Compiles PTX, which ends with a NUL, for this device: the driver lists the variables of no
    /// module, but a cubin has them in its table of symbols.
    pub(crate) fn link(&self, text: &[u8]) -> Result<Vec<u8>, DeviceError> {
        // The linker writes into the logs until it is destroyed: declared first, dropped last.
        let mut compiler = Compiler::new(self.jit_level);
        let mut state = null_mut();
        // SAFETY: the arrays have an entry for each option, the log buffers the sizes that are said,
        // and live longer than the linker; `state` is a place for a handle.
        let result = unsafe {
            sys::cuLinkCreate_v2(
                compiler.options.len() as u32,
                compiler.options.as_mut_ptr(),
                compiler.values.as_mut_ptr(),
                &raw mut state,
            )
        };
        check("cuLinkCreate", result)?;
        let linker = Linker(state);
        // SAFETY: the linker exists; the text is read only, has as many bytes and ends with a NUL, as
        // the name does; there are no options.
        let result = unsafe {
            sys::cuLinkAddData_v2(
                linker.0,
                CUjitInputType::CU_JIT_INPUT_PTX,
                text.as_ptr().cast_mut().cast(),
                text.len(),
                c"image".as_ptr(),
                0,
                null_mut(),
                null_mut(),
            )
        };
        if code(result) != 0 {
            return Err(self.refused(code(result), &compiler.words()));
        }
        let (mut cubin, mut size) = (null_mut::<c_void>(), 0);
        // SAFETY: the linker exists; the others are places for a pointer and a size.
        let result = unsafe { sys::cuLinkComplete(linker.0, &raw mut cubin, &raw mut size) };
        if code(result) != 0 {
            return Err(self.refused(code(result), &compiler.words()));
        }
        if cubin.is_null() {
            return Err(DeviceError::Image(
                "the driver's compiler made nothing of the PTX".to_owned(),
            ));
        }
        // SAFETY: the driver gave `size` bytes there, which live as long as the linker.
        Ok(unsafe { std::slice::from_raw_parts(cubin.cast::<u8>(), size) }.to_vec())
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
