//! A service with a C library, and a client that calls it as LLVM's libc does.

use std::fs::{self, File};
use std::io::{PipeWriter, pipe};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rpc_bitmap::{Device, Heap, System};
use rpc_libc::{HostFunctions, Libc, Policy};
use rpc_port::procedure::Increment;
use rpc_port::{Client, DynamicPort, HostWarp, Process, Sink, TeamWarp, Transport, Warp};
use rpc_server::{
    Captured, DeviceMemory, NoMemory, Options, Output, Report, Service, Stream, Table, builtin,
};
use rpc_types::{Geometry, Opcode};

/// A layout over this process's memory.
pub trait Layout: Transport<Shared = Heap<System>> + Send + Sync + 'static {}

impl<T: Transport<Shared = Heap<System>> + Send + Sync + 'static> Layout for T {}

/// Makes a test for each layout of generic functions.
macro_rules! on_all_layouts {
    ($($test:ident),* $(,)?) => {
        $crate::rig::on_all_layouts!(@ line Line: $($test)*);
        $crate::rig::on_all_layouts!(@ compact Compact: $($test)*);
        $crate::rig::on_all_layouts!(@ llvm_22 Llvm22: $($test)*);
        $crate::rig::on_all_layouts!(@ llvm Llvm: $($test)*);
    };
    (@ $name:ident $layout:ident: $($test:ident)*) => {
        mod $name {
            $(#[test] fn $test() {
                super::$test::<rpc_port::$layout<rpc_bitmap::Heap<rpc_bitmap::System>>>();
            })*
        }
    };
}
pub(crate) use on_all_layouts;

pub const SECOND: Duration = Duration::from_secs(1);
/// What has not happened by then does not happen, on a busy machine either.
pub const LIMIT: Duration = Duration::from_secs(100);
/// What C calls so.
pub const EOF: u64 = u64::MAX;
/// The stream words of the standard streams.
pub const STDIN: u64 = 1;
pub const STDOUT: u64 = 2;
pub const STDERR: u64 = 3;

/// A service and what its clients need.
pub struct Rig<T: Layout> {
    pub service: Service,
    transport: T,
    private: Heap<Device>,
    pub output: Arc<Captured>,
    /// The other end of standard input.
    pub stdin: Option<PipeWriter>,
    pub reports: Arc<Mutex<Vec<String>>>,
    pub folder: PathBuf,
}

/// How a [`Rig`] is made.
pub struct Plan {
    pub ports: u32,
    pub options: Options,
    pub output: Option<Arc<dyn Output>>,
    /// In place of a pipe.
    pub stdin: Option<File>,
    pub memory: Arc<dyn DeviceMemory>,
    pub system: bool,
    pub functions: HostFunctions,
}

impl Plan {
    pub fn new(ports: u32) -> Self {
        let options = Options {
            pollers: 1,
            ..Options::default()
        };
        Self {
            ports,
            options,
            output: None,
            stdin: None,
            memory: Arc::new(NoMemory),
            system: false,
            functions: HostFunctions::new(),
        }
    }

    pub fn start<T: Layout>(mut self) -> Rig<T> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Relaxed);
        let name = format!("gpurpc-libc-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir(&folder).unwrap();
        let geometry = Geometry::new(T::KIND, self.ports, 4).unwrap();
        let transport = T::new(Heap::new(geometry.shared_size()), geometry);
        let output = Arc::new(Captured::default());
        let to = self.output.unwrap_or_else(|| output.clone());
        let (reader, writer) = pipe().unwrap();
        let mut policy = Policy::default();
        policy.system = self.system;
        let mut table = Table::new();
        builtin::install(&mut table, to.clone());
        Libc::new()
            .policy(policy)
            .functions(self.functions)
            .stdin(self.stdin.unwrap_or_else(|| OwnedFd::from(reader).into()))
            .install(&mut table, &to);
        let reports = Arc::new(Mutex::new(Vec::new()));
        let said = reports.clone();
        self.options.report = Report::new(move |s| said.lock().unwrap().push(s.to_owned()));
        let service =
            Service::start(transport.clone(), table, self.memory, self.options, ()).unwrap();
        Rig {
            service,
            transport,
            private: Heap::new(geometry.private_size()),
            output,
            stdin: Some(writer),
            reports,
            folder,
        }
    }
}

impl<T: Layout> Drop for Rig<T> {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl<T: Layout> Rig<T> {
    /// What clients and server share.
    pub fn shared(&self) -> &Heap<System> {
        self.transport.shared()
    }

    pub fn client(&self) -> Lone<T> {
        Lone(self.client_of(HostWarp { hint: 0 }))
    }

    fn client_of<W: Warp>(&self, warp: W) -> Client<T, Heap<Device>, W> {
        Client::new(self.transport.clone(), self.private.clone(), warp)
    }

    /// Runs `f` on four lanes of a warp, which take part together.
    pub fn team(&self, f: impl Fn(u32, &Client<T, Heap<Device>, TeamWarp>) + Sync) {
        self.lanes(|warp, client| f(warp.lane(), client));
    }

    /// Runs `f` on four lanes, which say themselves with whom they take part.
    pub fn lanes(&self, f: impl Fn(&TeamWarp, &Client<T, Heap<Device>, TeamWarp>) + Sync) {
        std::thread::scope(|scope| {
            for warp in TeamWarp::team(4, 0) {
                let f = &f;
                scope.spawn(move || f(&warp, &self.client_of(warp.clone())));
            }
        });
    }

    /// A path in this rig's own folder.
    pub fn path(&self, name: &str) -> String {
        self.folder.join(name).to_str().unwrap().to_owned()
    }

    /// What was reported so far.
    pub fn reports(&self) -> Vec<String> {
        assert!(self.service.reported(LIMIT));
        self.reports.lock().unwrap().clone()
    }

    pub fn text(&self, stream: Stream) -> String {
        self.output.text(stream)
    }

    /// Everything works still.
    pub fn is_whole(&self) {
        let client = self.client();
        (0..20).for_each(|n| assert_eq!(client.0.call::<Increment>(&n), Ok(n + 1)));
        assert_eq!(self.service.ended(), None);
    }
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

/// `text` with C's end.
pub fn c(text: impl AsRef<[u8]>) -> Vec<u8> {
    [text.as_ref(), b"\0"].concat()
}

/// Bytes of which each stretch looks different.
pub fn content(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i * 7 + i / 251) as u8).collect()
}

/// The steps of an exchange, as LLVM's client takes them.
pub trait Steps {
    fn put(&mut self, words: [u64; 3]);
    fn put_bytes(&mut self, bytes: &[u8; 64]);
    fn get(&mut self) -> u64;
    fn get_two(&mut self) -> [u64; 2];
    fn put_n(&mut self, message: &[u8]);
    fn get_n(&mut self) -> Vec<u8>;
}

impl<P: Process> Steps for DynamicPort<P> {
    fn put(&mut self, words: [u64; 3]) {
        self.send(24, |_, packet| packet.set(&words)).unwrap();
    }

    fn put_bytes(&mut self, bytes: &[u8; 64]) {
        self.send(64, |_, packet| *packet.bytes_mut() = *bytes)
            .unwrap();
    }

    fn get(&mut self) -> u64 {
        let mut word = 0;
        self.recv(8, |_, packet| word = packet.get()).unwrap();
        word
    }

    fn get_two(&mut self) -> [u64; 2] {
        let mut words = [0; 2];
        self.recv(16, |_, packet| words = packet.get()).unwrap();
        words
    }

    fn put_n(&mut self, message: &[u8]) {
        self.send_n(|_| message).unwrap();
    }

    fn get_n(&mut self) -> Vec<u8> {
        let mut whole = Whole::default();
        self.recv_n(&mut whole).unwrap();
        whole.0
    }
}

/// The opcodes as functions of C, for one lane of any warp.
pub trait Calls {
    fn steps<R>(&self, opcode: Opcode, f: impl FnOnce(&mut dyn Steps) -> R) -> R;

    fn words(&self, opcode: Opcode, words: [u64; 3]) -> u64 {
        self.steps(opcode, |port| {
            port.put(words);
            port.get()
        })
    }

    fn word(&self, opcode: Opcode, word: u64) -> u64 {
        self.words(opcode, [word, 0, 0])
    }

    fn say(&self, opcode: Opcode, message: &[u8]) -> u64 {
        self.steps(opcode, |port| {
            port.put_n(message);
            port.get()
        })
    }

    fn open_raw(&self, path: &[u8], mode: &[u8; 64]) -> u64 {
        self.steps(Opcode::OPEN_FILE, |port| {
            port.put_n(path);
            port.put_bytes(mode);
            port.get()
        })
    }

    fn fopen(&self, path: &str, mode: &str) -> u64 {
        self.open_raw(&c(path), &mode_packet(mode))
    }

    fn fclose(&self, file: u64) -> u64 {
        self.word(Opcode::CLOSE_FILE, file)
    }

    fn fwrite(&self, file: u64, bytes: &[u8]) -> u64 {
        self.steps(Opcode::WRITE_TO_STREAM, |port| {
            port.put([file, 0, 0]);
            port.put_n(bytes);
            port.get()
        })
    }

    fn fread(&self, stream: u64, size: u64) -> Vec<u8> {
        self.steps(Opcode::READ_FROM_STREAM, |port| {
            port.put([size, stream, 0]);
            let bytes = port.get_n();
            assert_eq!(port.get(), bytes.len() as u64);
            bytes
        })
    }

    /// `None` for a null pointer; else without the NUL.
    fn fgets(&self, stream: u64, count: u64) -> Option<Vec<u8>> {
        self.steps(Opcode::READ_FGETS, |port| {
            port.put([count, stream, 0]);
            let mut line = port.get_n();
            let end = line.pop()?;
            assert_eq!(end, 0);
            Some(line)
        })
    }

    fn fseek(&self, stream: u64, offset: i64, whence: u64) -> u64 {
        self.words(Opcode::FSEEK, [stream, offset as u64, whence])
    }

    fn ftell(&self, stream: u64) -> u64 {
        self.word(Opcode::FTELL, stream)
    }

    fn fflush(&self, stream: u64) -> u64 {
        self.word(Opcode::FFLUSH, stream)
    }

    fn ungetc(&self, character: i32, stream: u64) -> u64 {
        self.words(Opcode::UNGETC, [character as u64, stream, 0])
    }

    /// End and error.
    fn flags(&self, stream: u64) -> (bool, bool) {
        let flag = |opcode| self.word(opcode, stream) != 0;
        (flag(Opcode::FEOF), flag(Opcode::FERROR))
    }
}

impl<T: Layout, W: Warp> Calls for Client<T, Heap<Device>, W> {
    fn steps<R>(&self, opcode: Opcode, f: impl FnOnce(&mut dyn Steps) -> R) -> R {
        f(&mut self.open(opcode).unwrap().dynamic())
    }
}

/// The client of one thread that is a warp by itself.
pub struct Lone<T: Layout>(pub Client<T, Heap<Device>, HostWarp>);

impl<T: Layout> Calls for Lone<T> {
    fn steps<R>(&self, opcode: Opcode, f: impl FnOnce(&mut dyn Steps) -> R) -> R {
        self.0.steps(opcode, f)
    }
}

impl<T: Layout> Lone<T> {
    /// An `fopen` that has been asked for: what is left is to `get` its answer. One thread waits so
    /// for any number of them, and takes no processor from what is to go on beside them.
    pub fn opening<'c>(&'c self, path: &str, mode: &str) -> impl Steps + use<'c, T> {
        let mut port = self.0.open(Opcode::OPEN_FILE).unwrap().dynamic();
        port.put_n(&c(path));
        port.put_bytes(&mode_packet(mode));
        port
    }
}

/// A mode as its packet.
fn mode_packet(mode: &str) -> [u8; 64] {
    let mut packet = [0; 64];
    packet[..mode.len()].copy_from_slice(mode.as_bytes());
    packet
}

/// Waits until `condition` holds.
pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let limit = Instant::now() + LIMIT;
    while !condition() {
        assert!(Instant::now() < limit, "{what} does not happen");
        std::thread::sleep(Duration::from_micros(200));
    }
}
