//! A port as an `async fn` sees it.

use std::fmt;
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;

use bytemuck::Pod;
use rpc_types::{Opcode, Packet, Status};

use crate::exchange::{Exchange, Open};
use crate::handler::Failure;
use crate::memory::DeviceMemory;
use crate::messages::PerLane;
use crate::port::{RawPort, lanes};
use crate::shared::Context;

mod bulk;
mod stream;
mod text;

/// One call in several steps: what a conversation's handler does with its port.
///
/// It begins with a receive, and each operation is the mirror of one of the client's. An operation
/// that has to wait gives its poller back to other ports. Dropping the conversation, at the latest
/// when the handler returns, hands back the packets if this side has them.
pub struct Conversation {
    open: Option<Open>,
    exchange: Arc<Exchange>,
    context: Arc<Context>,
    opcode: Opcode,
    port: u32,
    mask: u64,
}

impl Conversation {
    pub(crate) fn new(
        port: Box<dyn RawPort>,
        exchange: Arc<Exchange>,
        context: Arc<Context>,
        (index, opcode, mask): (u32, Opcode, u64),
    ) -> Self {
        let open = Some(Open {
            port,
            bytes_in: 0,
            bytes_out: 0,
        });
        Self {
            open,
            exchange,
            context,
            opcode,
            port: index,
            mask,
        }
    }

    /// What the call asks for.
    pub const fn opcode(&self) -> Opcode {
        self.opcode
    }

    /// The port's index.
    pub const fn port(&self) -> u32 {
        self.port
    }

    /// The lanes that take part, a bit each: at least one.
    pub const fn mask(&self) -> u64 {
        self.mask
    }

    /// The lanes that take part, lowest first.
    pub fn lanes(&self) -> impl Iterator<Item = u32> + use<> {
        lanes(self.mask)
    }

    /// The device's memory.
    pub fn memory(&self) -> &Arc<dyn DeviceMemory> {
        &self.context.memory
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// The port is there until `drop`.
    fn open(&mut self) -> Result<&mut Open, Failure> {
        self.open.as_mut().ok_or(Failure::Status(Status::CANCELLED))
    }

    /// Waits until this side owns the packets.
    async fn own(&mut self) -> Result<(), Failure> {
        poll_fn(|_| {
            let result = match self.open()?.port.poll_own() {
                Ok(true) => Ok(()),
                Ok(false) => {
                    // The poller sees the mailbox turn: no waker is needed.
                    self.exchange.waits_for_client.store(true, Relaxed);
                    return Poll::Pending;
                }
                Err(error) => {
                    self.exchange.over.store(true, Relaxed);
                    Err(error.into())
                }
            };
            Poll::Ready(result)
        })
        .await
    }

    /// Receives the first `bytes` payload bytes of each lane's packet.
    ///
    /// # Errors
    /// When the conversation is over.
    pub async fn recv_with(
        &mut self,
        bytes: usize,
        mut f: impl FnMut(u32, &Packet) + Send,
    ) -> Result<(), Failure> {
        self.packets().await?;
        let lanes = u64::from(self.mask.count_ones());
        let open = self.open()?;
        open.bytes_in += lanes * bytes.min(open.port.payload()) as u64;
        open.port.end_recv(bytes, &mut f);
        Ok(())
    }

    /// Waits for the next packets to receive.
    async fn packets(&mut self) -> Result<(), Failure> {
        self.open()?.port.begin_recv()?;
        self.own().await
    }

    /// Sends the first `bytes` payload bytes of each lane's packet, as `f` sets them.
    ///
    /// # Errors
    /// When the conversation is over.
    pub async fn send_with(
        &mut self,
        bytes: usize,
        mut f: impl FnMut(u32, &mut Packet) + Send,
    ) -> Result<(), Failure> {
        self.own().await?;
        let lanes = u64::from(self.mask.count_ones());
        let open = self.open()?;
        open.bytes_out += lanes * bytes.min(open.port.payload()) as u64;
        open.port.end_send(bytes, &mut f);
        Ok(())
    }

    /// Receives a value from each lane.
    ///
    /// # Errors
    /// When the conversation is over.
    pub async fn recv<T: Pod + Send>(&mut self) -> Result<PerLane<T>, Failure> {
        let mut values = Vec::with_capacity(self.mask.count_ones() as usize);
        self.recv_with(size_of::<T>(), |lane, packet| {
            values.push((lane, packet.get()));
        })
        .await?;
        Ok(PerLane::new(values))
    }

    /// Sends a value to each lane.
    ///
    /// # Errors
    /// When the conversation is over.
    pub async fn send<T: Pod>(
        &mut self,
        mut f: impl FnMut(u32) -> T + Send,
    ) -> Result<(), Failure> {
        self.send_with(size_of::<T>(), |lane, packet| packet.set(&f(lane)))
            .await
    }

    /// Runs `f`, which may block, on a thread of the service's pool. A panic of `f` comes out here.
    pub async fn blocking<R: Send + 'static>(
        &mut self,
        f: impl FnOnce() -> R + Send + 'static,
    ) -> R {
        self.context.pool.run(f).await
    }

    /// As [`blocking`](Self::blocking), for what waits for somebody outside: the writer of a pipe,
    /// another program. It holds up nobody's [`blocking`](Self::blocking), and the end of a run is
    /// not put off for it.
    pub async fn waiting<R: Send + 'static>(
        &mut self,
        f: impl FnOnce() -> R + Send + 'static,
    ) -> R {
        let context = Arc::clone(&self.context);
        self.outside(context.outside.run(f)).await
    }

    /// As [`waiting`](Self::waiting), for works that may wait for one another: each on a thread of its
    /// own, as far as there are threads. The results are in the order of the works.
    pub async fn waiting_all<R: Send + 'static, F: FnOnce() -> R + Send + 'static>(
        &mut self,
        works: Vec<F>,
    ) -> Vec<R> {
        if works.is_empty() {
            return Vec::new();
        }
        let context = Arc::clone(&self.context);
        let runs = works.into_iter().map(|work| context.outside.run(work));
        let mut runs: Vec<_> = runs.map(|run| (Box::pin(run), None)).collect();
        let all = poll_fn(|task| {
            for (run, result) in &mut runs {
                if result.is_none()
                    && let Poll::Ready(value) = run.as_mut().poll(task)
                {
                    *result = Some(value);
                }
            }
            if runs.iter().any(|(_, result)| result.is_none()) {
                return Poll::Pending;
            }
            Poll::Ready(runs.iter_mut().filter_map(|(_, r)| r.take()).collect())
        });
        self.outside(all).await
    }

    /// Waits for `future`, for which somebody outside is needed: the end of a run is not put off for
    /// it.
    pub async fn outside<R>(&mut self, future: impl Future<Output = R>) -> R {
        self.exchange.waits_outside.store(true, Relaxed);
        let result = future.await;
        self.exchange.waits_outside.store(false, Relaxed);
        result
    }

    /// The call counts as failed, and is reported as a handler's failure is, though its client is
    /// answered: for an opcode whose answers have words of their own for it. The first one counts.
    pub fn note(&self, failure: Failure) {
        self.exchange.note(failure);
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        if let Some(open) = self.open.take() {
            self.exchange.give_back(open);
        }
    }
}

impl fmt::Debug for Conversation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conversation")
            .field("port", &self.port)
            .field("opcode", &self.opcode)
            .field("mask", &self.mask)
            .finish_non_exhaustive()
    }
}
