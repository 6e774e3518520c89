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
use rpc_port::stream::Prefix;
use rpc_port::transport::{LineOf, Room};
use rpc_port::{Client, Compact, HostWarp, Line, Llvm, Server, Transport};
use rpc_types::layout::request;
use rpc_types::{Geometry, LayoutKind, Opcode};

/// Bytes of a message that travels in a word where the layout has any, and of one that has a tail word
/// too.
const SHORT: usize = 8;
const LONG: usize = 16;
/// A message of `SHORT` bytes that goes as a stream does, in packets whatever the layout.
const STREAM: usize = 0;
/// A message of `SHORT` bytes with an opcode that has no 16-bit form.
const FAR: usize = SHORT + 1;

/// Asked with `LONG` bytes.
const PAIR: Opcode = Opcode::user(1);
/// Asked with `FAR`, otherwise as an increment.
const LONG_OPCODE: Opcode = Opcode(0x1234_5678);

/// Both sides of `ports` ports, one lane each, with the cells that a call uses.
struct Link<T> {
    transport: T,
    private: Model<Device>,
    memory: Model<Device>,
}

/// Which cells there are.
trait Cells: Transport<Shared = Model<System>> {
    /// Whether the layout has words of 16 bytes.
    const WORDS: bool;
}

impl<const WORDS: bool> Cells for LineOf<Model<System>, WORDS> {
    const WORDS: bool = WORDS;
}

impl Cells for Compact<Model<System>> {
    const WORDS: bool = false;
}

impl Cells for Llvm<Model<System>> {
    const WORDS: bool = false;
}

/// `Line` where 16 bytes are not read in one access.
type Plain = LineOf<Model<System>, false>;

impl<T: Cells> Link<T> {
    fn new(ports: u32) -> Self {
        let geometry = Geometry::new(T::KIND, ports, 1).unwrap();
        let each = |f: &dyn Fn(u32) -> usize| (0..ports).map(f).collect::<Vec<_>>();
        let mut words = vec![geometry.stop()];
        if T::ANNOUNCES {
            words.push(geometry.summary(0));
        }
        let (mut doubles, mut words16) = (Vec::new(), Vec::new());
        let packet = |port| {
            (0..64)
                .step_by(8)
                .map(move |at| geometry.packet(port, 0) + at)
        };
        let mut plain: Vec<_> = (0..ports).flat_map(packet).collect();
        match T::KIND {
            LayoutKind::Line if T::WORDS => {
                words.extend(each(&|port| geometry.request(port) + request::OPCODE));
                words16.extend(each(&|port| geometry.request(port)));
                words16.extend(each(&|port| geometry.request_word(port, 0)));
                words16.extend(each(&|port| geometry.reply_word(port, 0)));
                words16.extend(each(&|port| geometry.request_tail(port, 0)));
                words16.extend(each(&|port| geometry.reply_tail(port, 0)));
            }
            LayoutKind::Line => {
                words.extend(each(&|port| geometry.request(port)));
                words.extend(each(&|port| geometry.request(port) + 4));
                doubles.extend(each(&|port| geometry.request(port) + 8));
                doubles.extend(each(&|port| geometry.reply_word(port, 0)));
            }
            LayoutKind::Compact => {
                words.extend([geometry.requests(), geometry.replies()]);
                words.extend(each(&|port| geometry.statuses() + port as usize * 4));
                words.extend(each(&|port| geometry.openings() + port as usize * 4));
                doubles.extend(each(&|port| geometry.masks() + port as usize * 8));
            }
            LayoutKind::First => unreachable!("no client of ours has it"),
            LayoutKind::Llvm22 | LayoutKind::Llvm => {
                words.extend(each(&|port| geometry.requests() + port as usize * 4));
                words.extend(each(&|port| geometry.replies() + port as usize * 4));
                plain.extend(each(&|port| geometry.headers() + port as usize * 16));
                plain.extend(each(&|port| geometry.headers() + port as usize * 16 + 8));
            }
        }
        let mut private = each(&|port| geometry.state(port));
        private.extend(each(&|port| geometry.holders(port)));
        let shared = Model::with_words16(&words, &doubles, &plain, &words16);
        let transport = T::new(shared, geometry);
        let size = Server::<T, Model<Device>>::memory_size(&transport);
        let memory: Vec<_> = (0..size).step_by(4).collect();
        Self {
            transport,
            private: Model::new(&[geometry.busy(), geometry.in_flight()], &private, &[]),
            memory: Model::new(&memory, &[], &[]),
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
        let server = Server::new(self.transport.clone(), self.memory.clone());
        let mut room = Room::EMPTY;
        for port in 0..self.transport.geometry().ports {
            let Some(mut port) = server.try_open_alone(port, &mut room) else {
                continue;
            };
            match port.opcode() {
                Opcode::TEST_INCREMENT | LONG_OPCODE => {
                    let mut value = 0;
                    port.recv(SHORT, |_, packet| value = packet.words[0])
                        .unwrap();
                    port.send(SHORT, |_, packet| packet.words[0] = value + 1)
                        .unwrap();
                }
                PAIR => {
                    let answered = port.answer_packets(LONG, LONG, &mut room, |_, packet| {
                        assert_eq!(packet.words[1], !packet.words[0]);
                        packet.words[0] += 1;
                        true
                    });
                    assert!(answered);
                }
                Opcode::TEST_STREAM => {
                    let mut value = [0; 8];
                    port.recv_n(&mut Prefix::new(&mut value)).unwrap();
                    let value = u64::from_le_bytes(value);
                    port.send(LONG, |_, packet| {
                        packet.words = [value + 1, !value, 0, 0, 0, 0, 0, 0]
                    })
                    .unwrap();
                }
                other => panic!("nobody has asked for {other}"),
            }
        }
    }

    /// One call, without waiting: if the answer is not there it is closed as an asynchronous one.
    fn call(&self, hint: u32, value: u64, bytes: usize) {
        let client = self.client(hint);
        let opcode = match bytes {
            LONG => PAIR,
            STREAM => Opcode::TEST_STREAM,
            FAR => LONG_OPCODE,
            _ => Opcode::TEST_INCREMENT,
        };
        let Some(opened) = client.try_open(opcode) else {
            return;
        };
        let mut port = opened.dynamic();
        if bytes == STREAM {
            let message = value.to_le_bytes();
            port.send_n(|_| &message).unwrap();
        } else {
            let bytes = if bytes == FAR { SHORT } else { bytes };
            port.send(bytes, |_, packet| {
                packet.words[0] = value;
                packet.words[1] = !value;
            })
            .unwrap();
        }
        // Without this loom does not find the runs in which the server answers in between.
        thread::yield_now();
        if port.poll_own().unwrap() {
            port.end_recv(LONG, |_, packet| {
                assert_eq!(packet.words[0], value + 1);
                assert!(bytes == SHORT || bytes == FAR || packet.words[1] == !value);
            });
        }
    }
}

impl<T: Clone> Clone for Link<T> {
    fn clone(&self) -> Self {
        let (transport, private) = (self.transport.clone(), self.private.clone());
        Self {
            transport,
            private,
            memory: self.memory.clone(),
        }
    }
}

/// Each of two clients makes calls of these sizes over `ports` ports.
///
/// Waits are not modelled: a wait that goes on is a poll that did not succeed, and loom tries every
/// moment for the poll. After the threads have ended, each port must still work.
fn model<T: Cells + Send + Sync + 'static>(ports: u32, sizes: [&'static [usize]; 2]) {
    let mut builder = Builder::new();
    let bound = builder.preemption_bound.unwrap_or(2);
    // Three calls at a bound of 3 take many minutes.
    let calls = sizes.iter().map(|sizes| sizes.len()).sum::<usize>();
    builder.preemption_bound = Some(if calls > 2 { bound.min(2) } else { bound });
    builder.check(move || {
        let link = Link::<T>::new(ports);
        let clients: Vec<_> = (0..2)
            .map(|hint| {
                let link = link.clone();
                thread::spawn(move || {
                    for (call, bytes) in sizes[hint as usize].iter().enumerate() {
                        link.call(hint, u64::from(hint) * 100 + call as u64, *bytes);
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
            link.call(port, 7, STREAM);
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
    model::<Line<Model<System>>>(2, [&[SHORT], &[LONG]]);
}

#[test]
fn line_one_port_short() {
    model::<Line<Model<System>>>(1, [&[SHORT], &[SHORT]]);
}

#[test]
fn line_one_port_long_opcode() {
    model::<Line<Model<System>>>(1, [&[FAR], &[FAR]]);
}

#[test]
fn line_one_port_long() {
    model::<Line<Model<System>>>(1, [&[LONG], &[LONG]]);
}

#[test]
fn line_one_port_packets() {
    model::<Line<Model<System>>>(1, [&[STREAM], &[STREAM]]);
}

/// A short call between long ones hands on what the first of them released.
#[test]
fn line_one_port_mixed() {
    model::<Line<Model<System>>>(1, [&[STREAM, SHORT], &[STREAM]]);
}

#[test]
fn plain_one_port() {
    model::<Plain>(1, [&[SHORT], &[LONG]]);
}

#[test]
fn compact_two_ports() {
    model::<Compact<Model<System>>>(2, [&[SHORT], &[SHORT]]);
}

#[test]
fn compact_one_port() {
    model::<Compact<Model<System>>>(1, [&[SHORT], &[SHORT]]);
}

#[test]
fn llvm_two_ports() {
    model::<Llvm<Model<System>>>(2, [&[SHORT], &[SHORT]]);
}

#[test]
fn llvm_one_port() {
    model::<Llvm<Model<System>>>(1, [&[SHORT], &[SHORT]]);
}

/// One client calls twice in a row over one port: the second finds the first still under way, or
/// answered, or not looked at.
#[test]
fn line_call_after_call() {
    model::<Line<Model<System>>>(1, [&[LONG, STREAM], &[SHORT]]);
}

/// As [`line_call_after_call`]. A mailbox is a bit: a look at what it was two turns ago would see the
/// answer to a call that nobody has looked at.
#[test]
fn compact_call_after_call() {
    model::<Compact<Model<System>>>(1, [&[SHORT, SHORT], &[SHORT]]);
}

#[test]
fn llvm_call_after_call() {
    model::<Llvm<Model<System>>>(1, [&[SHORT, SHORT], &[SHORT]]);
}

/// A conversation of two sends: the server takes the packet again in the middle of a call, where it
/// does not open the port but waits for it.
fn two_sends<T: Cells + Send + Sync + 'static>(bytes: usize) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(builder.preemption_bound.unwrap_or(2));
    builder.check(move || {
        let link = Link::<T>::new(1);
        let device = thread::spawn({
            let link = link.clone();
            move || {
                let client = link.client(0);
                let mut port = client.try_open(Opcode::NOOP).unwrap().dynamic();
                port.send(bytes, |_, packet| packet.words[0] = 1).unwrap();
                thread::yield_now();
                if port.poll_own().unwrap() {
                    port.end_send(bytes, |_, packet| packet.words[0] = 2);
                }
            }
        });
        let server = Server::new(link.transport.clone(), link.memory.clone());
        thread::yield_now();
        if let Some(opened) = server.try_open(0) {
            let mut port = opened.dynamic();
            port.recv(bytes, |_, packet| assert_eq!(packet.words[0], 1))
                .unwrap();
            port.begin_recv().unwrap();
            thread::yield_now();
            if port.poll_own().unwrap() {
                port.end_recv(bytes, |_, packet| assert_eq!(packet.words[0], 2));
            }
        }
        device.join().unwrap();
    });
}

#[test]
fn line_two_sends() {
    two_sends::<Line<Model<System>>>(LONG);
}

#[test]
fn line_two_short_sends() {
    two_sends::<Line<Model<System>>>(SHORT);
}

#[test]
fn compact_two_sends() {
    two_sends::<Compact<Model<System>>>(SHORT);
}

#[test]
fn llvm_two_sends() {
    two_sends::<Llvm<Model<System>>>(SHORT);
}
