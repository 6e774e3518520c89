//! Models of open, post, wait and close, for
//! `RUSTFLAGS="--cfg loom" cargo test --release -p rpc-port --test loom`.
//!
//! Every access goes through [`Model`], where packets are cells that loom checks: a missing fence
//! or a port with two holders fails the model.
#![cfg(loom)]

use loom::model::Builder;
use loom::thread;
use rpc_bitmap::model::Model;
use rpc_bitmap::{Device, System};
use rpc_port::procedure::Increment;
use rpc_port::{Client, Compact, HostWarp, Line, Procedure, Server, Transport};
use rpc_types::layout::request;
use rpc_types::{Geometry, LayoutKind, Opcode, Packet};

/// Both sides of `ports` ports, one lane each, with the cells that a call uses.
struct Link<T> {
    transport: T,
    private: Model<Device>,
    locks: Model<Device>,
}

impl<T: Transport<Shared = Model<System>>> Link<T> {
    fn new(ports: u32) -> Self {
        let geometry = Geometry::new(T::KIND, ports, 1).unwrap();
        let each = |f: &dyn Fn(usize) -> usize| (0..ports as usize).map(f).collect::<Vec<_>>();
        let mut words = vec![Geometry::STOP];
        let mut doubles = Vec::new();
        let mut plain = each(&|port| geometry.packet(port as u32, 0));
        match T::KIND {
            LayoutKind::Line => {
                for field in [request::SEQUENCE, request::OPCODE, request::OPENED] {
                    words.extend(each(&|port| geometry.requests() + port * 64 + field));
                }
                doubles.extend(each(&|port| {
                    geometry.requests() + port * 64 + request::MASK
                }));
                doubles.extend(each(&|port| geometry.replies() + port * 32));
            }
            LayoutKind::Compact => {
                words.extend([geometry.requests(), geometry.replies()]);
                words.extend(each(&|port| geometry.statuses() + port * 4));
                words.extend(each(&|port| geometry.openings() + port * 4));
                doubles.extend(each(&|port| geometry.masks() + port * 8));
                // The opcode lies in the packet's last word.
                plain.extend(each(&|port| geometry.packet(port as u32, 0) + 56));
            }
        }
        let mut private = each(&|port| geometry.states() + port * 8);
        private.extend(each(&|port| geometry.holders() + port * 8));
        Self {
            transport: T::new(Model::new(&words, &doubles, &plain), geometry),
            private: Model::new(&[geometry.locks(), geometry.in_flight()], &private, &[]),
            locks: Model::new(&[0], &[], &[]),
        }
    }

    fn client(&self, hint: u32) -> Client<T, Model<Device>, HostWarp> {
        Client::new(
            self.transport.clone(),
            self.private.clone(),
            HostWarp { hint },
        )
    }

    /// Looks at each port once and adds one to what is asked.
    fn serve(&self) {
        let server = Server::new(self.transport.clone(), self.locks.clone());
        for port in 0..self.transport.geometry().ports {
            if let Some(opened) = server.try_open(port) {
                assert_eq!(opened.opcode(), Increment::OPCODE);
                let add = |_: u32, packet: &mut Packet| packet.words[0] += 1;
                opened.dynamic().recv_and_send(8, add).unwrap();
            }
        }
    }

    /// One call, without waiting: if the answer is not there it is closed as an asynchronous one.
    fn call(&self, hint: u32, value: u64) {
        let client = self.client(hint);
        let Some(opened) = client.try_open(Opcode::TEST_INCREMENT) else {
            return;
        };
        let mut port = opened.dynamic();
        port.send(8, |_, packet| packet.words[0] = value).unwrap();
        // Without this loom does not find the runs in which the server answers in between.
        thread::yield_now();
        if port.poll_own().unwrap() {
            port.end_recv(8, |_, packet| assert_eq!(packet.words[0], value + 1));
        }
    }
}

impl<T: Clone> Clone for Link<T> {
    fn clone(&self) -> Self {
        let (transport, private) = (self.transport.clone(), self.private.clone());
        Self {
            transport,
            private,
            locks: self.locks.clone(),
        }
    }
}

/// Waits are not modelled: a wait that goes on is a poll that did not succeed, and loom tries every
/// moment for the poll. After the threads have ended, each port must still work.
fn model<T>(ports: u32, calls: u32)
where
    T: Transport<Shared = Model<System>> + Send + Sync + 'static,
{
    let mut builder = Builder::new();
    builder.preemption_bound = Some(builder.preemption_bound.unwrap_or(2));
    builder.check(move || {
        let link = Link::<T>::new(ports);
        let clients: Vec<_> = (0..2)
            .map(|hint| {
                let link = link.clone();
                thread::spawn(move || {
                    for call in 0..calls {
                        link.call(hint, u64::from(hint * 100 + call));
                    }
                })
            })
            .collect();
        link.serve();
        for client in clients {
            client.join().unwrap();
        }
        link.serve();
        for port in 0..ports {
            link.call(port, 7);
            link.serve();
        }
        assert!(
            link.client(0).try_open(Opcode::NOOP).is_some(),
            "no port was lost"
        );
    });
}

#[test]
fn line_two_ports() {
    model::<Line<Model<System>>>(2, 1);
}

#[test]
fn line_one_port() {
    model::<Line<Model<System>>>(1, 1);
}

#[test]
fn compact_two_ports() {
    model::<Compact<Model<System>>>(2, 1);
}

#[test]
fn compact_one_port() {
    model::<Compact<Model<System>>>(1, 1);
}

/// One client calls twice in a row over one port: the second finds the first still under way, or
/// answered, or not looked at.
#[test]
fn line_call_after_call() {
    model::<Line<Model<System>>>(1, 2);
}

/// A conversation of two sends: the server takes the packet again in the middle of a call, where it
/// does not open the port but waits for it.
fn two_sends<T>()
where
    T: Transport<Shared = Model<System>> + Send + Sync + 'static,
{
    let mut builder = Builder::new();
    builder.preemption_bound = Some(builder.preemption_bound.unwrap_or(2));
    builder.check(|| {
        let link = Link::<T>::new(1);
        let device = thread::spawn({
            let link = link.clone();
            move || {
                let client = link.client(0);
                let mut port = client.try_open(Opcode::NOOP).unwrap().dynamic();
                port.send(8, |_, packet| packet.words[0] = 1).unwrap();
                thread::yield_now();
                if port.poll_own().unwrap() {
                    port.end_send(8, |_, packet| packet.words[0] = 2);
                }
            }
        });
        let server = Server::new(link.transport.clone(), link.locks.clone());
        thread::yield_now();
        if let Some(opened) = server.try_open(0) {
            let mut port = opened.dynamic();
            port.recv(8, |_, packet| assert_eq!(packet.words[0], 1))
                .unwrap();
            port.begin_recv().unwrap();
            thread::yield_now();
            if port.poll_own().unwrap() {
                port.end_recv(8, |_, packet| assert_eq!(packet.words[0], 2));
            }
        }
        device.join().unwrap();
    });
}

#[test]
fn line_two_sends() {
    two_sends::<Line<Model<System>>>();
}

#[test]
fn compact_two_sends() {
    two_sends::<Compact<Model<System>>>();
}
