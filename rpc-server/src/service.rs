//! Poller threads over a transport.

use std::fmt;
use std::io;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rpc_bitmap::{Device, Heap};
use rpc_port::{Server, Transport};

use crate::counters::Counters;
use crate::handler::End;
use crate::memory::DeviceMemory;
use crate::observe::Observe;
use crate::options::Options;
use crate::poller::Poller;
use crate::probe::{OpenExchange, Probe, View};
use crate::shared::{DRAINING, STOPPING, Shared};
use crate::table::Table;

/// How long an end waits for threads that are inside a handler.
const PATIENCE: Duration = Duration::from_secs(1);

/// Threads that serve one device's requests.
///
/// It serves until it is [drained](Self::drain), also after a handler has asked for the
/// [end](Self::ended) of the run: ending it is the caller's affair. Dropping it stops its threads
/// and tells the device to end.
pub struct Service {
    shared: Arc<Shared>,
    device: Arc<dyn View>,
    threads: Vec<JoinHandle<()>>,
    halted: bool,
}

/// How a drain went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Drained {
    /// Exchanges that were given up unfinished.
    pub cancelled: u64,
    /// Something took longer than the limit: a handler may still run, or something is not written.
    pub late: bool,
}

impl Service {
    /// Starts serving `transport`'s region with the handlers of `table`. The service keeps
    /// `memory` until its last thread has ended.
    ///
    /// # Errors
    /// When the threads cannot be started.
    pub fn start<T: Transport + Send + Sync + 'static, O: Observe>(
        transport: T,
        table: Table,
        memory: Arc<dyn DeviceMemory>,
        mut options: Options,
        observe: O,
    ) -> io::Result<Self> {
        if T::KIND.is_llvm() {
            // Its clients know no references: what looks like one is a length.
            options.bulk = 0;
        }
        let ports = transport.geometry().total_ports();
        let pollers = options.pollers_for(ports);
        let locks = Heap::<Device>::new(Server::<T, Heap<Device>>::memory_size(&transport));
        let server = Server::new(transport, locks);
        let shared = Shared::new(table.freeze(), memory, options, ports, pollers);
        let mut service = Self {
            shared: Arc::new(shared),
            device: Arc::new(server.clone()),
            threads: Vec::new(),
            halted: false,
        };
        let observe = Arc::new(observe);
        for index in 0..pollers {
            let shared = Arc::clone(&service.shared);
            let observe = Arc::clone(&observe);
            // A handle of its own for each poller: reference counts are not shared.
            let server = server.clone();
            let thread = thread::Builder::new()
                .name(format!("gpurpc-poll-{index}"))
                .spawn(move || Poller::new(index, Arc::new(server), shared, observe).run());
            match thread {
                Ok(thread) => service.threads.push(thread),
                Err(error) => {
                    // The missing ones count as ended.
                    for _ in index..pollers {
                        service.shared.poller_ended(0, false);
                    }
                    return Err(error);
                }
            }
        }
        Ok(service)
    }

    /// The end that a handler has asked for; the first one counts.
    pub fn ended(&self) -> Option<End> {
        self.shared.ending.get()
    }

    /// Sleeps until a handler asks for the end, at most for `limit`.
    pub fn wait(&self, limit: Duration) -> Option<End> {
        self.shared.ending.wait(limit)
    }

    /// What other threads may see of it.
    pub fn probe(&self) -> Probe {
        Probe {
            shared: Arc::clone(&self.shared),
            device: Arc::clone(&self.device),
        }
    }

    /// The exchanges that have not ended, by port.
    pub fn open_exchanges(&self) -> Vec<OpenExchange> {
        let mut open = Vec::new();
        self.probe().open_exchanges(|exchange| open.push(exchange));
        open
    }

    /// The numbers so far.
    pub fn counters(&self) -> Counters {
        self.probe().counters()
    }

    /// Waits until what was reported so far has been said, at most for `limit`: whether it has. What
    /// ends a service waits for it too.
    pub fn reported(&self, limit: Duration) -> bool {
        self.shared.reports.wait(after(limit))
    }

    /// Serves the requests that are complete, gives up the exchanges whose client does not go on,
    /// writes out what was printed in parts and what was reported, and ends the pollers; all within
    /// about `limit`.
    ///
    /// To be called when the kernel has ended, or when it will be told to end. Requests that are
    /// posted after it has begun are not served. A second drain finds nothing to do.
    pub fn drain(&self, limit: Duration) -> Drained {
        let deadline = after(limit);
        self.shared.enter(DRAINING, deadline);
        let progress = self.shared.wait_ended(deadline + GRACE);
        let mut late = progress.late || progress.ended < self.shared.controls.len();
        // Writing may block for good where nobody reads: not on this thread, and nothing else that
        // is to be written waits for it.
        let (done, finished) = mpsc::channel();
        let mut running = 0;
        for hook in 0..self.shared.table.hooks() {
            let (done, shared) = (done.clone(), Arc::clone(&self.shared));
            let thread = thread::Builder::new()
                .name("gpurpc-drain".into())
                .spawn(move || {
                    shared.table.drained(hook);
                    // Before the caller goes on: it may be about to free what this refers to.
                    drop(shared);
                    let _ = done.send(());
                });
            if thread.is_ok() {
                running += 1;
            } else {
                // The system has no thread left for it: better here than not at all.
                self.shared.table.drained(hook);
            }
        }
        drop(done);
        let until = deadline.max(Instant::now() + LEAST_FOR_HOOKS);
        for _ in 0..running {
            let left = until.saturating_duration_since(Instant::now());
            late |= finished.recv_timeout(left).is_err();
        }
        late |= !self.shared.reports.wait(until);
        Drained {
            cancelled: progress.cancelled,
            late,
        }
    }

    /// Tells the device to end: its waiting threads find out within 1024 polls.
    pub fn stop_device(&self) {
        self.device.stop();
    }

    /// Ends the threads and tells the device to end. `false` if a handler still holds one after a
    /// second: such a thread, and what it uses, is left to the end of the process.
    pub fn stop(mut self) -> bool {
        self.halt()
    }

    fn halt(&mut self) -> bool {
        if self.halted {
            return true;
        }
        self.halted = true;
        self.device.stop();
        let deadline = Instant::now() + PATIENCE;
        self.shared.enter(STOPPING, deadline);
        self.shared.wait_ended(deadline);
        // What cannot be said by then is dropped, as text is.
        self.shared.reports.wait(deadline);
        let mut all = true;
        for thread in self.threads.drain(..) {
            // Counted as ended, a poller has only its own memory left to free.
            while !thread.is_finished() && Instant::now() < deadline {
                thread::sleep(Duration::from_micros(100));
            }
            if thread.is_finished() {
                let _ = thread.join();
            } else {
                all = false;
            }
        }
        all
    }
}

/// Pollers notice a deadline themselves: how much later their answer may come.
const GRACE: Duration = Duration::from_millis(20);
/// Output is flushed even when the limit has run out.
const LEAST_FOR_HOOKS: Duration = Duration::from_millis(200);

/// Longer than anybody waits, and not too long for the clock.
const FOR_EVER: Duration = Duration::from_hours(24 * 365);

/// When `limit` is over that begins now.
fn after(limit: Duration) -> Instant {
    Instant::now() + limit.min(FOR_EVER)
}

impl Drop for Service {
    fn drop(&mut self) {
        self.halt();
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service")
            .field("ports", &self.device.ports())
            .field("pollers", &self.shared.controls.len())
            .finish_non_exhaustive()
    }
}
