//! A client and a server of any layout over memory of this process.
#![allow(dead_code, missing_docs, unreachable_pub)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rpc_bitmap::{Device, Heap, System};
use rpc_port::{Client, DynamicPort, Error, HostWarp, Server, Sink, TeamWarp, Transport};
use rpc_types::Geometry;

pub type Memory = Heap<System>;
pub type TestServer<T> = Server<T, Heap<Device>>;
pub type TestClient<T, W> = Client<T, Heap<Device>, W>;

/// Both sides' memory.
pub struct Link<T> {
    pub transport: T,
    pub private: Heap<Device>,
    locks: Heap<Device>,
}

impl<T: Transport<Shared = Memory>> Link<T> {
    pub fn new(ports: u32, lanes: u32) -> Self {
        let geometry = Geometry::new(T::KIND, ports, lanes).expect("a possible geometry");
        let transport = T::new(Heap::new(geometry.shared_size()), geometry);
        let locks = Heap::new(Server::<T, Heap<Device>>::memory_size(&transport));
        Self {
            transport,
            private: Heap::new(geometry.private_size()),
            locks,
        }
    }

    pub fn client(&self, hint: u32) -> TestClient<T, HostWarp> {
        Client::new(
            self.transport.clone(),
            self.private.clone(),
            HostWarp { hint },
        )
    }

    pub fn lane(&self, lane: TeamWarp) -> TestClient<T, TeamWarp> {
        Client::new(self.transport.clone(), self.private.clone(), lane)
    }

    pub fn server(&self) -> TestServer<T> {
        Server::new(self.transport.clone(), self.locks.clone())
    }
}

impl<T: Transport<Shared = Memory> + Send + Sync> Link<T> {
    /// Runs `device` while a server thread gives each request to `serve`.
    pub fn serve<R: Send>(
        &self,
        serve: impl Fn(DynamicPort<&TestServer<T>>) -> Result<(), Error> + Sync,
        device: impl FnOnce() -> R + Send,
    ) -> R {
        let done = AtomicBool::new(false);
        let server = self.server();
        let pass = || {
            let mut served = false;
            for port in 0..self.transport.geometry().total_ports() {
                if let Some(opened) = server.try_open(port) {
                    // An error ends that conversation only.
                    let _ = serve(opened.dynamic());
                    served = true;
                }
            }
            served
        };
        thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Acquire) {
                    if !pass() {
                        thread::yield_now();
                    }
                }
                // What was posted asynchronously at the end.
                while pass() {}
            });
            // A failed check on the device's side must end the server too.
            let end = End(&done, self);
            let result = device();
            drop(end);
            result
        })
    }
}

struct End<'a, T: Transport>(&'a AtomicBool, &'a Link<T>);

impl<T: Transport> Drop for End<'_, T> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.1.transport.stop();
        }
        self.0.store(true, Ordering::Release);
    }
}

/// Every lane's whole message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collect(pub std::collections::BTreeMap<u32, Vec<u8>>);

impl Sink for Collect {
    fn begin(&mut self, lane: u32, length: u64) -> bool {
        self.0.insert(lane, Vec::new());
        length < 1 << 20
    }

    fn chunk(&mut self, lane: u32, bytes: &[u8]) {
        self.0
            .get_mut(&lane)
            .expect("begun")
            .extend_from_slice(bytes);
    }
}
