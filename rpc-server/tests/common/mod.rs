//! A service over memory of this process, with host threads as its clients.
#![allow(
    unused_macros,
    unused_imports,
    dead_code,
    unreachable_pub,
    reason = "each test program uses a part"
)]

pub mod lab;
pub mod site;

use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rpc_bitmap::{Device, Heap, System};
use rpc_port::{Client, Error, HostWarp, Sink, TeamWarp, Transport, Warp};
use rpc_server::{
    Captured, DeviceMemory, NoMemory, Observe, Options, Output, Poll, Report, Service, Stream,
    Table, builtin,
};
use rpc_types::{Geometry, Opcode};

/// A layout over this process's memory.
pub trait Layout: Transport<Shared = Heap<System>> + Send + Sync + 'static {}

impl<T: Transport<Shared = Heap<System>> + Send + Sync + 'static> Layout for T {}

/// Makes a test for each layout of generic functions.
macro_rules! on_both_layouts {
    ($($test:ident),* $(,)?) => {
        mod line {
            $(#[test] fn $test() { super::$test::<rpc_port::Line<rpc_bitmap::Heap<rpc_bitmap::System>>>(); })*
        }
        mod compact {
            $(#[test] fn $test() { super::$test::<rpc_port::Compact<rpc_bitmap::Heap<rpc_bitmap::System>>>(); })*
        }
    };
}
pub(crate) use on_both_layouts;

/// Of these, the tests in which no call fails, for the layouts of LLVM's libc.
macro_rules! on_llvm_layouts {
    ($($test:ident),* $(,)?) => {
        mod llvm_22 {
            $(#[test] fn $test() { super::$test::<rpc_port::Llvm22<rpc_bitmap::Heap<rpc_bitmap::System>>>(); })*
        }
        mod llvm {
            $(#[test] fn $test() { super::$test::<rpc_port::Llvm<rpc_bitmap::Heap<rpc_bitmap::System>>>(); })*
        }
    };
}
pub(crate) use on_llvm_layouts;

/// Long enough for everything.
/// What has not happened by then does not happen, on a busy machine either.
pub const LIMIT: Duration = Duration::from_secs(100);

/// The client of one host thread.
pub type ThreadClient<T> = Client<T, Heap<Device>, HostWarp>;

/// A service and what its clients need.
pub struct Rig<T: Layout> {
    pub service: Service,
    pub transport: T,
    pub private: Heap<Device>,
    pub output: Arc<Captured>,
    pub reports: Arc<Mutex<Vec<String>>>,
}

/// How a [`Rig`] is made.
pub struct Plan {
    pub ports: u32,
    pub lanes: u32,
    pub options: Options,
    pub output: Option<Arc<dyn Output>>,
    pub memory: Arc<dyn DeviceMemory>,
    pub table: Table,
    /// Held while a report is made.
    pub reader: Arc<Mutex<()>>,
}

impl Plan {
    pub fn new(ports: u32) -> Self {
        Self {
            ports,
            lanes: 4,
            options: Options {
                pollers: 2,
                poll: Poll::Adaptive,
                ..Options::default()
            },
            output: None,
            memory: Arc::new(NoMemory),
            table: Table::new(),
            reader: Arc::default(),
        }
    }

    pub fn start<T: Layout>(self) -> Rig<T> {
        self.start_observed(())
    }

    pub fn start_observed<T: Layout>(mut self, observe: impl Observe) -> Rig<T> {
        let geometry = Geometry::new(T::KIND, self.ports, self.lanes).unwrap();
        let transport = T::new(Heap::new(geometry.shared_size()), geometry);
        let output = Arc::new(Captured::default());
        let to = self
            .output
            .unwrap_or_else(|| Arc::clone(&output) as Arc<dyn Output>);
        let mut own = Table::new();
        std::mem::swap(&mut own, &mut self.table);
        builtin::install(&mut own, to);
        let reports = Arc::new(Mutex::new(Vec::new()));
        let said = Arc::clone(&reports);
        let reader = self.reader;
        self.options.report = Report::new(move |sentence| {
            let _reader = reader.lock().unwrap();
            said.lock().unwrap().push(sentence.to_owned());
        });
        let service =
            Service::start(transport.clone(), own, self.memory, self.options, observe).unwrap();
        let private = Heap::new(geometry.private_size());
        Rig {
            service,
            transport,
            private,
            output,
            reports,
        }
    }
}

impl<T: Layout> Rig<T> {
    pub fn client(&self, hint: u32) -> ThreadClient<T> {
        self.client_of(HostWarp { hint })
    }

    pub fn client_of<W: Warp>(&self, warp: W) -> Client<T, Heap<Device>, W> {
        Client::new(self.transport.clone(), self.private.clone(), warp)
    }

    /// Runs `f` on every lane of a warp.
    pub fn team(&self, lanes: u32, f: impl Fn(u32, &Client<T, Heap<Device>, TeamWarp>) + Sync) {
        std::thread::scope(|scope| {
            for warp in TeamWarp::team(lanes, 0) {
                let f = &f;
                scope.spawn(move || f(warp.lane(), &self.client_of(warp.clone())));
            }
        });
    }

    pub fn stdout(&self) -> String {
        self.output.text(Stream::Stdout)
    }

    pub fn reports(&self) -> Vec<String> {
        assert!(self.service.reported(LIMIT));
        self.reports.lock().unwrap().clone()
    }
}

/// Sends a message and receives a `u64`, as printing does.
pub fn say<T: Layout>(client: &ThreadClient<T>, opcode: Opcode, text: &[u8]) -> Result<u64, Error> {
    let mut port = client.open(opcode)?.dynamic();
    port.send_n(|_| text)?;
    let mut count = 0;
    port.recv(8, |_, packet| count = packet.get())?;
    Ok(count)
}

/// A message of any length.
#[derive(Default)]
pub struct Whole(pub Vec<u8>);

impl Sink for Whole {
    fn begin(&mut self, _: u32, _: u64) -> bool {
        true
    }

    fn chunk(&mut self, _: u32, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }
}

/// Waits until `condition` holds.
pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let limit = Instant::now() + LIMIT;
    while !condition() {
        assert!(Instant::now() < limit, "{what} does not happen");
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// Output whose reader has gone away.
pub struct Broken;

impl Output for Broken {
    fn stdout(&self, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn stderr(&self, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::BrokenPipe.into())
    }
}
