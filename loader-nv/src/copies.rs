//! Copies beside a running kernel.
//!
//! They go through page-locked memory: only of that the driver promises that a copy does not wait
//! for a kernel. All of it is there before the first launch, since page-locking more may wait. Some
//! is lent to whoever does not wait for his copy; one buffer is kept for those who do.

use std::sync::{Arc, Mutex, MutexGuard};

use cust::sys;
use loader_core::device::DeviceError;
use loader_core::staging::{BLOCKING, BUFFERS, Lent, SIZE};
use rpc_server::{MemoryError, Staging};

use crate::cuda::{Event, Pinned, Stream, check};
use crate::device::CudaDevice;
use crate::memory::lock;

/// A device's streams for copies, and what these go through.
pub(crate) struct Copies {
    pub(crate) to_host: Stream,
    pub(crate) to_device: Stream,
    /// Never lent: who waits for it may be the thread that a borrower is waiting for.
    blocking: Mutex<Buffer>,
    lent: Mutex<Lent<Buffer>>,
}

impl Copies {
    pub(crate) fn new() -> Result<Self, DeviceError> {
        Ok(Self {
            to_host: Stream::new()?,
            to_device: Stream::new()?,
            blocking: Mutex::new(Buffer::new(BLOCKING)?),
            lent: Mutex::default(),
        })
    }

    /// Makes the buffers that are lent. The device's context is the thread's.
    pub(crate) fn reserve(&self) -> Result<(), DeviceError> {
        let mut lent = lock(&self.lent);
        for _ in 0..BUFFERS {
            lent.add(Buffer::new(SIZE)?);
        }
        Ok(())
    }

    /// The buffer for copies that the caller waits for.
    pub(crate) fn blocking(&self) -> MutexGuard<'_, Buffer> {
        lock(&self.blocking)
    }

    /// Before the memory is freed: no copy uses it any more.
    pub(crate) fn finish(&self) {
        // On a device that has failed nothing runs.
        let _ = self.to_host.synchronize();
        let _ = self.to_device.synchronize();
    }
}

enum State {
    /// No copy runs; so many bytes came by the last one.
    Idle(usize),
    /// A copy from the device (so many bytes of it), or to it (none), runs until the event.
    Running(usize),
    /// A copy runs, and nothing tells when it is over.
    Lost,
}

/// Page-locked memory for one copy at a time.
pub(crate) struct Buffer {
    memory: Pinned,
    done: Event,
    state: State,
}

impl Buffer {
    fn new(size: usize) -> Result<Self, DeviceError> {
        Ok(Self {
            memory: Pinned::new(size)?,
            done: Event::new()?,
            state: State::Idle(0),
        })
    }

    pub(crate) fn size(&self) -> usize {
        self.memory.size
    }

    /// Whether a copy of so many bytes can be started.
    fn takes(&mut self, length: usize) -> Result<(), DeviceError> {
        let reason = if !self.is_done()? {
            "a copy through this memory is not over"
        } else if length > self.memory.size {
            "there is less page-locked memory than is to be copied"
        } else {
            return Ok(());
        };
        Err(DeviceError::Api {
            call: "copying",
            reason: reason.to_owned(),
        })
    }

    /// A copy was put into `stream`.
    fn started(&mut self, stream: &Stream, bytes: usize) -> Result<(), DeviceError> {
        // Until there is something to ask.
        self.state = State::Lost;
        self.done.record(stream)?;
        self.state = State::Running(bytes);
        Ok(())
    }

    /// Starts a copy from the device. The device's context is the thread's, here and below.
    pub(crate) fn start_to_host(
        &mut self,
        stream: &Stream,
        from: u64,
        length: usize,
    ) -> Result<(), DeviceError> {
        self.takes(length)?;
        let to = self.memory.host.as_ptr().cast();
        // SAFETY: the memory has room for `length` bytes, and no copy uses it. It is this buffer's
        // alone, which makes no reference to it before the event says that this copy is done, and
        // is not freed before all copies are. The driver checks the device's address.
        let result = unsafe { sys::cuMemcpyDtoHAsync_v2(to, from, length, stream.raw()) };
        check("cuMemcpyDtoHAsync", result)?;
        self.started(stream, length)
    }

    /// Starts a copy to the device.
    pub(crate) fn start_to_device(
        &mut self,
        stream: &Stream,
        length: usize,
        to: u64,
    ) -> Result<(), DeviceError> {
        self.takes(length)?;
        let from = self.memory.host.as_ptr().cast();
        // SAFETY: as above; nobody writes to the memory before the copy is done.
        let result = unsafe { sys::cuMemcpyHtoDAsync_v2(to, from, length, stream.raw()) };
        check("cuMemcpyHtoDAsync", result)?;
        self.started(stream, 0)
    }

    /// Whether no copy runs; never waits.
    fn is_done(&mut self) -> Result<bool, DeviceError> {
        match self.state {
            State::Idle(_) => Ok(true),
            State::Running(bytes) => {
                let done = self.done.is_done()?;
                if done {
                    self.state = State::Idle(bytes);
                }
                Ok(done)
            }
            State::Lost => Err(DeviceError::Api {
                call: "copying",
                reason: "the driver could not tell when a copy would be over".to_owned(),
            }),
        }
    }

    /// Waits until no copy runs.
    pub(crate) fn wait(&mut self) -> Result<(), DeviceError> {
        if let State::Running(bytes) = self.state {
            self.done.synchronize()?;
            self.state = State::Idle(bytes);
        }
        self.is_done().map(drop)
    }

    /// What the last copy has brought; nothing while one runs.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self.state {
            // SAFETY: so many bytes lie there, initialised since they were allocated. No copy runs,
            // so nobody writes to them as long as `self` is borrowed.
            State::Idle(bytes) => unsafe {
                std::slice::from_raw_parts(self.memory.host.as_ptr(), bytes)
            },
            _ => &[],
        }
    }

    /// All of the memory; nothing while a copy runs.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        match self.state {
            // SAFETY: as above for all of its bytes, and neither does anybody read them.
            State::Idle(_) => unsafe {
                std::slice::from_raw_parts_mut(self.memory.host.as_ptr(), self.memory.size)
            },
            _ => &mut [],
        }
    }
}

/// A buffer that was lent. It keeps the device, and so the buffer's memory, alive.
pub(crate) struct Staged {
    device: Arc<CudaDevice>,
    /// There until `drop`.
    buffer: Option<Buffer>,
}

impl Staged {
    /// One of the device's buffers, if one is free.
    pub(crate) fn lend(device: Arc<CudaDevice>) -> Option<Self> {
        let is_done =
            |buffer: &mut Buffer| device.enter().is_ok() && matches!(buffer.is_done(), Ok(true));
        let buffer = lock(&device.copies.lent).lend(is_done);
        buffer.map(|buffer| Self {
            device,
            buffer: Some(buffer),
        })
    }

    /// Starts a copy at an address that the device has named.
    fn start(
        &mut self,
        address: u64,
        length: usize,
        start: impl FnOnce(&Copies, &mut Buffer) -> Result<(), DeviceError>,
    ) -> Result<(), MemoryError> {
        if !self.device.may_copy(address, length) {
            return Err(MemoryError::OutOfRange { address, length });
        }
        let Some(buffer) = self.buffer.as_mut() else {
            return Ok(());
        };
        self.device
            .enter()
            .and_then(|()| start(&self.device.copies, buffer))
            .map_err(|error| failed(&error))
    }
}

fn failed(error: &DeviceError) -> MemoryError {
    MemoryError::Device(error.to_string())
}

impl Staging for Staged {
    fn size(&self) -> usize {
        self.buffer.as_ref().map_or(0, Buffer::size)
    }

    fn start_to_host(&mut self, from: u64, length: usize) -> Result<(), MemoryError> {
        self.start(from, length, |copies, buffer| {
            buffer.start_to_host(&copies.to_host, from, length)
        })
    }

    fn start_to_device(&mut self, length: usize, to: u64) -> Result<(), MemoryError> {
        self.start(to, length, |copies, buffer| {
            buffer.start_to_device(&copies.to_device, length, to)
        })
    }

    fn is_done(&mut self) -> Result<bool, MemoryError> {
        // Whichever thread it is that asks.
        let entered = self.device.enter();
        let buffer = self.buffer.as_mut();
        entered
            .and_then(|()| buffer.map_or(Ok(true), Buffer::is_done))
            .map_err(|error| failed(&error))
    }

    fn bytes(&self) -> &[u8] {
        self.buffer.as_ref().map_or(&[], Buffer::bytes)
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self.buffer.as_mut().map_or(&mut [], Buffer::bytes_mut)
    }
}

impl Drop for Staged {
    /// Without a word to the driver: this may be the end of a run whose kernel goes on.
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            let mut lent = lock(&self.device.copies.lent);
            let idle = matches!(buffer.state, State::Idle(_));
            lent.give_back(buffer, idle);
        }
    }
}
