//! A device with the image loaded, and the server that is behind it at the moment.

use std::io::{self, PipeWriter};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bench_calls::{Plan, failure};
use loader_core::block::Block;
use loader_core::cli::DeviceChoice;
use loader_core::device::{Device, DeviceError, Grid, Kernel};
use loader_core::end::STOP;
use loader_core::program::{DeviceOptions, say};
use loader_core::serve::{BULK, Client, ServeError};
use loader_cpu::CpuDevice;
use loader_nv::CudaDevice;
use rpc_server::{Counters, DeviceMemory, Options, Report, Service, Table};
use rpc_stats::{Recorder, RunInfo, Snapshot, Source, Writer};
use thiserror::Error;

use crate::NAME;
use crate::busy::Busy;
use crate::cli::{Cli, Kind, Layout};
use crate::handlers::{Samples, install};
use crate::output::OutputError;
use crate::row::Served;

/// Device memory for messages.
const HEAP: u64 = 256 << 20;
/// Room for a kernel's arguments, and behind it for what its threads return.
const ARGUMENTS: usize = 4096;
/// Stack of a GPU's thread: twice the default, for a block of messages lies there.
const GPU_STACK: usize = 32 << 10;
/// The pauses between two looks whether a kernel has ended: as short as does not change what is
/// measured, and a thousandth of its time.
const PAUSES: (Duration, Duration) = (Duration::from_micros(20), Duration::from_millis(5));
const PART_OF_TIME: u32 = 1000;

/// Why a workload has no result.
#[derive(Debug, Error)]
pub(crate) enum Trouble {
    #[error(transparent)]
    Device(#[from] DeviceError),
    #[error(transparent)]
    Serve(#[from] ServeError),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error("the image {path} cannot be read: {error}; `cargo xtask images` builds it")]
    Image { path: String, error: io::Error },
    #[error("there is no pipe for the device's standard input: {0}")]
    Pipe(io::Error),
    /// Something that was checked was not right, in whole sentences.
    #[error("{0}")]
    Wrong(String),
    /// A kernel took too long, but ended when it was told to.
    #[error("{0}")]
    TimedOut(String),
    /// A kernel would not end: nothing more can be done with the device.
    #[error("{0}; it cannot be ended, so the rest is not measured")]
    Stuck(String),
}

impl Trouble {
    /// Whether nothing more can be measured with this device.
    pub(crate) const fn is_final(&self) -> bool {
        matches!(
            self,
            Self::Stuck(_) | Self::Output(_) | Self::Device(DeviceError::Fault(_))
        )
    }
}

/// The device, by its own type: some measurements need more than every device has.
pub(crate) enum Opened {
    Cpu(Arc<CpuDevice>),
    Nvidia(Arc<CudaDevice>),
}

impl Opened {
    fn open(kind: Kind, device: u32) -> Result<Self, DeviceError> {
        Ok(match kind {
            Kind::Cpu => Self::Cpu(Arc::new(CpuDevice::open(&DeviceOptions {
                device: DeviceChoice::Number(device),
                ..DeviceOptions::default()
            })?)),
            Kind::Nvidia => Self::Nvidia(Arc::new(CudaDevice::open(&loader_nv::Options {
                device,
                stack_size: Some(GPU_STACK),
                jit_level: None,
            })?)),
        })
    }

    fn device(&self) -> Arc<dyn Device> {
        match self {
            Self::Cpu(device) => Arc::clone(device) as _,
            Self::Nvidia(device) => Arc::clone(device) as _,
        }
    }
}

/// Publishes what `source` tells, as loaders do.
fn record(source: Option<Source>) -> Result<Recorder, Trouble> {
    let wrong = |error: &dyn std::error::Error| {
        Trouble::Wrong(format!("statistics cannot be published: {error}"))
    };
    let run = RunInfo {
        pid: std::process::id(),
        loader: NAME.to_owned(),
        ..RunInfo::default()
    };
    let first = Snapshot {
        run: run.clone(),
        ..Snapshot::default()
    };
    let writer = Writer::create(&first, false).map_err(|error| wrong(&error))?;
    let report = |error: &dyn std::error::Error| say(NAME, &error.to_string());
    Recorder::start(writer, run, source, report).map_err(|error| wrong(&error))
}

/// A device with the image loaded.
pub(crate) struct Session {
    pub(crate) opened: Opened,
    pub(crate) device: Arc<dyn Device>,
    pub(crate) samples: Samples,
    client: Client,
    options: Cli,
    /// Device address of the arguments' room.
    arguments: u64,
    behind: Option<(Setup, Behind)>,
    recorder: Option<Recorder>,
    /// The other end of the device's standard input.
    input: Option<PipeWriter>,
}

/// How the server is to be set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Setup {
    pub(crate) ports: Option<u32>,
    pub(crate) counters: bool,
    /// Statistics are published, as loaders do.
    pub(crate) statistics: bool,
    pub(crate) by: By,
}

/// Who serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// As many threads as loaders have.
    Many,
    /// One server thread is as good as any: one warp calls.
    One,
    /// In place of the server, one thread that does nothing but look at all ports and answer.
    Busy,
}

/// What is behind the image.
enum Behind {
    Service(Service),
    Busy { _thread: Busy },
}

impl Session {
    /// Opens the device and loads the image at `path`.
    pub(crate) fn open(options: &Cli, path: &Path) -> Result<Self, Trouble> {
        let shown = || path.display().to_string();
        let image = std::fs::read(path).map_err(|error| Trouble::Image {
            path: shown(),
            error,
        })?;
        let opened = Opened::open(options.device_kind, options.device)?;
        let device = opened.device();
        device.load(&image)?;
        let arguments = device.allocate_private(ARGUMENTS + 8)?;
        device.reserve_heap(HEAP)?;
        device.reserve_staging()?;
        let Some(client) = Client::find(&*device)? else {
            let sentence = format!(
                "the image {} calls no host, so it is none of this program's",
                shown()
            );
            return Err(Trouble::Wrong(sentence));
        };
        Ok(Self {
            opened,
            device,
            samples: Samples::default(),
            client,
            options: options.clone(),
            arguments,
            behind: None,
            recorder: None,
            input: None,
        })
    }

    /// Lanes of a warp.
    pub(crate) fn width(&self) -> u32 {
        self.device.info().lanes
    }

    /// The layout of the image.
    pub(crate) fn layout(&self) -> Layout {
        self.client.layout().into()
    }

    fn server_options(&self, setup: Setup) -> Options {
        let mut options = Options {
            poll: self.options.poll.into(),
            counters: setup.counters,
            bulk: BULK.into(),
            report: Report::new(|sentence| say(NAME, sentence)),
            ..Options::default()
        };
        if let Some(threads) = self.options.server_threads {
            options.pollers = threads as usize;
        } else if setup.by == By::One {
            options.pollers = 1;
        }
        options
    }

    /// Makes sure that a server of this kind is behind the image.
    pub(crate) fn serve(&mut self, setup: Setup) -> Result<Served, Trouble> {
        let asked = setup.ports.or(self.options.ports);
        let options = self.server_options(setup);
        let served = Served {
            layout: self.layout().name(),
            ports: self.client.ports(&*self.device, asked),
            server_threads: options.pollers as u32,
            poll: match self.options.poll {
                loader_core::cli::Poll::Spin => "spin",
                loader_core::cli::Poll::Adaptive => "adaptive",
                loader_core::cli::Poll::Sleep => "sleep",
            },
        };
        if self.behind.as_ref().is_some_and(|(old, _)| *old == setup) {
            return Ok(served);
        }
        self.end_service();
        if setup.by == By::Busy {
            let region = self.client.connect(&*self.device, asked, 0)?;
            let thread = Busy::start(&self.device, region);
            self.behind = Some((setup, Behind::Busy { _thread: thread }));
            self.launch_for(Grid::ONE, &self.begin(), Duration::ZERO)?;
            return Ok(served);
        }
        let (reader, writer) = io::pipe().map_err(Trouble::Pipe)?;
        self.input = Some(writer);
        let samples = self.samples.clone();
        let install = |table: &mut Table| install(table, samples, reader);
        let service = if setup.statistics {
            let (service, source) =
                self.client
                    .serve_observed(&self.device, asked, options, install)?;
            self.recorder = Some(record(source)?);
            service
        } else {
            self.client.serve(&self.device, asked, options, install)?
        };
        self.behind = Some((setup, Behind::Service(service)));
        self.launch_for(Grid::ONE, &self.begin(), Duration::ZERO)?;
        Ok(served)
    }

    /// The server as loaders set it up.
    pub(crate) fn serve_default(&mut self) -> Result<Served, Trouble> {
        self.serve(Setup {
            ports: None,
            counters: true,
            statistics: false,
            by: By::Many,
        })
    }

    /// The same for one warp that calls: more server threads than one would only use the processor.
    pub(crate) fn serve_alone(&mut self) -> Result<Served, Trouble> {
        self.serve(Setup {
            ports: None,
            counters: true,
            statistics: false,
            by: By::One,
        })
    }

    fn service(&self) -> Option<&Service> {
        match &self.behind {
            Some((_, Behind::Service(service))) => Some(service),
            _ => None,
        }
    }

    /// A server whose device has a standard input that gives nothing and ends when this is dropped.
    pub(crate) fn serve_input(&mut self) -> Result<Option<PipeWriter>, Trouble> {
        self.end_service();
        self.serve_default()?;
        Ok(self.input.take())
    }

    /// What was counted so far.
    pub(crate) fn counters(&self) -> Counters {
        self.service().map(Service::counters).unwrap_or_default()
    }

    fn end_service(&mut self) {
        // Before the service: the recorder looks at that.
        self.recorder = None;
        if let Some((_, Behind::Service(service))) = self.behind.take() {
            service.stop();
        }
    }

    /// After trouble: the next workload gets a server of its own.
    pub(crate) fn recover(&mut self) {
        self.end_service();
        self.samples.take();
    }

    /// Device memory of `bytes` bytes, from the heap that device programs get theirs from.
    pub(crate) fn allocate(&self, bytes: u64) -> Result<Allocated, Trouble> {
        let address = self.device.allocate(bytes).ok_or_else(|| {
            Trouble::Wrong(format!("the device's heap has no room for {bytes} bytes"))
        })?;
        Ok(Allocated {
            address,
            device: Arc::clone(&self.device),
        })
    }

    fn begin(&self) -> Kernel {
        Kernel::Begin {
            argc: 0,
            argv: self.arguments,
            envp: self.arguments,
        }
    }

    /// Runs a kernel by `plan` and checks what its threads return: how long it took.
    pub(crate) fn run(&mut self, grid: Grid, plan: &Plan) -> Result<Duration, Trouble> {
        self.run_for(grid, plan, Duration::ZERO)
    }

    /// As [`run`](Self::run), of a kernel that is to take `expected`.
    pub(crate) fn run_for(
        &mut self,
        grid: Grid,
        plan: &Plan,
        expected: Duration,
    ) -> Result<Duration, Trouble> {
        let kernel = self.prepare(plan)?;
        let time = self.launch_for(grid, &kernel, expected)?;
        self.check()?;
        Ok(time)
    }

    /// Puts the plan where the kernel finds it.
    pub(crate) fn prepare(&self, plan: &Plan) -> Result<Kernel, Trouble> {
        let mut arguments = vec!["bench".into(), plan.mode.name().into()];
        arguments.extend(plan.numbers().map(|number| number.to_string().into()));
        let block = Block::new(&arguments, &[]);
        let ret = self.arguments + ARGUMENTS as u64;
        let write = |bytes: &[u8], to| self.device.copy_to_device(bytes, to);
        write(&block.at(self.arguments), self.arguments)
            .and_then(|()| write(&[0; 4], ret))
            .map_err(|error| Trouble::Wrong(error.to_string()))?;
        Ok(Kernel::Start {
            argc: block.argc(),
            argv: self.arguments,
            envp: self.arguments + block.envp(),
            ret,
        })
    }

    /// Starts a kernel and waits for its end: how long that took.
    fn launch_for(
        &mut self,
        grid: Grid,
        kernel: &Kernel,
        expected: Duration,
    ) -> Result<Duration, Trouble> {
        let limit = expected + self.options.timeout;
        let begun = Instant::now();
        self.device.launch(kernel, grid)?;
        // What this thread would do meanwhile counts as load.
        std::thread::sleep(expected * 9 / 10);
        loop {
            if self.device.finished()? {
                return Ok(begun.elapsed());
            }
            let elapsed = begun.elapsed();
            let ended = self
                .service()
                .is_some_and(|service| service.ended().is_some());
            if ended || elapsed > limit {
                return Err(self.interrupt(limit, ended));
            }
            std::thread::sleep((elapsed / PART_OF_TIME).clamp(PAUSES.0, PAUSES.1));
        }
    }

    /// Tells a kernel to end, which has to end somehow.
    pub(crate) fn interrupt(&mut self, limit: Duration, ended: bool) -> Trouble {
        let mut sentence = if ended {
            "the device program ended the run, which none does that is right".to_owned()
        } else {
            format!("the kernel had not ended after {} s", limit.as_secs_f64())
        };
        if let Some(service) = self.service() {
            let open = service.open_exchanges();
            if let Some(first) = open.first() {
                sentence = format!(
                    "{sentence}; {} ports have an open exchange, such as {first}",
                    open.len()
                );
            }
            service.stop_device();
        }
        let deadline = Instant::now() + STOP;
        while Instant::now() < deadline {
            match self.device.finished() {
                Ok(true) => return Trouble::TimedOut(sentence),
                Ok(false) => std::thread::sleep(PAUSES.1),
                Err(error) => return error.into(),
            }
        }
        Trouble::Stuck(sentence)
    }

    /// Whether all threads of the last kernel are content.
    pub(crate) fn check(&self) -> Result<(), Trouble> {
        let mut word = [0; 4];
        self.device
            .copy_to_host(self.arguments + ARGUMENTS as u64, &mut word)
            .map_err(|error| Trouble::Wrong(error.to_string()))?;
        match i32::from_le_bytes(word) {
            0 => Ok(()),
            bits => {
                let names = failure::NAMES.iter().filter(|(bit, _)| bits & bit != 0);
                let words: Vec<_> = names.map(|(_, name)| *name).collect();
                Err(Trouble::Wrong(format!(
                    "the device program returned {bits}: {}",
                    words.join(", ")
                )))
            }
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.end_service();
    }
}

/// Device memory, freed when it is dropped.
pub(crate) struct Allocated {
    pub(crate) address: u64,
    device: Arc<dyn Device>,
}

impl Drop for Allocated {
    fn drop(&mut self) {
        DeviceMemory::free(&*self.device, self.address);
    }
}
