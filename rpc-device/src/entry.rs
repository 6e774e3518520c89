//! What [`entry!`](crate::entry!) makes: the kernels of the image, and what happens on a panic.

use core::fmt::{self, Write};

use crate::client::client;
use crate::grid::{block_index, global_index, thread_index};
use crate::print::{Stream, Writer};

/// Tells the host of a panic, once for the whole program, and ends the program.
///
/// Only the first thread to panic reports, once: the run ends with it. A panic while that thread
/// reports (in a `Display` of the program's) is reported without the message.
#[cold]
#[inline(never)]
fn report_panic(location: Option<&core::panic::Location<'_>>, message: &dyn fmt::Display) {
    let me = global_index() + 1;
    let client = client();
    let before = client.begin_panic(me);
    if before != 0 && before != me {
        return;
    }
    // Formats as little as it can: a program that formats nothing itself can still panic.
    let mut report = Writer::new(Stream::Panic);
    report.put(b"thread ");
    report.put_number(thread_index());
    report.put(b" of block ");
    report.put_number(block_index());
    report.put(b" panicked");
    if before == me {
        report.put(b" while it reported a panic");
    } else {
        if let Some(at) = location {
            report.put(b" at ");
            report.put(at.file().as_bytes());
            report.put(b":");
            report.put_number(at.line().into());
            report.put(b":");
            report.put_number(at.column().into());
        }
        report.put(b":\n");
        let _ = write!(report, "{message}");
    }
    report.finish(true);
    if before == 0 {
        // On a host the thread unwinds now, and its destructors may panic.
        client.end_panic();
    }
}

/// On a GPU: kernels call `main` at once, a panic comes to the panic handler.
#[cfg(any(target_arch = "nvptx64", target_arch = "amdgpu"))]
mod gpu {
    use rpc_bitmap::{Device, Memory, Raw};

    use crate::program::Program;

    /// Runs `main` as a thread of `_start`.
    ///
    /// # Safety
    /// The arguments are those of the image ABI.
    #[inline(always)]
    pub unsafe fn start(
        argc: i32,
        argv: *const *const u8,
        envp: *const *const u8,
        ret: *mut i32,
        main: fn(&Program) -> i32,
    ) {
        // SAFETY: passed on.
        let program = unsafe { Program::new(argc, argv, envp) };
        let code = main(&program);
        if code != 0 {
            // SAFETY: the image ABI says that `ret` is an aligned word that all threads OR into.
            let ret: Raw<Device> = unsafe { Raw::new(ret.cast(), size_of::<i32>()) };
            ret.fetch_or32(0, code as u32);
        }
    }

    #[cfg(feature = "panic_handler")]
    #[panic_handler]
    fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
        super::report_panic(info.location(), &info.message());
        crate::target::end_thread()
    }
}

#[cfg(any(target_arch = "nvptx64", target_arch = "amdgpu"))]
pub use gpu::start;

/// On a host: the thread's identity comes as an argument, and unwinding ends here.
#[cfg(not(any(target_arch = "nvptx64", target_arch = "amdgpu")))]
mod host {
    use std::boxed::Box;
    use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
    use std::string::String;
    use std::sync::Once;
    use std::sync::atomic::{AtomicI32, Ordering};

    use rpc_types::image::CpuThread;

    use crate::program::Program;
    use crate::target::host::{is_device_thread, with_thread};

    /// Prepares the image: a panic of a device thread is told to the host from now on.
    pub fn begin() {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            let previous = take_hook();
            set_hook(Box::new(move |info| {
                if !is_device_thread() {
                    return previous(info);
                }
                let payload = info.payload();
                let message = payload
                    .downcast_ref::<&str>()
                    .copied()
                    .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
                    .unwrap_or("(no message)");
                // The hook must not unwind itself, which ends the process: the run may be over
                // already, then there is nobody to tell.
                let _ = catch_unwind(AssertUnwindSafe(|| {
                    super::report_panic(info.location(), &message);
                }));
            }));
        });
    }

    /// Runs `main` as the device thread that `thread` points to.
    ///
    /// # Safety
    /// The arguments are those of the image ABI.
    pub unsafe fn start(
        argc: i32,
        argv: *const *const u8,
        envp: *const *const u8,
        ret: *mut i32,
        thread: *const CpuThread,
        main: fn(&Program) -> i32,
    ) {
        // SAFETY: the image ABI says that it points to this thread's identity.
        let thread = unsafe { thread.read() };
        // SAFETY: passed on.
        let program = unsafe { Program::new(argc, argv, envp) };
        // A panic was reported by the hook, `end_thread` needs no word.
        let result = with_thread(thread, || catch_unwind(AssertUnwindSafe(|| main(&program))));
        if let Ok(code) = result
            && code != 0
        {
            // SAFETY: the image ABI says that `ret` is an aligned word that all threads OR into.
            unsafe { AtomicI32::from_ptr(ret) }.fetch_or(code, Ordering::Relaxed);
        }
    }
}

#[cfg(not(any(target_arch = "nvptx64", target_arch = "amdgpu")))]
pub use host::{begin, start};

/// Makes `main`, a `fn(&Program) -> i32`, what each thread of the image runs.
///
/// The program's exit status is the low 8 bits of all threads' results or-ed.
#[macro_export]
#[cfg(any(target_arch = "nvptx64", target_arch = "amdgpu"))]
#[allow_internal_unstable(abi_gpu_kernel)]
macro_rules! entry {
    ($main:path) => {
        /// Runs first, as one thread.
        #[unsafe(no_mangle)]
        pub extern "gpu-kernel" fn _begin(
            _argc: i32,
            _argv: *const *const u8,
            _envp: *const *const u8,
        ) {
        }

        /// Runs on the whole grid.
        ///
        /// # Safety
        /// Called by a loader with the arguments of the image ABI.
        #[unsafe(no_mangle)]
        pub unsafe extern "gpu-kernel" fn _start(
            argc: i32,
            argv: *const *const u8,
            envp: *const *const u8,
            ret: *mut i32,
        ) {
            // SAFETY: passed on.
            unsafe { $crate::entry::start(argc, argv, envp, ret, $main) }
        }

        /// Runs last, as one thread.
        #[unsafe(no_mangle)]
        pub extern "gpu-kernel" fn _end() {}
    };
}

/// Makes `main`, a `fn(&Program) -> i32`, what each thread of the image runs.
///
/// The program's exit status is the low 8 bits of all threads' results or-ed.
#[macro_export]
#[cfg(not(any(target_arch = "nvptx64", target_arch = "amdgpu")))]
macro_rules! entry {
    ($main:path) => {
        /// Runs first, as one thread.
        #[unsafe(no_mangle)]
        pub extern "C" fn __gpurpc_begin(
            _argc: i32,
            _argv: *const *const u8,
            _envp: *const *const u8,
            _thread: *const $crate::entry::CpuThread,
        ) {
            $crate::entry::begin();
        }

        /// Runs on the whole grid.
        ///
        /// # Safety
        /// Called by a loader with the arguments of the image ABI.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn __gpurpc_start(
            argc: i32,
            argv: *const *const u8,
            envp: *const *const u8,
            ret: *mut i32,
            thread: *const $crate::entry::CpuThread,
        ) {
            // SAFETY: passed on.
            unsafe { $crate::entry::start(argc, argv, envp, ret, thread, $main) }
        }

        /// Runs last, as one thread.
        #[unsafe(no_mangle)]
        pub extern "C" fn __gpurpc_end(_thread: *const $crate::entry::CpuThread) {}
    };
}

#[cfg(not(any(target_arch = "nvptx64", target_arch = "amdgpu")))]
pub use rpc_types::image::CpuThread;
