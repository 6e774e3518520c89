//! Queues: a ring of packets that a thread of its own serves in order.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::agent::{FEWEST_PACKETS, MOST_PACKETS};
use super::runtime::{self, Data, GPU, machine, new_handle, runtime};
use super::signal::{Condition, Signal};
use super::types::{Event, Handle, Queue, QueueError, Status, reason, status};
use crate::fault::{Cause, Fault};
use crate::isa::operand::{PRIVATE_APERTURE, SHARED_APERTURE};
use crate::kernel::Packet;
use crate::memory::{Access, Refusal, load16, load32, load64, pointer, store32};

/// Bytes of a packet.
const PACKET: u64 = 64;
/// Types of packets, in the low 8 bits of the header.
mod kind {
    pub(super) const INVALID: u16 = 1;
    pub(super) const DISPATCH: u16 = 2;
    pub(super) const BARRIER_AND: u16 = 3;
    pub(super) const BARRIER_OR: u16 = 5;
}
/// Where the indices lie in the hardware's queue structure, of which [`Queue`] is the start.
const WRITE_INDEX: u64 = 56;
const READ_INDEX: u64 = 128;
/// The apertures' upper halves.
const APERTURES: u64 = 64;

/// A queue.
pub(crate) struct QueueState {
    /// The structure that users know, in memory that the device reads, too.
    address: u64,
    base: u64,
    size: u64,
    doorbell: Handle,
    signal: Arc<Signal>,
    stop: AtomicBool,
    callback: QueueError,
    data: Mutex<Data>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl QueueState {
    fn index(&self, offset: u64) -> &AtomicU64 {
        // SAFETY: within the queue's page, aligned, freed only when this value is dropped, and
        // accessed atomically by all.
        unsafe { AtomicU64::from_ptr(pointer(self.address + offset).cast()) }
    }

    /// Ends the kernel that runs, and the thread.
    pub(crate) fn end(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.signal.update(|value| value);
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(thread) = thread
            && thread.thread().id() != thread::current().id()
        {
            // A panic there was reported already.
            let _ = thread.join();
        }
    }

    /// Serves packets until the end.
    fn serve(&self) {
        let mut read = self.index(READ_INDEX).load(Ordering::Acquire);
        while !self.stop.load(Ordering::Relaxed) {
            let at = self.base + read % self.size * PACKET;
            // SAFETY: a packet of the ring; the header is aligned and accessed atomically. Acquire:
            // pairs with the submitter's release of header and setup.
            let header = unsafe { AtomicU16::from_ptr(pointer(at).cast()) };
            let value = header.load(Ordering::Acquire);
            let rung = self.signal.load() >= read as i64;
            if value & 0xff == kind::INVALID || !rung {
                let end = Instant::now() + Duration::from_millis(5);
                if rung {
                    // Rung too early, or for a packet that is still being written.
                    thread::yield_now();
                }
                self.signal
                    .wait(Condition::GreaterOrEqual, read as i64, Some(end));
                continue;
            }
            // Before the slot is given back: a submitter that waits for room writes there at once.
            // SAFETY: the completion signal of the packet, aligned.
            let completion = unsafe { load64(pointer(at + 56)) };
            // Whoever waits for the kernel is told of a panic, too.
            let work = AssertUnwindSafe(|| self.process(at, value & 0xff, read));
            let result = catch_unwind(work);
            if let Err(fault) = result.unwrap_or_else(|_| Err(Fault::of_packet(Cause::Broken))) {
                self.report(&fault);
                return;
            }
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            header.store(kind::INVALID, Ordering::Release);
            read += 1;
            self.index(READ_INDEX).store(read, Ordering::Release);
            // The last thing: who waits for it may destroy the queue.
            if let Some(signal) = Signal::find(Handle { handle: completion }) {
                signal.update(|value| value.wrapping_sub(1));
            }
        }
    }

    fn process(&self, at: u64, kind: u16, id: u64) -> Result<(), Box<Fault>> {
        match kind {
            kind::DISPATCH => {
                let packet = self.dispatch(at, id);
                machine().run(packet, &self.stop)
            }
            kind::BARRIER_AND | kind::BARRIER_OR => {
                self.barrier(at, kind == kind::BARRIER_OR);
                Ok(())
            }
            _ => Err(Fault::of_packet(Cause::Packet("its type is unknown"))),
        }
    }

    fn dispatch(&self, at: u64, id: u64) -> Packet {
        // SAFETY: all fields lie within the packet, which its submitter does not touch any more.
        unsafe {
            let u16 = |offset| load16(pointer(at + offset));
            let u32 = |offset| load32(pointer(at + offset));
            let u64 = |offset| load64(pointer(at + offset));
            Packet {
                address: at,
                workgroup: [u16(4), u16(6), u16(8)].map(u32::from),
                grid: [u32(12), u32(16), u32(20)],
                private: u32(24),
                local: u32(28),
                kernel: u64(32),
                arguments: u64(40),
                queue: self.address,
                id,
            }
        }
    }

    /// Waits for all signals of a barrier packet, or one of them.
    fn barrier(&self, at: u64, any: bool) {
        // SAFETY: the fields lie within the packet.
        let handles = (0..5).map(|n| unsafe { load64(pointer(at + 8 + n * 8)) });
        let signals: Vec<_> = handles
            .filter_map(|handle| Signal::find(Handle { handle }))
            .collect();
        while !self.stop.load(Ordering::Relaxed) {
            let zero = |signal: &Arc<Signal>| signal.load() == 0;
            if signals.is_empty() || (any && signals.iter().any(zero)) || signals.iter().all(zero) {
                return;
            }
            thread::sleep(Duration::from_micros(100));
        }
    }

    /// Tells of a fault as the runtime would: memory faults go to the system event handler, if there is
    /// one, all else to the queue's callback. Nothing runs on the queue after that.
    fn report(&self, fault: &Fault) {
        let handler = {
            let runtime = runtime::lock();
            let handler = runtime.handler.as_ref();
            handler.and_then(|(handler, data)| Some(((*handler)?, data.0)))
        };
        if let (
            Cause::Memory {
                address, refusal, ..
            },
            Some((handler, data)),
        ) = (&fault.cause, handler)
        {
            let event = Event {
                kind: 0,
                agent: GPU,
                address: *address,
                reasons: match refusal {
                    Refusal::Absent => reason::NOT_PRESENT,
                    Refusal::ReadOnly => reason::READ_ONLY,
                    Refusal::HostOnly => reason::HOST_ONLY,
                },
            };
            // SAFETY: the handler takes the data it was registered with.
            unsafe { handler(&raw const event, data) };
            return;
        }
        let code = match fault.cause {
            Cause::Memory { .. } | Cause::Fetch => status::MEMORY_FAULT,
            Cause::Private { .. } | Cause::Local { .. } | Cause::Unaligned(_) => {
                status::MEMORY_APERTURE_VIOLATION
            }
            Cause::Illegal(_) => status::ILLEGAL_INSTRUCTION,
            Cause::Trap(_) => status::EXCEPTION,
            Cause::Packet(_) => status::INVALID_PACKET_FORMAT,
            Cause::NoMemory => status::OUT_OF_RESOURCES,
            Cause::Broken => status::ERROR,
        };
        if let Some(callback) = self.callback {
            let data = self.data.lock().unwrap_or_else(PoisonError::into_inner).0;
            // SAFETY: the callback takes the data it was registered with and this queue.
            unsafe { callback(code, pointer(self.address).cast(), data) };
        }
    }
}

impl Drop for QueueState {
    fn drop(&mut self) {
        Signal::destroy(self.doorbell);
        machine().free(self.base);
        machine().free(self.address);
    }
}

/// `hsa_queue_create`
///
/// # Safety
/// `callback` is null or takes `data`; `queue` is null or valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_queue_create(
    agent: Handle,
    size: u32,
    kind: u32,
    callback: QueueError,
    data: *mut c_void,
    _private: u32,
    _group: u32,
    queue: *mut *mut Queue,
) -> Status {
    if let Err(status) = runtime() {
        return status;
    }
    if agent != GPU {
        return status::INVALID_AGENT;
    }
    if queue.is_null() || !size.is_power_of_two() || kind > 2 {
        return status::INVALID_ARGUMENT;
    }
    if !(FEWEST_PACKETS..=MOST_PACKETS).contains(&size) {
        return status::INVALID_QUEUE_CREATION;
    }
    let Some(state) = create(size, kind, callback, data) else {
        return status::OUT_OF_RESOURCES;
    };
    let server = Arc::clone(&state);
    let work = move || server.serve();
    match thread::Builder::new()
        .name("hsa-emu queue".into())
        .spawn(work)
    {
        Ok(thread) => {
            *state.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        }
        Err(_) => return status::OUT_OF_RESOURCES,
    }
    // SAFETY: not null, so valid for writes.
    unsafe { queue.write(pointer(state.address).cast()) };
    runtime::lock().queues.insert(state.address, state);
    status::SUCCESS
}

fn create(
    size: u32,
    kind: u32,
    callback: QueueError,
    data: *mut c_void,
) -> Option<Arc<QueueState>> {
    let address = machine().allocate(256, Access::Write)?;
    let Some(base) = machine().allocate(u64::from(size) * PACKET, Access::Write) else {
        machine().free(address);
        return None;
    };
    let (doorbell, signal) = Signal::create(-1);
    let user = Queue {
        kind,
        features: 1,
        base: pointer(base).cast(),
        doorbell,
        size,
        reserved: 0,
        id: new_handle(),
    };
    // SAFETY: fresh memory of more than this size, aligned to pages; nobody else knows of it yet.
    unsafe {
        pointer(address).cast::<Queue>().write_unaligned(user);
        store32(pointer(address + APERTURES), SHARED_APERTURE);
        store32(pointer(address + APERTURES + 4), PRIVATE_APERTURE);
        for n in 0..u64::from(size) {
            store32(pointer(base + n * PACKET), u32::from(kind::INVALID));
        }
    }
    Some(Arc::new(QueueState {
        address,
        base,
        size: size.into(),
        doorbell,
        signal,
        stop: AtomicBool::new(false),
        callback,
        data: Mutex::new(Data(data)),
        thread: Mutex::new(None),
    }))
}

fn find(queue: *const Queue) -> Option<Arc<QueueState>> {
    let runtime = runtime().ok()?;
    runtime.queues.get(&(queue.addr() as u64)).cloned()
}

/// `hsa_queue_destroy`: a kernel that runs is stopped.
#[unsafe(no_mangle)]
pub extern "C" fn hsa_queue_destroy(queue: *mut Queue) -> Status {
    let removed = match runtime() {
        Err(status) => return status,
        Ok(mut runtime) => runtime.queues.remove(&(queue.addr() as u64)),
    };
    match removed {
        Some(queue) => {
            queue.end();
            status::SUCCESS
        }
        None => status::INVALID_QUEUE,
    }
}

/// `hsa_queue_inactivate`: a kernel that runs is stopped, and no other one starts.
#[unsafe(no_mangle)]
pub extern "C" fn hsa_queue_inactivate(queue: *mut Queue) -> Status {
    match find(queue) {
        Some(queue) => {
            queue.end();
            status::SUCCESS
        }
        None => status::INVALID_QUEUE,
    }
}

/// The functions on indices that differ only in ordering, all of which are ordered most strictly here.
macro_rules! functions {
    ($($offset:ident load $load:ident;)* => $(store $store:ident;)* => $(add $add:ident;)*) => {
        $(
            #[doc = concat!("`", stringify!($load), "`")]
            #[unsafe(no_mangle)]
            pub extern "C" fn $load(queue: *const Queue) -> u64 {
                find(queue).map_or(0, |queue| queue.index($offset).load(Ordering::SeqCst))
            }
        )*
        $(
            #[doc = concat!("`", stringify!($store), "`")]
            #[unsafe(no_mangle)]
            pub extern "C" fn $store(queue: *const Queue, value: u64) {
                if let Some(queue) = find(queue) {
                    queue.index(WRITE_INDEX).store(value, Ordering::SeqCst);
                }
            }
        )*
        $(
            #[doc = concat!("`", stringify!($add), "`")]
            #[unsafe(no_mangle)]
            pub extern "C" fn $add(queue: *const Queue, value: u64) -> u64 {
                find(queue).map_or(0, |queue| queue.index(WRITE_INDEX).fetch_add(value, Ordering::SeqCst))
            }
        )*
    };
}

functions! {
    READ_INDEX load hsa_queue_load_read_index_scacquire;
    READ_INDEX load hsa_queue_load_read_index_relaxed;
    WRITE_INDEX load hsa_queue_load_write_index_scacquire;
    WRITE_INDEX load hsa_queue_load_write_index_relaxed;
    =>
    store hsa_queue_store_write_index_screlease;
    store hsa_queue_store_write_index_relaxed;
    =>
    add hsa_queue_add_write_index_relaxed;
    add hsa_queue_add_write_index_scacquire;
    add hsa_queue_add_write_index_screlease;
    add hsa_queue_add_write_index_scacq_screl;
}
