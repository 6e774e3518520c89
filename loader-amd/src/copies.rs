//! Copies beside a running kernel, by the device's copy engines.
//!
//! They go through host memory of the runtime's pools, allocated before the first launch: some is
//! lent to whoever does not wait for his copy, one buffer is kept for those who do. Each has a
//! signal, which the runtime counts down when the copy is over and makes negative when it failed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hsa_sys::{
    Api, HSA_SIGNAL_CONDITION_LT, HSA_STATUS_SUCCESS, HSA_WAIT_STATE_BLOCKED, hsa_agent_t,
    hsa_signal_t,
};
use loader_core::device::DeviceError;
use loader_core::staging::{BLOCKING, BUFFERS, Lent, SIZE};
use rpc_server::{MemoryError, Staging};

use crate::agents::Pool;
use crate::device::AmdDevice;
use crate::hsa::check;
use crate::memory::{Block, Side, lock, pointer, pointer_mut};

/// How long a wait lasts before faults are looked for, in units that differ by machine: some
/// milliseconds to a second.
const WAIT: u64 = 100_000_000;

/// A signal of the runtime.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Signal(pub(crate) hsa_signal_t);

impl Signal {
    pub(crate) fn new(api: &Api, value: i64) -> Result<Self, DeviceError> {
        let mut signal = hsa_signal_t { handle: 0 };
        // SAFETY: `signal` is a place for a handle; no consumers means any.
        let status =
            unsafe { (api.hsa_signal_create)(value, 0, std::ptr::null(), &raw mut signal) };
        check(api, "hsa_signal_create", status)?;
        Ok(Self(signal))
    }

    pub(crate) fn set(self, api: &Api, value: i64) {
        // SAFETY: the signal exists until `destroy`, which its owner calls last, here and below.
        unsafe { (api.hsa_signal_store_relaxed)(self.0, value) };
    }

    /// Acquire: pairs with the release of whoever counts it down.
    pub(crate) fn value(self, api: &Api) -> i64 {
        // SAFETY: as above.
        unsafe { (api.hsa_signal_load_scacquire)(self.0) }
    }

    /// Waits a while for the value to fall below 1; gives the value.
    pub(crate) fn wait(self, api: &Api) -> i64 {
        // SAFETY: as above.
        unsafe {
            (api.hsa_signal_wait_scacquire)(
                self.0,
                HSA_SIGNAL_CONDITION_LT,
                1,
                WAIT,
                HSA_WAIT_STATE_BLOCKED,
            )
        }
    }

    pub(crate) fn destroy(self, api: &Api) {
        // SAFETY: made by `new`; its owner does so once and uses it no more.
        unsafe { (api.hsa_signal_destroy)(self.0) };
    }
}

/// What copies go through.
pub(crate) struct Copies {
    /// Never lent: who waits for it may be the thread that a borrower is waiting for.
    blocking: Mutex<Buffer>,
    lent: Mutex<Lent<Buffer>>,
}

impl Copies {
    pub(crate) fn new(api: &Api, pool: &Pool, agent: hsa_agent_t) -> Result<Self, DeviceError> {
        Ok(Self {
            blocking: Mutex::new(Buffer::new(api, pool, agent, BLOCKING)?),
            lent: Mutex::default(),
        })
    }

    /// Makes the buffers that are lent.
    pub(crate) fn reserve(
        &self,
        api: &Api,
        pool: &Pool,
        agent: hsa_agent_t,
    ) -> Result<(), DeviceError> {
        let mut lent = lock(&self.lent);
        for _ in 0..BUFFERS {
            lent.add(Buffer::new(api, pool, agent, SIZE)?);
        }
        Ok(())
    }

    /// Frees what no copy uses any more. Of a copy that runs on a device that has failed nobody
    /// knows when it is over: its buffer stays, and so must the memory on its other side. Whether there
    /// is none such.
    pub(crate) fn free(self, api: &Api) -> bool {
        let lent = self.lent.into_inner();
        let lent = lent.unwrap_or_else(PoisonError::into_inner);
        let blocking = self.blocking.into_inner();
        let blocking = blocking.unwrap_or_else(PoisonError::into_inner);
        let mut all = true;
        for mut buffer in lent.into_all().chain([blocking]) {
            if matches!(buffer.state, State::Running(_)) {
                buffer.signal.wait(api);
            }
            if matches!(buffer.is_done(api), Ok(true)) {
                buffer.signal.destroy(api);
                buffer.memory.free(api);
            } else {
                all = false;
            }
        }
        all
    }
}

enum State {
    /// No copy runs; so many bytes came by the last one.
    Idle(usize),
    /// A copy from the device (so many bytes of it), or to it (none), runs.
    Running(usize),
    /// A copy failed.
    Failed,
}

/// Host memory for one copy at a time.
struct Buffer {
    memory: Block,
    signal: Signal,
    state: State,
}

/// One side of a copy: an address, and the agent whose memory it is.
#[derive(Clone, Copy)]
struct Place(u64, hsa_agent_t);

impl Buffer {
    fn new(api: &Api, pool: &Pool, agent: hsa_agent_t, size: usize) -> Result<Self, DeviceError> {
        let memory = Block::of_host(api, pool, agent, size)?;
        match Signal::new(api, 0) {
            Ok(signal) => Ok(Self {
                memory,
                signal,
                state: State::Idle(0),
            }),
            Err(error) => {
                memory.free(api);
                Err(error)
            }
        }
    }

    /// Starts a copy that will have brought `bytes` bytes.
    fn start(
        &mut self,
        api: &Api,
        (Place(to, to_agent), Place(from, from_agent)): (Place, Place),
        length: usize,
        bytes: usize,
    ) -> Result<(), DeviceError> {
        let refused = |reason: &str| {
            Err(DeviceError::Api {
                call: "copying",
                reason: reason.to_owned(),
            })
        };
        if !self.is_done(api)? {
            return refused("a copy through this memory is not over");
        }
        if length > self.memory.size {
            return refused("there is less host memory than is to be copied");
        }
        if length == 0 {
            // The runtime does not say that it touches the signal then.
            self.state = State::Idle(0);
            return Ok(());
        }
        self.signal.set(api, 1);
        // SAFETY: one side is this buffer's memory, which has room for `length` bytes, which no copy
        // uses, to which nobody makes a reference before the signal says that this copy is over, and
        // which is not freed before. The other side was found to lie in one allocation that is
        // freed with the device (`may_copy`, or a global's place). The device may access both: its
        // own memory, and host memory that it was let to. The signal is this buffer's.
        let status = unsafe {
            (api.hsa_amd_memory_async_copy)(
                pointer_mut(to),
                to_agent,
                pointer(from),
                from_agent,
                length,
                0,
                std::ptr::null(),
                self.signal.0,
            )
        };
        if status != HSA_STATUS_SUCCESS {
            self.signal.set(api, 0);
            self.state = State::Idle(0);
        }
        check(api, "hsa_amd_memory_async_copy", status)?;
        self.state = State::Running(bytes);
        Ok(())
    }

    /// Whether no copy runs; never waits.
    fn is_done(&mut self, api: &Api) -> Result<bool, DeviceError> {
        if let State::Running(bytes) = self.state {
            match self.signal.value(api) {
                0 => self.state = State::Idle(bytes),
                value if value < 0 => self.state = State::Failed,
                _ => return Ok(false),
            }
        }
        match self.state {
            State::Failed => Err(DeviceError::Api {
                call: "hsa_amd_memory_async_copy",
                reason: "the device could not copy".to_owned(),
            }),
            _ => Ok(true),
        }
    }

    /// What the last copy has brought; nothing while one runs.
    fn bytes(&self) -> &[u8] {
        match self.state {
            // SAFETY: so many bytes lie there, initialised since they were allocated. No copy runs,
            // so nobody writes to them as long as `self` is borrowed.
            State::Idle(bytes) => unsafe {
                std::slice::from_raw_parts(self.memory.start.as_ptr(), bytes)
            },
            _ => &[],
        }
    }

    /// All of the memory; nothing while a copy runs.
    fn bytes_mut(&mut self) -> &mut [u8] {
        match self.state {
            // SAFETY: as above for all of its bytes, and neither does anybody read them.
            State::Idle(_) => unsafe {
                std::slice::from_raw_parts_mut(self.memory.start.as_ptr(), self.memory.size)
            },
            _ => &mut [],
        }
    }
}

impl AmdDevice {
    fn place(&self, side: Side, address: u64) -> Place {
        match side {
            Side::Host => Place(address, self.places.host_agent),
            Side::Device => Place(address, self.agent),
        }
    }

    /// The buffer for copies that the caller waits for.
    fn blocking(&self) -> MutexGuard<'_, Buffer> {
        lock(&self.copies.blocking)
    }

    /// Waits until the buffer's copy is over, or the device has failed.
    fn wait(&self, buffer: &mut Buffer) -> Result<(), DeviceError> {
        while !buffer.is_done(&self.runtime)? {
            buffer.signal.wait(&self.runtime);
            if let Some(fault) = self.fault() {
                return Err(fault);
            }
        }
        Ok(())
    }

    /// Copies from `side`, in pieces through a buffer, beside any kernel.
    pub(crate) fn read(&self, side: Side, from: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        let mut buffer = self.blocking();
        let size = buffer.memory.size;
        for (index, piece) in into.chunks_mut(size).enumerate() {
            let from = self.place(side, from + (index * size) as u64);
            let to = Place(buffer.memory.address(), self.places.host_agent);
            buffer.start(&self.runtime, (to, from), piece.len(), piece.len())?;
            self.wait(&mut buffer)?;
            piece.copy_from_slice(buffer.bytes());
        }
        Ok(())
    }

    /// Copies to `side`, likewise.
    pub(crate) fn write(&self, from: &[u8], side: Side, to: u64) -> Result<(), DeviceError> {
        let mut buffer = self.blocking();
        let size = buffer.memory.size;
        for (index, piece) in from.chunks(size).enumerate() {
            let to = self.place(side, to + (index * size) as u64);
            if let Some(place) = buffer.bytes_mut().get_mut(..piece.len()) {
                place.copy_from_slice(piece);
            }
            let from = Place(buffer.memory.address(), self.places.host_agent);
            buffer.start(&self.runtime, (to, from), piece.len(), 0)?;
            self.wait(&mut buffer)?;
        }
        Ok(())
    }
}

/// A buffer that was lent. It keeps the device, and so the buffer's memory, alive.
pub(crate) struct Staged {
    device: Arc<AmdDevice>,
    /// There until `drop`.
    buffer: Option<Buffer>,
}

impl Staged {
    /// One of the device's buffers, if one is free.
    pub(crate) fn lend(device: Arc<AmdDevice>) -> Option<Self> {
        let is_done = |buffer: &mut Buffer| matches!(buffer.is_done(&device.runtime), Ok(true));
        let buffer = lock(&device.copies.lent).lend(is_done);
        buffer.map(|buffer| Self {
            device,
            buffer: Some(buffer),
        })
    }

    fn start(&mut self, address: u64, length: usize, to_host: bool) -> Result<(), MemoryError> {
        let side = self.device.may_copy(address, length)?;
        let theirs = self.device.place(side, address);
        let Some(buffer) = self.buffer.as_mut() else {
            return Ok(());
        };
        let ours = Place(buffer.memory.address(), self.device.places.host_agent);
        let (places, bytes) = if to_host {
            ((ours, theirs), length)
        } else {
            ((theirs, ours), 0)
        };
        buffer
            .start(&self.device.runtime, places, length, bytes)
            .map_err(|error| MemoryError::Device(error.to_string()))
    }
}

impl Staging for Staged {
    fn size(&self) -> usize {
        self.buffer.as_ref().map_or(0, |buffer| buffer.memory.size)
    }

    fn start_to_host(&mut self, from: u64, length: usize) -> Result<(), MemoryError> {
        self.start(from, length, true)
    }

    fn start_to_device(&mut self, length: usize, to: u64) -> Result<(), MemoryError> {
        self.start(to, length, false)
    }

    fn is_done(&mut self) -> Result<bool, MemoryError> {
        let api = &self.device.runtime;
        let buffer = self.buffer.as_mut();
        buffer
            .map_or(Ok(true), |buffer| buffer.is_done(api))
            .map_err(|error| MemoryError::Device(error.to_string()))
    }

    fn bytes(&self) -> &[u8] {
        self.buffer.as_ref().map_or(&[], Buffer::bytes)
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self.buffer.as_mut().map_or(&mut [], Buffer::bytes_mut)
    }
}

impl Drop for Staged {
    /// Without a word to the runtime: this may be the end of a run whose kernel goes on.
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            let mut lent = lock(&self.device.copies.lent);
            let idle = matches!(buffer.state, State::Idle(_));
            lent.give_back(buffer, idle);
        }
    }
}
