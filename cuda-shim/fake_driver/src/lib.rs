//! A pretended `libcuda.so.1`.
//!
//! It has two H200s whose memory is the host's, and takes any text with `.target` in it as PTX
//! with the kernels and the pointer variables that the text declares. Kernels do not run; what they
//! would do is fixed:
//!
//! - `_begin` goes through the array of constructors, `_end` backwards through that of destructors,
//!   and for each `called: NAME` is written to stderr;
//! - `_start` ORs `argc` into `ret`; one that takes a mailbox has a word written to standard error by
//!   it before;
//! - others write `ran: NAME` and how many threads.
//!
//! The environment variable `FAKE_CUDA` asks for trouble: `too-old` or `newer-code` from `cuInit`,
//! `trap` (the kernel faults), `hang` (it never ends), `status` (`_end` takes 4 bytes, whatever the
//! image says). What still exists when the context goes is reported on stderr, as `leaked: ...`.
#![allow(non_snake_case)] // named by NVIDIA

use std::alloc::{Layout, alloc, dealloc};
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_void};
use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

mod image;

use image::{Image, cubin};

static MEMORY: Mutex<BTreeMap<usize, Layout>> = Mutex::new(BTreeMap::new());
static IMAGE: Mutex<Option<Loaded>> = Mutex::new(None);
static LINKERS: AtomicI32 = AtomicI32::new(0);
static STREAMS: AtomicI32 = AtomicI32::new(0);
static EVENTS: AtomicI32 = AtomicI32::new(0);
/// How often a recorded event is not done when it is asked.
const ASKED: i32 = 3;
static RUNNING: AtomicU32 = AtomicU32::new(0);

/// A module.
struct Loaded {
    image: Image,
    /// The variables; what points to a function holds its number, counted from 1.
    variables: Box<[AtomicU64]>,
}

impl Loaded {
    fn new(text: &str) -> Self {
        let image = Image::new(text);
        let mut number = 0;
        let variables = image.variables.iter().map(|(_, function)| {
            number += 1;
            AtomicU64::new(if function.is_some() { number } else { 0 })
        });
        Self {
            variables: variables.collect(),
            image,
        }
    }

    fn variable(&self, name: &str) -> Option<&AtomicU64> {
        let mut names = self.image.variables.iter();
        let index = names.position(|(other, _)| other == name)?;
        self.variables.get(index)
    }

    /// The functions of an array that the image has pointers to, by their names.
    fn array(&self, kind: &str) -> Vec<&str> {
        let pointer = |end| {
            let variable = self.variable(&format!("__{kind}_array_{end}"));
            variable.map_or(0, |variable| variable.load(Ordering::SeqCst) as usize)
        };
        let addresses = (pointer("start")..pointer("end")).step_by(8);
        let numbers = addresses.map(|address| {
            // SAFETY: who loads the image makes an array there, of memory that is the host's.
            unsafe { (address as *const u64).read() }
        });
        let variables = numbers.map(|number| &self.image.variables[number as usize - 1]);
        variables
            .filter_map(|(_, function)| function.as_deref())
            .collect()
    }
}

/// What is being linked.
struct Linker {
    text: String,
    cubin: Vec<u8>,
    /// The options' values: where the logs go.
    values: *const *mut u8,
}

/// Whether the options are none, or the logs and their sizes.
///
/// # Safety
/// There are `count` options.
unsafe fn known_options(count: u32, options: *const i32) -> bool {
    // SAFETY: as the caller says.
    count == 0 || unsafe { std::slice::from_raw_parts(options, count as usize) } == [3, 4, 5, 6]
}

/// Whether the text is PTX; if not, the compiler's words are written.
///
/// # Safety
/// The values are those of the options above; sizes are by value.
unsafe fn compiles(image: &str, values: *const *mut u8) -> bool {
    if image.contains(".target") {
        return true;
    }
    let log = b"ptxas application ptx input, line 1; fatal   : Missing .target directive\n\
                ptxas fatal   : Ptx assembly aborted due to errors\0";
    // SAFETY: as the caller says.
    unsafe {
        if (*values.add(3) as usize) >= log.len() {
            (*values.add(2)).copy_from_nonoverlapping(log.as_ptr(), log.len());
        }
    }
    false
}

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
        let linkers = LINKERS.load(Ordering::SeqCst);
        let numbers = memory as i32 | streams | events | linkers;
        if numbers != 0 || IMAGE.lock().unwrap().is_some() {
            eprintln!(
                "leaked: {memory} allocations, {streams} streams, {events} events, {linkers} \
                 linkers, or an image"
            );
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
    fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) {
        give(total, 1 << 32);
        give(free, 1 << 30)
    }
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
        if !known_options(count, options) { return 1; }
        let elf = CStr::from_ptr(image).to_bytes().starts_with(b"\x7FELF");
        let image = if elf { text(image.add(64)) } else { text(image) };
        if !elf && !compiles(image, values) { return 218; }
        *IMAGE.lock().unwrap() = Some(Loaded::new(image));
        give(module, 1)
    }
    fn cuModuleUnload(_module: usize) { *IMAGE.lock().unwrap() = None; 0 }
    fn cuModuleGetGlobal_v2(address: *mut u64, size: *mut usize, _module: usize, name: *const c_char) {
        let image = IMAGE.lock().unwrap();
        let Some(variable) = image.as_ref().and_then(|image| image.variable(text(name))) else {
            return 500;
        };
        give(size, 8);
        give(address, variable.as_ptr() as u64)
    }
    fn cuModuleGetFunction(function: *mut usize, _module: usize, name: *const c_char) {
        let image = IMAGE.lock().unwrap();
        let mut kernels = image.iter().flat_map(|image| &image.image.kernels);
        let index = kernels.position(|(other, _)| other == text(name));
        index.map_or(500, |index| give(function, index + 1))
    }
    fn cuFuncGetAttribute(value: *mut i32, which: i32, _function: usize) {
        give(value, if which == 0 { 768 } else { which })
    }
    fn cuLaunchKernel(
        function: usize, gx: u32, gy: u32, gz: u32, bx: u32, by: u32, bz: u32, _shared: u32,
        _stream: usize, _parameters: *const c_void, extra: *const usize
    ) {
        let image = IMAGE.lock().unwrap();
        let Some(image) = &*image else { return 1 };
        let (name, mut expected) = image.image.kernels[function - 1].clone();
        if name == "_end" && trouble("status") { expected = 4; }
        let mut words = [0_usize; 8];
        if extra.is_null() {
            if expected != 0 { return 701; }
        } else {
            let [1, buffer, 2, size, 0] = *extra.cast::<[usize; 5]>() else { return 1 };
            let size = *(size as *const usize);
            if size != expected { return 701; }
            words.as_mut_ptr().cast::<u8>().copy_from(buffer as *const u8, size);
        }
        match &*name {
            "_begin" => image.array("init").iter().for_each(|name| eprintln!("called: {name}")),
            "_end" => image.array("fini").iter().rev().for_each(|name| eprintln!("called: {name}")),
            "_start" => {
                // Without an environment it comes one word earlier.
                let ret = words[if expected == 48 { 2 } else { 3 }];
                let argc = words[0] as u32;
                let mailbox = match expected {
                    48 => Some([words[3], words[4], words[5]]),
                    56 => Some([words[4], words[5], words[6]]),
                    _ => None,
                };
                RUNNING.store(1, Ordering::SeqCst);
                std::thread::spawn(move || kernel(argc, ret, mailbox));
            }
            _ => eprintln!("ran: {name} with {} threads", gx * gy * gz * bx * by * bz),
        }
        0
    }

    fn cuLinkCreate_v2(count: u32, options: *const i32, values: *const *mut u8, state: *mut *mut Linker) {
        if !known_options(count, options) { return 1; }
        LINKERS.fetch_add(1, Ordering::SeqCst);
        let linker = Linker { text: String::new(), cubin: Vec::new(), values };
        give(state, Box::into_raw(Box::new(linker)))
    }
    fn cuLinkAddData_v2(
        state: *mut Linker, kind: i32, data: *const u8, size: usize, _name: *const c_char, _count: u32,
        _options: *const i32, _values: *const *mut u8
    ) {
        // PTX, with its NUL.
        let Some((0, text)) = std::slice::from_raw_parts(data, size).split_last() else { return 1 };
        if kind != 1 { return 1; }
        let text = String::from_utf8_lossy(text).into_owned();
        if !compiles(&text, (*state).values) { return 218; }
        (*state).text = text;
        0
    }
    fn cuLinkComplete(state: *mut Linker, made: *mut *const u8, size: *mut usize) {
        (*state).cubin = cubin(&(*state).text);
        give(made, (*state).cubin.as_ptr());
        give(size, (*state).cubin.len())
    }
    fn cuLinkDestroy(state: *mut Linker) {
        drop(Box::from_raw(state));
        LINKERS.fetch_sub(1, Ordering::SeqCst);
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

fn kernel(argc: u32, ret: usize, mailbox: Option<[usize; 3]>) {
    while trouble("hang") {
        std::thread::park();
    }
    if let Some(mailbox) = mailbox {
        write_by(mailbox);
    }
    // SAFETY: the loader passes the address of memory of its device, aligned and for atomic access
    // only, and frees it after the kernel.
    let word = unsafe { AtomicU32::from_ptr(ret as *mut u32) };
    word.fetch_or(argc, Ordering::Relaxed);
    RUNNING.store(0, Ordering::SeqCst);
}

/// Writes a word to standard error as the first images for LLVM's RPC do.
fn write_by([inbox, outbox, buffer]: [usize; 3]) {
    // SAFETY: the loader passes the addresses of memory that it shares with the device, aligned and
    // for atomic access only, and frees it after the kernel.
    let word = |address: usize| unsafe { AtomicU32::from_ptr(address as *mut u32) };
    for (i, value) in [1, 0, u32::from_le_bytes(*b"word"), u32::from(b'\n')]
        .into_iter()
        .enumerate()
    {
        word(buffer + 4 * i).store(value, Ordering::Relaxed);
    }
    for flag in [1, 0] {
        word(outbox).store(flag, Ordering::Release);
        while word(inbox).load(Ordering::Acquire) != flag {
            std::thread::yield_now();
        }
    }
}
