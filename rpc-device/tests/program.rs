//! What a program sees of its host, with the client and the entry point of the CPU device and a
//! server in this process. Each test is a program of its own: one client, one run.
#![allow(missing_docs)]

use std::ffi::CString;
use std::fmt;
use std::ptr::null;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rpc_bitmap::{Device, Heap, Raw, System};
use rpc_device::client::{__gpurpc_client, Layout};
use rpc_device::entry::{CpuThread, begin, start};
use rpc_device::{Program, eprint, eprintln, exit, grid, print, println};
use rpc_port::Transport;
use rpc_server::{Captured, End, NoMemory, Options, Report, Service, Stream, Table, builtin};
use rpc_types::{ClientDescriptor, Geometry};

/// The client is one for the whole image.
static IMAGE: Mutex<()> = Mutex::new(());

/// A host for one run.
struct Host {
    service: Service,
    output: Arc<Captured>,
    _memory: (Heap<System>, Heap<Device>),
    _image: MutexGuard<'static, ()>,
}

impl Host {
    fn new() -> Self {
        let image = IMAGE.lock().unwrap_or_else(PoisonError::into_inner);
        let geometry = Geometry::new(Layout::KIND, 4, 1).unwrap();
        let shared = Heap::<System>::new(geometry.shared_size());
        let private = Heap::<Device>::new(geometry.private_size());
        let client = ClientDescriptor {
            ports: geometry.ports,
            lanes: geometry.lanes,
            shared: shared.as_ptr() as u64,
            private: private.as_ptr() as u64,
            ..ClientDescriptor::new(Layout::KIND, 0)
        };
        // SAFETY: no device thread runs: they hold the image's lock by their host.
        unsafe { (&raw mut __gpurpc_client).write(client) };
        // SAFETY: the region lives as long as the host, which outlives the service; it is accessed
        // through handles only.
        let region = unsafe { Raw::<System>::new(shared.as_ptr(), geometry.shared_size()) };
        let output = Arc::new(Captured::default());
        let mut table = Table::new();
        builtin::install(&mut table, output.clone());
        let options = Options {
            report: Report::new(|_| ()),
            ..Options::default()
        };
        let transport = Layout::new(region, geometry);
        let service = Service::start(transport, table, Arc::new(NoMemory), options, ()).unwrap();
        begin();
        Self {
            service,
            output,
            _memory: (shared, private),
            _image: image,
        }
    }

    /// Runs `main` on so many threads; what they return, or-ed, once all have ended.
    fn run(&self, threads: u32, arguments: &[&[u8]], main: fn(&Program) -> i32) -> i32 {
        let strings: Vec<_> = arguments
            .iter()
            .map(|text| CString::new(*text).unwrap())
            .collect();
        let variables = [c"FRANCE=Paris", c"FRANCE2=x", c"EMPTY="];
        let ret = std::sync::atomic::AtomicI32::new(0);
        thread::scope(|scope| {
            for index in 0..threads {
                let (strings, ret) = (&strings, &ret);
                scope.spawn(move || {
                    let argv: Vec<_> = strings
                        .iter()
                        .map(|text| text.as_ptr().cast::<u8>())
                        .collect();
                    let mut envp: Vec<_> = variables
                        .iter()
                        .map(|text| text.as_ptr().cast::<u8>())
                        .collect();
                    envp.push(null());
                    let me = CpuThread {
                        block: [0; 3],
                        thread: [index, 0, 0],
                        blocks: [1; 3],
                        threads: [threads, 1, 1],
                    };
                    let count = argv.len() as i32;
                    // SAFETY: the arrays are as the image ABI has them and outlive the call.
                    unsafe {
                        start(
                            count,
                            argv.as_ptr(),
                            envp.as_ptr(),
                            ret.as_ptr(),
                            &raw const me,
                            main,
                        );
                    }
                });
            }
            // A run that is over ends the threads that wait.
            if self
                .service
                .wait(Duration::from_millis(if threads > 1 { 2000 } else { 0 }))
                .is_some()
            {
                self.service.stop_device();
            }
        });
        let _ = self.service.drain(Duration::from_secs(1));
        ret.into_inner()
    }

    fn said(&self, stream: Stream) -> String {
        self.output.text(stream)
    }
}

#[test]
fn arguments_and_environment() {
    let host = Host::new();
    let result = host.run(1, &[b"image", b"12", b"a\xFFb"], |program| {
        assert_eq!(program.args().len(), 3);
        assert_eq!(program.arg(1).unwrap().parse::<u8>(), Some(12));
        assert_eq!(program.arg(2).unwrap().parse::<u8>(), None);
        assert_eq!(program.arg(3), None);
        println!("{} {:?}", program.arg(2).unwrap(), program.arg(2).unwrap());
        println!("{}", program.var("FRANCE").unwrap());
        assert_eq!(program.var("EMPTY").unwrap().as_bytes(), b"");
        assert_eq!(program.var("FRANC"), None);
        program.vars().count() as i32
    });
    assert_eq!(host.said(Stream::Stdout), "a\u{FFFD}b \"a\\xffb\"\nParis\n");
    assert_eq!(result, 3);
}

#[test]
fn text_of_any_length_stays_whole() {
    let host = Host::new();
    host.run(4, &[b"image"], |_| {
        let me = grid::thread_index();
        let letter = char::from(b'a' + me as u8);
        for length in [0, 1, 54, 55, 56, 57, 239, 240, 241, 480, 481, 5000] {
            println!("{}", Repeat(letter, length));
        }
        print!("");
        eprint!("{letter}");
        eprintln!();
        0
    });
    let out = host.said(Stream::Stdout);
    let mut lines: Vec<_> = out.lines().collect();
    assert_eq!(lines.len(), 4 * 12);
    assert!(
        lines
            .iter()
            .all(|line| line.chars().all(|c| line.starts_with(c))),
        "a line is torn"
    );
    lines.sort_by_key(|line| line.len());
    assert_eq!(lines.iter().map(|line| line.len()).sum::<usize>(), 4 * 6904);
    let mut words: Vec<_> = host
        .said(Stream::Stderr)
        .chars()
        .filter(|c| *c != '\n')
        .collect();
    words.sort_unstable();
    assert_eq!(words, ['a', 'b', 'c', 'd']);
}

/// Prints piece by piece, and prints while it is printed.
struct Repeat(char, usize);

impl fmt::Display for Repeat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (0..self.1).try_for_each(|_| write!(f, "{}", self.0))
    }
}

#[test]
fn exit_ends_the_run_with_its_code() {
    let host = Host::new();
    let result = host.run(2, &[b"image"], |_| {
        if grid::thread_index() == 1 {
            exit(300);
        }
        loop {
            println!("busy");
        }
    });
    assert_eq!(host.service.ended().map(|end| end.code), Some(300));
    assert_eq!(result, 0, "a thread that was ended returns nothing");
}

#[test]
fn a_panic_says_where_and_why_once() {
    let host = Host::new();
    host.run(3, &[b"image"], |program| {
        println!("before");
        let index = program.args().len() + 4;
        [1, 2, 3][index]
    });
    let said = host.said(Stream::Stderr);
    assert_eq!(
        host.service.ended().map(|end| end.code),
        Some(End::PANIC.code)
    );
    assert_eq!(said.matches("panicked at").count(), 1, "{said}");
    assert!(
        said.contains("program.rs:") && said.contains("but the index is 5"),
        "{said}"
    );
    assert!(host.said(Stream::Stdout).contains("before"));
}

/// Panics whenever it is displayed.
struct Sore;

impl fmt::Display for Sore {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("{}", "sore".repeat(100))
    }
}

#[test]
fn a_panic_in_a_display_is_a_panic_like_any_other() {
    let host = Host::new();
    host.run(1, &[b"image"], |_| {
        println!("it is {Sore}");
        0
    });
    let said = host.said(Stream::Stderr);
    assert!(said.contains(&"sore".repeat(100)), "{said}");
    assert_eq!(host.said(Stream::Stdout), "");
}
