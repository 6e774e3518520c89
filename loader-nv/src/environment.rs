//! What the driver reads from the environment when it starts.

use std::ffi::OsStr;

use loader_core::device::DeviceError;

const LOADING: &str = "CUDA_MODULE_LOADING";

/// Makes the driver load all code of an image at once.
///
/// By default it loads a kernel when it is first started, and for that waits for the running one:
/// if that one waits for the host, both wait for ever. The driver looks at `CUDA_MODULE_LOADING`
/// once, in its `cuInit`.
///
/// A program calls this first in `main`; [`CudaDevice::open`](crate::CudaDevice::open) calls it
/// too. It does nothing when the variable is already right.
///
/// # Errors
/// When the variable has to be changed but other threads exist: they might read the environment
/// at that moment.
pub fn prepare_environment() -> Result<(), DeviceError> {
    if std::env::var_os(LOADING).as_deref() == Some(OsStr::new("EAGER")) {
        return Ok(());
    }
    if !single_threaded() {
        return Err(DeviceError::Unavailable(format!(
            "the CUDA driver would load code lazily and the run could hang: set {LOADING}=EAGER"
        )));
    }
    // SAFETY: changing the environment is unsound only while another thread may read or change it.
    // This process has one thread, as the kernel has just said, and that one is here.
    unsafe { std::env::set_var(LOADING, "EAGER") };
    Ok(())
}

/// Whether the calling thread is the only one. `false` where that cannot be told.
fn single_threaded() -> bool {
    std::fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.count() == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_threads_are_seen() {
        std::thread::scope(|scope| {
            let other = scope.spawn(|| (single_threaded(), prepare_environment()));
            let (alone, prepared) = other.join().expect("nothing there panics");
            assert!(!alone);
            if std::env::var_os(LOADING).is_none() {
                let sentence = prepared.expect_err("there are threads").to_string();
                assert!(sentence.contains("CUDA_MODULE_LOADING=EAGER"), "{sentence}");
            }
        });
    }
}
