//! Runs on a device that is this test: its launches block until the kernel has ended, as those of
//! a driver may.

use std::ffi::OsString;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use loader_core::cli::{Cli, parse};
use loader_core::device::{
    Device, DeviceError, DeviceInfo, Grid, Kernel, Mailbox, SharedBuffer, StartForm,
};
use loader_core::run::{RunError, run, run_serving};
use rpc_bitmap::{Device as DeviceScope, Heap, Memory as _, System};
use rpc_port::procedure::Increment;
use rpc_port::{Client, HostWarp, Line, Transport};
use rpc_server::{DeviceMemory, MemoryError};
use rpc_types::image::CLIENT_SYMBOL;
use rpc_types::{ClientDescriptor, Geometry, LayoutKind, Opcode};

/// What `_start` does.
#[derive(Clone, Copy)]
enum Program {
    /// Calls the host and returns this.
    Return(i32),
    /// Exits with this, then waits for the host to end the run.
    Exit(i32),
}

struct Blocking {
    info: DeviceInfo,
    program: Program,
    client: Mutex<Option<ClientDescriptor>>,
    shared: Mutex<Option<Heap<System>>>,
    /// At address `BASE`.
    private: Mutex<Vec<u8>>,
    launched: Mutex<Vec<Kernel>>,
    form: StartForm,
}

const BASE: u64 = 0x1000;
/// Where the device finds what is shared.
const SHARED: u64 = 64;

impl Blocking {
    fn new(program: Program, client: Option<ClientDescriptor>) -> Box<Self> {
        Box::new(Self {
            info: DeviceInfo {
                name: "the test's device".to_owned(),
                lanes: 1,
                resident_warps: 4,
                max_threads: 1,
                max_block: [1; 3],
                max_grid: [1; 3],
            },
            program,
            client: Mutex::new(client),
            shared: Mutex::default(),
            private: Mutex::default(),
            launched: Mutex::default(),
            form: StartForm::Plain,
        })
    }

    fn start(&self, ret: u64) {
        let client = self.client.lock().unwrap();
        let Some(descriptor) = *client else {
            return;
        };
        let geometry = Geometry::new(LayoutKind::Line, descriptor.ports, 1).unwrap();
        let shared = self.shared.lock().unwrap().clone().unwrap();
        let private = Heap::<DeviceScope>::new(geometry.private_size());
        let client = Client::new(Line::new(shared, geometry), private, HostWarp::default());
        assert_eq!(client.call::<Increment>(&1), Ok(2));
        match self.program {
            Program::Return(value) => {
                self.copy_to_device(&value.to_le_bytes(), ret).unwrap();
            }
            Program::Exit(code) => {
                let mut port = client.open(Opcode::EXIT).unwrap().dynamic();
                port.send_and_recv(0, |_, _| {}, 0, |_, _| {}).unwrap();
                port.send(4, |_, packet| packet.set(&code)).unwrap();
                drop(port);
                while !client.is_stopped() {
                    std::thread::yield_now();
                }
            }
        }
    }

    /// As LLVM's first patch has it: the four phases of one call.
    fn start_over(&self, ret: u64, mailbox: Mailbox) {
        let shared = self.shared.lock().unwrap().clone().unwrap();
        let at = |address: u64| (address - SHARED) as usize;
        let (inbox, outbox) = (at(mailbox.inbox), at(mailbox.outbox));
        let words = match self.program {
            Program::Return(_) => [0, 0],
            Program::Exit(code) => [2, code as u64],
        };
        shared.write(at(mailbox.buffer), &words);
        for flag in [1, 0] {
            shared.release_fence();
            shared.store32(outbox, flag);
            // An exit need not be answered to its end.
            while shared.load32(inbox) != flag && !(flag == 0 && words[0] == 2) {
                std::thread::yield_now();
            }
        }
        if let Program::Return(value) = self.program {
            self.copy_to_device(&value.to_le_bytes(), ret).unwrap();
        }
    }

    fn range(address: u64, length: usize) -> std::ops::Range<usize> {
        let start = (address - BASE) as usize;
        start..start + length
    }
}

impl Device for Blocking {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn load(&self, _: &[u8]) -> Result<(), DeviceError> {
        Ok(())
    }

    fn has_kernel(&self, kernel: &Kernel) -> bool {
        !matches!(kernel, Kernel::End)
    }

    fn start_form(&self) -> StartForm {
        self.form
    }

    fn check_plain(&self, name: &str) -> Result<(), DeviceError> {
        let none = || Err(DeviceError::no_kernel(name, ["plain"].into_iter()));
        if name == "plain" { Ok(()) } else { none() }
    }

    fn launch_plain(&self, name: &str, grid: Grid) -> Result<(), DeviceError> {
        assert_eq!((name, grid), ("plain", Grid::ONE));
        assert!(self.launched.lock().unwrap().is_empty());
        Ok(())
    }

    fn global_size(&self, name: &str) -> Result<Option<u64>, DeviceError> {
        let client = self.client.lock().unwrap();
        let known = name == CLIENT_SYMBOL && client.is_some();
        Ok(known.then_some(size_of::<ClientDescriptor>() as u64))
    }

    fn read_global(&self, name: &str, size: usize) -> Result<Option<Vec<u8>>, DeviceError> {
        if name != CLIENT_SYMBOL {
            return Ok(None);
        }
        let client = *self.client.lock().unwrap();
        assert_eq!(size, 64);
        Ok(client.map(|client| bytemuck::bytes_of(&client).to_vec()))
    }

    fn write_global(&self, _: &str, bytes: &[u8]) -> Result<(), DeviceError> {
        *self.client.lock().unwrap() = Some(bytemuck::pod_read_unaligned(bytes));
        Ok(())
    }

    fn allocate_shared(&self, size: usize) -> Result<SharedBuffer, DeviceError> {
        let heap = Heap::new(size);
        let host = NonNull::new(heap.as_ptr()).unwrap();
        *self.shared.lock().unwrap() = Some(heap);
        Ok(SharedBuffer {
            host,
            device: SHARED,
            size,
        })
    }

    fn allocate_private(&self, size: usize) -> Result<u64, DeviceError> {
        let mut private = self.private.lock().unwrap();
        let address = BASE + private.len() as u64;
        private.extend(std::iter::repeat_n(0, size.next_multiple_of(64)));
        Ok(address)
    }

    fn reserve_heap(&self, _: u64) -> Result<(), DeviceError> {
        Ok(())
    }

    fn launch(&self, kernel: &Kernel, grid: Grid) -> Result<(), DeviceError> {
        assert_eq!(grid, Grid::ONE);
        self.launched.lock().unwrap().push(*kernel);
        let second = self.launched.lock().unwrap().len() == 2;
        match *kernel {
            Kernel::Start { ret, .. } => {
                assert!(second, "after _begin");
                self.start(ret);
            }
            Kernel::StartOver {
                envp, ret, mailbox, ..
            } => {
                assert!(second, "after _begin");
                let takes = envp.is_some();
                assert_eq!(self.form, StartForm::Mailbox { envp: takes });
                self.start_over(ret, mailbox);
            }
            Kernel::Begin { .. } | Kernel::End => {}
        }
        Ok(())
    }

    fn finished(&self) -> Result<bool, DeviceError> {
        Ok(true)
    }

    fn resource_usage(&self) -> Result<Vec<String>, DeviceError> {
        Ok(Vec::new())
    }
}

impl DeviceMemory for Blocking {
    fn allocate(&self, _: u64) -> Option<u64> {
        None
    }

    fn free(&self, _: u64) -> bool {
        false
    }

    fn copy_to_host(&self, from: u64, into: &mut [u8]) -> Result<(), MemoryError> {
        into.copy_from_slice(&self.private.lock().unwrap()[Self::range(from, into.len())]);
        Ok(())
    }

    fn copy_to_device(&self, from: &[u8], to: u64) -> Result<(), MemoryError> {
        self.private.lock().unwrap()[Self::range(to, from.len())].copy_from_slice(from);
        Ok(())
    }
}

fn run_line(line: &str, device: Box<Blocking>) -> Result<u8, RunError> {
    let cli: Cli = parse("loader", line.split(' ').map(OsString::from)).unwrap();
    run("loader", &cli.options, &cli.command, device, &[])
}

fn client() -> ClientDescriptor {
    ClientDescriptor::new(LayoutKind::Line, 2)
}

#[test]
fn what_is_returned_is_the_code() {
    for (value, code) in [(0, 0), (3, 3), (-1, 255)] {
        let device = Blocking::new(Program::Return(value), Some(client()));
        assert_eq!(run_line("image a b", device).unwrap(), code);
    }
}

#[test]
fn handlers_of_ones_own_stand_beside_the_built_in_ones_or_in_their_place() {
    let called = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&called);
    let cli: Cli = parse("loader", ["image".into()]).unwrap();
    let (options, command) = (&cli.options, &cli.command);
    let device = Blocking::new(Program::Return(3), Some(client()));
    let code = run_serving("loader", options, command, device, &[], |table| {
        assert!(table.contains(Opcode::NOOP));
        table.procedure::<Increment>(move |_, n| {
            count.fetch_add(n, Ordering::Relaxed);
            Ok(n + 1)
        });
    });
    assert_eq!(code.unwrap(), 3);
    assert_eq!(called.load(Ordering::Relaxed), 1);
}

#[test]
fn a_launch_that_blocks_does_not_keep_an_exit_from_ending_the_run() {
    let device = Blocking::new(Program::Exit(7), Some(client()));
    assert_eq!(run_line("image", device).unwrap(), 7);
}

#[test]
fn an_image_without_a_client_runs_without_a_server() {
    let device = Blocking::new(Program::Return(3), None);
    assert_eq!(run_line("image", device).unwrap(), 0);
}

#[test]
fn a_plain_kernel_runs_alone_and_gives_0() {
    for client in [None, Some(client())] {
        let device = Blocking::new(Program::Return(3), client);
        assert_eq!(run_line("--kernel plain image", device).unwrap(), 0);
    }
    let device = Blocking::new(Program::Return(3), None);
    let said = run_line("--kernel other image", device).unwrap_err();
    assert!(
        said.to_string().ends_with("its kernels are plain"),
        "{said}"
    );
}

#[test]
fn a_start_with_a_mailbox_is_served() {
    for envp in [false, true] {
        for (program, code) in [(Program::Return(3), 3), (Program::Exit(7), 7)] {
            let mut device = Blocking::new(program, None);
            device.form = StartForm::Mailbox { envp };
            assert_eq!(run_line("image", device).unwrap(), code);
        }
    }
    let mut device = Blocking::new(Program::Return(3), None);
    device.form = StartForm::Mailbox { envp: true };
    let said = run_line("--ports 2 image", device).unwrap_err();
    assert!(
        said.to_string()
            .contains("more than the 1 that layout First"),
        "{said}"
    );
}

#[test]
fn what_cannot_be_served_is_refused() {
    let newer = ClientDescriptor {
        version: rpc_types::image::ABI_VERSION + 1,
        ..client()
    };
    let said = run_line("image", Blocking::new(Program::Return(0), Some(newer))).unwrap_err();
    assert!(
        said.to_string().contains(&format!(
            "ABI version {}",
            rpc_types::image::ABI_VERSION + 1
        )),
        "{said}"
    );
    let device = Blocking::new(Program::Return(0), Some(client()));
    let said = run_line("--threads 2 image", device).unwrap_err();
    assert!(said.to_string().starts_with("--threads 2"), "{said}");
    let device = Blocking::new(Program::Return(0), Some(client()));
    let said = run_line("--report /no/such/folder/file image", device).unwrap_err();
    assert!(matches!(said, RunError::Report(_)), "{said}");
    let device = Blocking::new(Program::Return(0), Some(client()));
    let said = run_line("--die-with-parent 1 image", device);
    assert!(said.is_err() || std::os::unix::process::parent_id() == 1);
}
