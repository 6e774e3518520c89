//! A pretended `libcuda.so.1`.
//!
//! It has two H200s whose memory is the host's, and takes any text with `.target` in it as PTX
//! with the kernels that the text names. Kernels do not run; what they would do is fixed:
//!
//! - `_begin` and `_end` do nothing. `_end` is refused without a 4-byte parameter, as compilers
//!   sometimes make it;
//! - `_start` ORs `argc` into `ret`.
//!
//! The environment variable `FAKE_CUDA` asks for trouble: `too-old` or `newer-code` from `cuInit`,
//! `trap` (the kernel faults), `hang` (it never ends). What still exists when the context goes is
//! reported on stderr, as `leaked: ...`.
#![allow(non_snake_case)] // named by NVIDIA

use std::alloc::{Layout, alloc, dealloc};
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_void};
use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

static MEMORY: Mutex<BTreeMap<usize, Layout>> = Mutex::new(BTreeMap::new());
static IMAGE: Mutex<String> = Mutex::new(String::new());
static STREAMS: AtomicI32 = AtomicI32::new(0);
static EVENTS: AtomicI32 = AtomicI32::new(0);
/// How often a recorded event is not done when it is asked.
const ASKED: i32 = 3;
static RUNNING: AtomicU32 = AtomicU32::new(0);

fn trouble(kind: &str) -> bool {
    std::env::var("FAKE_CUDA").is_ok_and(|asked| asked == kind)
}

/// Writes a result where the caller wants it.
///
/// # Safety
/// `place` is valid for a write of a `T`.
unsafe fn give<T>(place: *mut T, value: T) -> u32 {
    // SAFETY: each caller of this library passes valid places, as the driver demands.
    unsafe { place.write(value) };
    0
}

/// The text at `text`, if it is UTF-8.
///
/// # Safety
/// It ends with a NUL, and lives and does not change for `'a`.
unsafe fn text<'a>(text: *const c_char) -> &'a str {
    // SAFETY: each caller of this library passes text that ends with a NUL.
    unsafe { CStr::from_ptr(text) }.to_str().unwrap_or("")
}

fn allocate(size: usize) -> Option<usize> {
    let layout = Layout::from_size_align(size, 4096)
        .ok()
        .filter(|_| (1..1 << 36).contains(&size))?;
    // SAFETY: the size is not zero.
    let address = unsafe { alloc(layout) } as usize;
    (address != 0).then(|| MEMORY.lock().unwrap().insert(address, layout))?;
    Some(address)
}

fn release(address: usize) -> u32 {
    let Some(layout) = MEMORY.lock().unwrap().remove(&address) else {
        return 1;
    };
    // SAFETY: it was allocated with this layout and is removed from the table once.
    unsafe { dealloc(address as *mut u8, layout) };
    0
}

/// Declares functions that the dynamic linker finds; each is as `unsafe` as the driver's.
macro_rules! driver {
    ($(fn $name:ident($($parameter:ident: $kind:ty),*) $body:block)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($parameter: $kind),*) -> u32 {
            // SAFETY: the caller keeps the contract of the driver's function of this name.
            #[allow(unused_unsafe)]
            unsafe { $body }
        }
    )*};
}

driver! {
    fn cuInit(_flags: u32) {
        if std::env::var("CUDA_MODULE_LOADING").as_deref() != Ok("EAGER") { return 999; }
        if trouble("too-old") { return 803; }
        if trouble("newer-code") { return 812; }
        if std::env::var_os("CUDA_VISIBLE_DEVICES").is_some_and(|list| list.is_empty()) { return 100; }
        0
    }
    fn cuDeviceGetCount(count: *mut i32) { give(count, 2) }
    fn cuDeviceGet(device: *mut i32, ordinal: i32) { give(device, ordinal) }
    fn cuDeviceGetName(name: *mut u8, length: i32, _device: i32) {
        let text = b"NVIDIA H200 (pretended)\0";
        if (length as usize) < text.len() { return 1; }
        name.copy_from_nonoverlapping(text.as_ptr(), text.len());
        0
    }
    fn cuDeviceGetAttribute(value: *mut i32, which: i32, _device: i32) {
        give(value, match which {
            1..=3 => 1024, 4 => 64, 5 => i32::MAX, 6 | 7 => 65535, 10 => 32, 16 => 132, 39 => 2048,
            75 => 9, 76 => 0, _ => return 1,
        })
    }
    fn cuDevicePrimaryCtxRetain(context: *mut usize, _device: i32) { give(context, 1) }
    fn cuDevicePrimaryCtxRelease_v2(_device: i32) {
        let (memory, streams) = (MEMORY.lock().unwrap().len(), STREAMS.load(Ordering::SeqCst));
        let events = EVENTS.load(Ordering::SeqCst);
        if memory != 0 || streams != 0 || events != 0 || !IMAGE.lock().unwrap().is_empty() {
            eprintln!("leaked: {memory} allocations, {streams} streams, {events} events, or an image");
        }
        0
    }
    fn cuCtxSetCurrent(_context: usize) { 0 }
    fn cuCtxSetLimit(_limit: i32, value: usize) { u32::from(value > 261_120) }

    fn cuStreamCreate(stream: *mut usize, flags: u32) {
        if flags != 1 { return 1; } // the loader's streams are non-blocking
        STREAMS.fetch_add(1, Ordering::SeqCst);
        give(stream, 1)
    }
    fn cuStreamDestroy_v2(_stream: usize) { STREAMS.fetch_sub(1, Ordering::SeqCst); 0 }
    fn cuStreamSynchronize(_stream: usize) { 0 }
    fn cuStreamQuery(_stream: usize) {
        match RUNNING.load(Ordering::SeqCst) {
            0 => if trouble("trap") { 719 } else { 0 },
            _ => 600,
        }
    }

    fn cuEventCreate(event: *mut *const AtomicI32, flags: u32) {
        if flags != 2 { return 1; } // the loader's events keep no time
        EVENTS.fetch_add(1, Ordering::SeqCst);
        give(event, Box::leak(Box::new(AtomicI32::new(0))))
    }
    fn cuEventDestroy_v2(event: *mut AtomicI32) {
        drop(Box::from_raw(event));
        EVENTS.fetch_sub(1, Ordering::SeqCst);
        0
    }
    fn cuEventRecord(event: *const AtomicI32, _stream: usize) {
        (*event).store(ASKED, Ordering::SeqCst);
        0
    }
    fn cuEventQuery(event: *const AtomicI32) {
        if (*event).fetch_sub(1, Ordering::SeqCst) > 0 { 600 } else { 0 }
    }
    fn cuEventSynchronize(event: *const AtomicI32) { (*event).store(0, Ordering::SeqCst); 0 }

    fn cuMemHostAlloc(memory: *mut usize, size: usize, flags: u32) {
        if flags != 3 { return 1; }
        allocate(size).map_or(2, |address| give(memory, address))
    }
    fn cuMemHostGetDevicePointer_v2(device: *mut usize, host: usize, _flags: u32) {
        give(device, host)
    }
    fn cuMemFreeHost(memory: usize) { release(memory) }
    fn cuMemAlloc_v2(memory: *mut usize, size: usize) {
        allocate(size).map_or(2, |address| give(memory, address))
    }
    fn cuMemFree_v2(memory: usize) { release(memory) }
    fn cuMemsetD8Async(memory: *mut u8, value: u8, size: usize, _stream: usize) {
        memory.write_bytes(value, size);
        0
    }
    fn cuMemcpyDtoHAsync_v2(to: *mut u8, from: *const u8, size: usize, _stream: usize) {
        to.copy_from(from, size);
        0
    }
    fn cuMemcpyHtoDAsync_v2(to: *mut u8, from: *const u8, size: usize, _stream: usize) {
        to.copy_from(from, size);
        0
    }
    fn cuPointerGetAttribute(_value: *mut u32, _which: i32, _address: u64) { 1 }
    fn cuMemGetAddressRange_v2(_start: *mut u64, _size: *mut usize, _address: u64) { 1 }

    fn cuModuleLoadDataEx(
        module: *mut usize, image: *const c_char, count: u32, options: *const i32,
        values: *const *mut u8
    ) {
        // None, or the logs and their sizes, sizes by value.
        if count != 0 && std::slice::from_raw_parts(options, count as usize) != [3, 4, 5, 6] { return 1; }
        let image = text(image);
        if !image.contains(".target") {
            let log = b"ptxas application ptx input, line 1; fatal   : Missing .target directive\n\
                        ptxas fatal   : Ptx assembly aborted due to errors\0";
            if (*values.add(3) as usize) < log.len() { return 1; }
            (*values.add(2)).copy_from_nonoverlapping(log.as_ptr(), log.len());
            return 218;
        }
        image.clone_into(&mut IMAGE.lock().unwrap());
        give(module, 1)
    }
    fn cuModuleUnload(_module: usize) { IMAGE.lock().unwrap().clear(); 0 }
    fn cuModuleGetGlobal_v2(_address: *mut u64, _size: *mut usize, _module: usize, _name: *const c_char) {
        500
    }
    fn cuModuleGetFunction(function: *mut usize, _module: usize, name: *const c_char) {
        let name = text(name);
        if !IMAGE.lock().unwrap().contains(&format!(".entry {name}")) { return 500; }
        give(function, match name { "_begin" => 1, "_start" => 2, _ => 3 })
    }
    fn cuFuncGetAttribute(value: *mut i32, which: i32, _function: usize) {
        give(value, if which == 0 { 768 } else { which })
    }
    fn cuLaunchKernel(
        function: usize, _gx: u32, _gy: u32, _gz: u32, _bx: u32, _by: u32, _bz: u32, _shared: u32,
        _stream: usize, _parameters: *const c_void, extra: *const usize
    ) {
        let expected = match function { 1 => 24, 2 => 32, _ => 4 };
        if extra.is_null() { return 701; }
        let [1, buffer, 2, size, 0] = *extra.cast::<[usize; 5]>() else { return 1 };
        if *(size as *const usize) != expected { return 701; }
        if function == 2 {
            let [_, _, _, ret] = *(buffer as *const [usize; 4]);
            let argc = *(buffer as *const u32);
            RUNNING.store(1, Ordering::SeqCst);
            std::thread::spawn(move || kernel(argc, ret));
        }
        0
    }
    fn cuGetErrorString(code: u32, text: *mut *const c_char) {
        give(text, match code {
            719 => c"unspecified launch failure",
            803 => c"system has unsupported display driver / cuda driver combination",
            812 => c"an error of a later version",
            _ => return 1,
        }.as_ptr())
    }
}

fn kernel(argc: u32, ret: usize) {
    while trouble("hang") {
        std::thread::park();
    }
    // SAFETY: the loader passes the address of memory of its device, aligned and for atomic access
    // only, and frees it after the kernel.
    let word = unsafe { AtomicU32::from_ptr(ret as *mut u32) };
    word.fetch_or(argc, Ordering::Relaxed);
    RUNNING.store(0, Ordering::SeqCst);
}
