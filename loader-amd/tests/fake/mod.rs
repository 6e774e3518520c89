//! A pretended HSA runtime: a CPU agent, a gfx1100 agent, and kernels that do what the test says. It
//! checks that what it is given is what it has given out, and counts what was not given back.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hsa_sys::*;

macro_rules! enter {
    ($name:literal) => {
        if let Err(status) = enter($name) {
            return status;
        }
    };
}

mod attributes;
mod code;
mod image;
mod memory;

pub(crate) use image::{CLIENT, IMAGE_TARGET, kernel, object};

pub(crate) const CPU: u64 = 1;
pub(crate) const GPU: u64 = 2;
/// Host memory, host memory for arguments, device memory.
pub(crate) const POOLS: [u64; 3] = [11, 12, 21];
/// What a descriptor's handle is for the symbol `_start.kd`, and what the packet names then.
const OBJECT: u64 = 0x1000;

/// What a kernel does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kernel {
    /// ORs its number of arguments into the result, if it has one, and ends.
    #[default]
    Count,
    /// A trap: the queue's callback is called, and the kernel does not end.
    Trap,
    /// A memory fault at 0xBAD000.
    Fault,
    /// Never ends.
    Hang,
}

/// What the runtime knows.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) kernel: Kernel,
    pub(crate) without_gpu: bool,
    /// Copies do not end.
    pub(crate) copies_hang: bool,
    pub(crate) without_atomics: bool,
    pub(crate) refuses_init: bool,
    /// How many calls from now on succeed; the next one fails.
    pub(crate) calls_left: Option<u32>,
    /// Names of the calls that may fail, in their order.
    pub(crate) calls: Vec<&'static str>,
    /// What exists, by address or handle.
    pub(crate) live: BTreeMap<u64, &'static str>,
    /// What was wrong with how it was called.
    pub(crate) wrong: Vec<String>,
    pub(crate) started: i32,
    /// The packets that were submitted, with the bytes of their arguments.
    pub(crate) packets: Vec<(hsa_kernel_dispatch_packet_t, Vec<u8>)>,
    pub(crate) sizes: BTreeMap<u64, usize>,
    pub(crate) handler: hsa_amd_system_event_callback_t,
    pub(crate) queues: BTreeMap<u64, Queue>,
    pub(crate) next: u64,
}

// SAFETY: the only pointers are callbacks' data, and they are called under the tests' lock.
unsafe impl Send for State {}

pub(crate) struct Queue {
    address: u64,
    write: u64,
    read: u64,
    callback: Option<unsafe extern "C" fn(hsa_status_t, *mut hsa_queue_t, *mut c_void)>,
    data: *mut c_void,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);
static ALONE: Mutex<()> = Mutex::new(());

/// A test's turn with the runtime: there is one.
pub(crate) struct Turn(#[allow(dead_code)] MutexGuard<'static, ()>);

pub(crate) fn turn(state: State) -> Turn {
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    with(|now| *now = state);
    Turn(alone)
}

pub(crate) fn with<T>(f: impl FnOnce(&mut State) -> T) -> T {
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    f(state.get_or_insert_default())
}

impl Turn {
    /// Everything was given back and rightly used.
    pub(crate) fn assert_clean(&self) {
        with(|state| {
            assert_eq!(state.wrong, Vec::<String>::new());
            assert_eq!(state.live, BTreeMap::new(), "not given back");
            assert_eq!(state.started, 0, "not shut down");
        });
    }
}

/// A call that may fail: notes it, says whether it does.
fn enter(name: &'static str) -> Result<(), hsa_status_t> {
    with(|state| {
        state.calls.push(name);
        if state.started < 1 && name != "hsa_init" {
            state.wrong.push(format!("{name} without hsa_init"));
        }
        match &mut state.calls_left {
            Some(0) => {
                state.calls_left = None;
                Err(HSA_STATUS_ERROR_OUT_OF_RESOURCES)
            }
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    })
}

fn made(what: &'static str) -> u64 {
    with(|state| {
        state.next += 1;
        let handle = 0x7000 + state.next;
        state.live.insert(handle, what);
        handle
    })
}

/// Notes that what has this handle is used, or gone if `gone`.
fn known(handle: u64, what: &'static str, gone: bool) {
    with(|state| {
        let found = if gone {
            state.live.remove(&handle)
        } else {
            state.live.get(&handle).copied()
        };
        if found != Some(what) {
            state.wrong.push(format!("{what} {handle:#x} is {found:?}"));
        }
    });
}

unsafe extern "C" fn init() -> hsa_status_t {
    enter!("hsa_init");
    with(|state| {
        if state.refuses_init {
            return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
        }
        state.started += 1;
        HSA_STATUS_SUCCESS
    })
}

unsafe extern "C" fn shut_down() -> hsa_status_t {
    with(|state| state.started -= 1);
    HSA_STATUS_SUCCESS
}

unsafe extern "C" fn status_string(status: hsa_status_t, text: *mut *const c_char) -> hsa_status_t {
    let words = match status {
        HSA_STATUS_ERROR_EXCEPTION => c"HSA_STATUS_ERROR_EXCEPTION: an exception.",
        HSA_STATUS_ERROR_OUT_OF_RESOURCES => c"HSA_STATUS_ERROR_OUT_OF_RESOURCES:\nno resources.",
        _ => return HSA_STATUS_ERROR_INVALID_ARGUMENT,
    };
    // SAFETY: the loader's place for a text, and the text is static.
    unsafe { *text = words.as_ptr() };
    HSA_STATUS_SUCCESS
}

unsafe extern "C" fn queue_create(
    agent: hsa_agent_t,
    size: u32,
    _: hsa_queue_type32_t,
    callback: Option<unsafe extern "C" fn(hsa_status_t, *mut hsa_queue_t, *mut c_void)>,
    data: *mut c_void,
    _: u32,
    _: u32,
    queue: *mut *mut hsa_queue_t,
) -> hsa_status_t {
    enter!("hsa_queue_create");
    let ring = vec![1_u8; size as usize * 64].leak();
    let doorbell = signal(1);
    let made = Box::leak(Box::new(hsa_queue_t {
        type_: 0,
        features: 1,
        base_address: ring.as_mut_ptr().cast(),
        doorbell_signal: doorbell,
        size,
        reserved1: 0,
        id: 0,
    }));
    let address = std::ptr::from_mut(made).addr() as u64;
    with(|state| {
        if agent.handle != GPU || !size.is_power_of_two() {
            state
                .wrong
                .push("a queue of another agent or size".to_owned());
        }
        state.live.insert(address, "queue");
        let queue = Queue {
            address,
            write: 0,
            read: 0,
            callback,
            data,
        };
        state.queues.insert(doorbell.handle, queue);
    });
    // SAFETY: the loader's place for what is made.
    unsafe { *queue = made };
    HSA_STATUS_SUCCESS
}

unsafe extern "C" fn queue_destroy(queue: *mut hsa_queue_t) -> hsa_status_t {
    known(queue.addr() as u64, "queue", true);
    HSA_STATUS_SUCCESS
}

fn of<T>(queue: *const hsa_queue_t, f: impl FnOnce(&mut Queue) -> T) -> T {
    // SAFETY: a queue of `queue_create`, which is never freed.
    let doorbell = unsafe { (*queue).doorbell_signal.handle };
    with(|state| f(state.queues.get_mut(&doorbell).expect("a queue")))
}

unsafe extern "C" fn add_write_index(queue: *const hsa_queue_t, value: u64) -> u64 {
    of(queue, |queue| {
        queue.write += value;
        queue.write - value
    })
}

unsafe extern "C" fn load_read_index(queue: *const hsa_queue_t) -> u64 {
    of(queue, |queue| queue.read)
}

fn signal(value: i64) -> hsa_signal_t {
    let place = Box::leak(Box::new(AtomicI64::new(value)));
    let handle = std::ptr::from_mut(place).expose_provenance() as u64;
    hsa_signal_t { handle }
}

fn value(signal: hsa_signal_t) -> &'static AtomicI64 {
    // SAFETY: a signal of `signal`, which is never freed and is an atom to all.
    unsafe { &*std::ptr::with_exposed_provenance(signal.handle as usize) }
}

unsafe extern "C" fn signal_create(
    initial: i64,
    _: u32,
    _: *const hsa_agent_t,
    place: *mut hsa_signal_t,
) -> hsa_status_t {
    enter!("hsa_signal_create");
    let made = signal(initial);
    with(|state| state.live.insert(made.handle, "signal"));
    // SAFETY: the loader's place for what is made.
    unsafe { *place = made };
    HSA_STATUS_SUCCESS
}

unsafe extern "C" fn signal_destroy(signal: hsa_signal_t) -> hsa_status_t {
    known(signal.handle, "signal", true);
    HSA_STATUS_SUCCESS
}

unsafe extern "C" fn signal_load(signal: hsa_signal_t) -> i64 {
    known(signal.handle, "signal", false);
    value(signal).load(Ordering::Acquire)
}

unsafe extern "C" fn signal_store(signal: hsa_signal_t, new: i64) {
    known(signal.handle, "signal", false);
    value(signal).store(new, Ordering::Release);
}

unsafe extern "C" fn signal_wait(
    signal: hsa_signal_t,
    _: hsa_signal_condition_t,
    _: i64,
    _: u64,
    _: hsa_wait_state_t,
) -> i64 {
    // SAFETY: what this function was promised.
    unsafe { signal_load(signal) }
}

/// The doorbell: what lies in the queue runs, here and now.
unsafe extern "C" fn ring(doorbell: hsa_signal_t, index: i64) {
    let (queue, callback, data, kernel, handler) = with(|state| {
        let handler = state.handler;
        let kernel = state.kernel;
        let queue = state.queues.get_mut(&doorbell.handle).expect("a queue");
        queue.read = index as u64 + 1;
        (queue.address, queue.callback, queue.data, kernel, handler)
    });
    let raw: *mut hsa_queue_t = std::ptr::with_exposed_provenance_mut(queue as usize);
    // SAFETY: a queue of `queue_create`, whose ring has `size` packets; the loader wrote this one
    // before it rang.
    let packet = unsafe {
        let slot = index as usize & ((*raw).size as usize - 1);
        let place = (*raw)
            .base_address
            .cast::<hsa_kernel_dispatch_packet_t>()
            .add(slot);
        AtomicU32::from_ptr(place.cast()).load(Ordering::Acquire);
        *place
    };
    known(packet.completion_signal.handle, "signal", false);
    let arguments = {
        let address = packet.kernarg_address.addr() as u64;
        let size = with(|state| state.sizes.get(&address).copied()).expect("an allocation");
        // SAFETY: an allocation of so many bytes, as was just looked up, none of which is ever freed.
        unsafe { std::slice::from_raw_parts(packet.kernarg_address.cast::<u8>(), size) }.to_vec()
    };
    with(|state| state.packets.push((packet, arguments.clone())));
    match kernel {
        Kernel::Count => {
            if packet.kernel_object == OBJECT {
                let argc = i32::from_le_bytes(arguments[..4].try_into().unwrap());
                let ret = u64::from_le_bytes(arguments[24..32].try_into().unwrap());
                let ret: *mut i32 = std::ptr::with_exposed_provenance_mut(ret as usize);
                // SAFETY: the loader's `ret`, in memory of `pool_allocate`, which nobody else uses while
                // the kernel runs.
                unsafe { *ret |= argc };
            }
            value(packet.completion_signal).fetch_sub(1, Ordering::Release);
        }
        // SAFETY: the loader's own callback, with the queue and data that it came with.
        Kernel::Trap => unsafe {
            callback.expect("a callback")(HSA_STATUS_ERROR_EXCEPTION, raw, data);
        },
        Kernel::Fault => {
            let event = hsa_amd_event_t {
                event_type: HSA_AMD_GPU_MEMORY_FAULT_EVENT,
                __bindgen_anon_1: hsa_amd_event_s__bindgen_ty_1 {
                    memory_fault: hsa_amd_gpu_memory_fault_info_t {
                        agent: hsa_agent_t { handle: GPU },
                        virtual_address: 0x00BA_D000,
                        fault_reason_mask: 1,
                    },
                },
            };
            // SAFETY: the loader's own handler, and an event that outlives the call.
            let status = unsafe { handler.expect("a handler")(&raw const event, null_mut()) };
            assert_eq!(
                status, HSA_STATUS_SUCCESS,
                "else the runtime ends the process"
            );
        }
        Kernel::Hang => {}
    }
}

unsafe extern "C" fn register(
    handler: hsa_amd_system_event_callback_t,
    _: *mut c_void,
) -> hsa_status_t {
    enter!("hsa_amd_register_system_event_handler");
    with(|state| state.handler = handler);
    HSA_STATUS_SUCCESS
}

/// The table of all of these.
pub(crate) fn api() -> Api {
    Api {
        hsa_init: init,
        hsa_shut_down: shut_down,
        hsa_status_string: status_string,
        hsa_system_get_info: attributes::system,
        hsa_iterate_agents: attributes::agents,
        hsa_agent_get_info: attributes::agent,
        hsa_agent_iterate_isas: attributes::isas,
        hsa_isa_get_info_alt: attributes::isa,
        hsa_queue_create: queue_create,
        hsa_queue_destroy: queue_destroy,
        hsa_queue_add_write_index_relaxed: add_write_index,
        hsa_queue_load_read_index_scacquire: load_read_index,
        hsa_signal_create: signal_create,
        hsa_signal_destroy: signal_destroy,
        hsa_signal_load_scacquire: signal_load,
        hsa_signal_store_relaxed: signal_store,
        hsa_signal_store_screlease: ring,
        hsa_signal_wait_scacquire: signal_wait,
        hsa_code_object_reader_create_from_memory: code::reader_create,
        hsa_code_object_reader_destroy: code::reader_destroy,
        hsa_executable_create_alt: code::executable_create,
        hsa_executable_load_agent_code_object: code::executable_load,
        hsa_executable_freeze: code::executable_freeze,
        hsa_executable_validate: code::executable_validate,
        hsa_executable_get_symbol_by_name: code::symbol_by_name,
        hsa_executable_destroy: code::executable_destroy,
        hsa_executable_symbol_get_info: attributes::symbol,
        hsa_amd_agent_iterate_memory_pools: attributes::pools,
        hsa_amd_memory_pool_get_info: attributes::pool,
        hsa_amd_memory_pool_allocate: memory::pool_allocate,
        hsa_amd_memory_pool_free: memory::pool_free,
        hsa_amd_agent_memory_pool_get_info: attributes::agent_pool,
        hsa_amd_agents_allow_access: memory::allow_access,
        hsa_amd_memory_fill: memory::fill,
        hsa_amd_memory_async_copy: memory::copy,
        hsa_amd_register_system_event_handler: register,
    }
}

const _: () = assert!(size_of::<c_int>() == 4);
