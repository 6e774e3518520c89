//! The server that others have: one thread that looks at all ports in turn and answers, for ever.
//!
//! It serves increments, no-ops and what the benchmark's kernels need besides, over the same memory
//! as the server that is measured.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};

use loader_core::device::Device;
use loader_core::serve::Region;
use rpc_bitmap::{Device as DeviceScope, Heap};
use rpc_port::{Compact, First, Line, Llvm, Llvm22, Server, Transport};
use rpc_types::{LayoutKind, Opcode, Status};

/// The thread.
pub(crate) struct Busy {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Busy {
    /// Starts it over `region` of `device`.
    pub(crate) fn start(device: &Arc<dyn Device>, region: Region) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (device, stopped) = (Arc::clone(device), Arc::clone(&stop));
        let geometry = region.geometry();
        let serve = move || {
            // SAFETY: this thread keeps the device, and nobody else serves the region.
            let memory = unsafe { region.memory() };
            match geometry.layout {
                LayoutKind::Line => serve(Line::new(memory, geometry), &stopped),
                LayoutKind::Compact => serve(Compact::new(memory, geometry), &stopped),
                LayoutKind::Llvm22 => serve(Llvm22::new(memory, geometry), &stopped),
                LayoutKind::Llvm => serve(Llvm::new(memory, geometry), &stopped),
                LayoutKind::First => serve(First::new(memory, geometry), &stopped),
            }
            drop(device);
        };
        Self {
            stop,
            thread: Some(thread::spawn(serve)),
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            // One that has panicked has said so.
            let _ = thread.join();
        }
    }
}

fn serve<T: Transport>(transport: T, stop: &AtomicBool) {
    let ports = transport.geometry().total_ports();
    let locks = Heap::<DeviceScope>::new(Server::<T, Heap<DeviceScope>>::memory_size(&transport));
    let server = Server::new(transport, locks);
    while !stop.load(Relaxed) {
        for port in 0..ports {
            let Some(opened) = server.try_open(port) else {
                continue;
            };
            let mut port = opened.dynamic();
            match port.opcode() {
                Opcode::TEST_INCREMENT => {
                    // Only a client that has gone away makes this fail.
                    let _ = port.recv_and_send(8, |_, packet| {
                        packet.words[0] = packet.words[0].wrapping_add(1);
                    });
                }
                Opcode::NOOP => {}
                _ => drop(port.end(Status::UNHANDLED)),
            }
        }
    }
}
