//! One poller without a thread, for measurements.

use std::fmt;
use std::sync::Arc;

use rpc_bitmap::Heap;
use rpc_port::{Server, Transport};

use crate::memory::NoMemory;
use crate::observe::Observe;
use crate::options::Options;
use crate::poller::Poller;
use crate::shared::Shared;
use crate::table::Table;

/// Serves all ports of a transport, in the caller's thread and when it says so.
pub struct Single<T: Transport, O = ()> {
    poller: Poller<T, O>,
    observe: Arc<O>,
}

impl<T: Transport + Send + Sync + 'static> Single<T> {
    /// A poller over `transport`'s region with the handlers of `table`.
    pub fn new(transport: T, table: Table, options: Options) -> Self {
        Self::observed(transport, table, options, ())
    }
}

impl<T: Transport + Send + Sync + 'static, O: Observe> Single<T, O> {
    /// As [`new`](Single::new), with an observer.
    pub fn observed(transport: T, table: Table, options: Options, observe: O) -> Self {
        let ports = transport.geometry().total_ports();
        let memory = Heap::new(Server::<T, Heap<_>>::memory_size(&transport));
        let server = Arc::new(Server::new(transport, memory));
        let shared = Shared::new(table.freeze(), Arc::new(NoMemory), options, ports, 1);
        let observe = Arc::new(observe);
        Self {
            poller: Poller::new(0, server, Arc::new(shared), Arc::clone(&observe)),
            observe,
        }
    }

    /// Looks over the ports once; whether one had something.
    pub fn pass(&mut self) -> bool {
        self.observe.scan_begun(0);
        let busy = self.poller.pass();
        self.observe.scanned(0, busy);
        busy
    }
}

impl<T: Transport, O> fmt::Debug for Single<T, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Single").finish_non_exhaustive()
    }
}
