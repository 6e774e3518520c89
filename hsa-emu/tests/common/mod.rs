//! The runtime's C interface as a test uses it: an executable, a queue, and launches.

#![allow(dead_code, reason = "each test file uses a part")]

use std::ffi::{CString, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::{env, fs, ptr};

use hsa_emu::hsa::*;

/// The GPU's handle, as the tests find it.
pub(crate) fn gpu() -> Handle {
    unsafe extern "C" fn visit(agent: Handle, data: *mut c_void) -> Status {
        let mut kind = 0u32;
        // SAFETY: the attribute is a `u32`, and `data` the handle below.
        unsafe {
            assert_eq!(hsa_agent_get_info(agent, 17, (&raw mut kind).cast()), 0);
            if kind == 1 {
                data.cast::<Handle>().write(agent);
                return 1;
            }
        }
        0
    }
    let mut agent = Handle { handle: 0 };
    // SAFETY: the callback takes this handle.
    let status = unsafe { hsa_iterate_agents(Some(visit), (&raw mut agent).cast()) };
    assert_eq!(status, 1);
    agent
}

/// The pool with these flags of an agent.
fn pool(agent: Handle, wanted: u32) -> Handle {
    struct Search {
        wanted: u32,
        found: Handle,
    }
    unsafe extern "C" fn visit(pool: Handle, data: *mut c_void) -> Status {
        let mut flags = 0u32;
        // SAFETY: the attribute is a `u32`, and `data` the search below.
        unsafe {
            assert_eq!(
                hsa_amd_memory_pool_get_info(pool, 1, (&raw mut flags).cast()),
                0
            );
            let search = &mut *data.cast::<Search>();
            if flags & search.wanted != 0 {
                search.found = pool;
                return 1;
            }
        }
        0
    }
    let mut search = Search {
        wanted,
        found: Handle { handle: 0 },
    };
    // SAFETY: the callback takes the search.
    let status =
        unsafe { hsa_amd_agent_iterate_memory_pools(agent, Some(visit), (&raw mut search).cast()) };
    assert_eq!(status, 1);
    search.found
}

/// Device memory for `size` bytes.
pub(crate) fn allocate(size: usize) -> *mut u8 {
    let mut at = ptr::null_mut();
    // SAFETY: the result goes into `at`.
    let status = unsafe { hsa_amd_memory_pool_allocate(pool(gpu(), 4), size, 0, &raw mut at) };
    assert_eq!(status, 0);
    at.cast()
}

unsafe extern "C" fn on_error(status: Status, _: *mut Queue, data: *mut c_void) {
    // SAFETY: the session's counter, which outlives its queue.
    unsafe { &*data.cast::<AtomicU32>() }.store(status, Ordering::SeqCst);
}

/// A loaded image and a queue.
pub(crate) struct Session {
    executable: Handle,
    reader: Handle,
    queue: *mut Queue,
    error: Box<AtomicU32>,
}

/// How a launch ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// By itself.
    Done,
    /// With the queue's callback.
    Error(Status),
    /// Not within the time.
    Running,
}

impl Session {
    /// Loads an image.
    pub(crate) fn new(image: &[u8]) -> Self {
        assert_eq!(hsa_init(), 0);
        let error = Box::new(AtomicU32::new(0));
        let (mut reader, mut executable) = (Handle { handle: 0 }, Handle { handle: 0 });
        let mut queue = ptr::null_mut();
        // SAFETY: all results go into the variables above; the image is a slice.
        unsafe {
            let code = image.as_ptr().cast();
            assert_eq!(
                hsa_code_object_reader_create_from_memory(code, image.len(), &raw mut reader),
                0
            );
            assert_eq!(
                hsa_executable_create_alt(1, 0, ptr::null(), &raw mut executable),
                0
            );
            let status = hsa_executable_load_agent_code_object(
                executable,
                gpu(),
                reader,
                ptr::null(),
                ptr::null_mut(),
            );
            assert_eq!(status, 0);
            assert_eq!(hsa_executable_freeze(executable, ptr::null()), 0);
            let data = (&raw const *error).cast_mut().cast();
            let status = hsa_queue_create(gpu(), 64, 0, Some(on_error), data, 0, 0, &raw mut queue);
            assert_eq!(status, 0);
        }
        Self {
            executable,
            reader,
            queue,
            error,
        }
    }

    /// A symbol's attribute of type `T`.
    pub(crate) fn symbol<T: Default>(&self, name: &str, attribute: u32) -> T {
        let name = CString::new(name).expect("no NUL");
        let (mut symbol, mut value) = (Handle { handle: 0 }, T::default());
        // SAFETY: the results go into these variables, of the attribute's type.
        unsafe {
            let agent = gpu();
            let status = hsa_executable_get_symbol_by_name(
                self.executable,
                name.as_ptr(),
                &raw const agent,
                &raw mut symbol,
            );
            assert_eq!(status, 0, "{name:?}");
            let status = hsa_executable_symbol_get_info(symbol, attribute, (&raw mut value).cast());
            assert_eq!(status, 0, "{name:?}");
        }
        value
    }

    /// Launches a kernel with these arguments and waits at most `seconds`.
    pub(crate) fn launch(
        &self,
        kernel: &str,
        blocks: u32,
        threads: u16,
        arguments: &[u64],
        seconds: u64,
    ) -> End {
        let grid = [blocks * u32::from(threads), 1, 1];
        self.launch_grid(kernel, grid, threads, arguments, seconds)
    }

    /// The same for a grid of so many threads in each dimension.
    pub(crate) fn launch_grid(
        &self,
        kernel: &str,
        grid: [u32; 3],
        threads: u16,
        arguments: &[u64],
        seconds: u64,
    ) -> End {
        let descriptor = format!("{kernel}.kd");
        let object: u64 = self.symbol(&descriptor, 22);
        let (local, private): (u32, u32) =
            (self.symbol(&descriptor, 13), self.symbol(&descriptor, 14));
        let kernarg = allocate(4096).cast::<u64>();
        let mut signal = Handle { handle: 0 };
        let end;
        // SAFETY: the packet's fields lie where the specification says, in the ring of the queue; the
        // arguments fit into a page.
        unsafe {
            for (n, argument) in arguments.iter().enumerate() {
                kernarg.add(n).write(*argument);
            }
            assert_eq!(hsa_signal_create(1, 0, ptr::null(), &raw mut signal), 0);
            let queue = &*self.queue;
            let index = hsa_queue_add_write_index_relaxed(self.queue, 1);
            let at = queue.base.cast::<u8>().add(index as usize % 64 * 64);
            at.add(4).cast::<[u16; 4]>().write([threads, 1, 1, 0]);
            at.add(12).cast::<[u32; 3]>().write(grid);
            // A dynamic stack has only a minimum.
            at.add(24)
                .cast::<[u32; 2]>()
                .write([private.max(1024), local]);
            at.add(32)
                .cast::<[u64; 2]>()
                .write([object, kernarg.expose_provenance() as u64]);
            at.add(48).cast::<[u64; 2]>().write([0, signal.handle]);
            AtomicU32::from_ptr(at.cast()).store(0x1_0b02, Ordering::Release);
            hsa_signal_store_relaxed(queue.doorbell, index as i64);
            end = self.wait(signal, seconds);
        }
        if end != End::Running {
            hsa_signal_destroy(signal);
            hsa_amd_memory_pool_free(kernarg.cast());
        }
        end
    }

    /// Its queue.
    pub(crate) fn queue(&self) -> *mut Queue {
        self.queue
    }

    fn wait(&self, signal: Handle, seconds: u64) -> End {
        for _ in 0..seconds * 1000 {
            if hsa_signal_wait_scacquire(signal, 2, 1, 1_000_000, 0) < 1 {
                return End::Done;
            }
            match self.error.load(Ordering::SeqCst) {
                0 => {}
                status => return End::Error(status),
            }
        }
        End::Running
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        assert_eq!(hsa_queue_destroy(self.queue), 0);
        assert_eq!(hsa_executable_destroy(self.executable), 0);
        assert_eq!(hsa_code_object_reader_destroy(self.reader), 0);
        assert_eq!(hsa_shut_down(), 0);
    }
}

/// The last fault as text.
pub(crate) fn last_fault() -> String {
    let mut text = vec![0u8; 1024];
    // SAFETY: as many bytes as said.
    let length = unsafe { gpurpc_emu_last_fault(text.as_mut_ptr().cast(), text.len()) };
    text.truncate(length.min(1023));
    String::from_utf8(text).expect("text")
}

/// The path of one of LLVM's tools.
pub(crate) fn llvm(tool: &str) -> Option<PathBuf> {
    let folder = env::var_os("LLVM_BIN").unwrap_or_else(|| "/usr/lib/llvm-22/bin".into());
    let path = Path::new(&folder).join(tool);
    path.exists().then_some(path)
}

static NUMBER: AtomicU64 = AtomicU64::new(0);

/// A C program for the device (or, as a shared object, for the host).
pub(crate) fn clang(source: &str, options: &[&str]) -> Option<PathBuf> {
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let folder = env::temp_dir().join(format!("hsa-emu-test-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder for temporary files");
    let output = folder.join(format!("{number}.elf"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(source);
    let status = Command::new(llvm("clang")?)
        .args(options)
        .arg("-o")
        .arg(&output)
        .arg(source)
        .status()
        .expect("clang starts");
    assert!(status.success(), "clang {options:?}");
    Some(output)
}

/// Options for the device.
pub(crate) const DEVICE: [&str; 5] = [
    "--target=amdgcn-amd-amdhsa",
    "-mcpu=gfx1100",
    "-nogpulib",
    "-ffreestanding",
    "-nostdlib",
];

/// A program for the device at an optimisation level, with more options.
pub(crate) fn device(source: &str, more: &[&str]) -> Option<Vec<u8>> {
    let options: Vec<_> = DEVICE.iter().chain(more).copied().collect();
    Some(fs::read(clang(source, &options)?).expect("what clang wrote"))
}
