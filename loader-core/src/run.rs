//! The run of one image on one device.

use std::ffi::OsString;
use std::io::{self, Write};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rpc_server::{Drained, Service, Table};
use rpc_stats::Recorder;
use thiserror::Error;

use crate::block::{Block, host_environment};
use crate::cli::Options;
use crate::device::{Device, DeviceError, Grid, SharedBuffer};
use crate::end::{Cause, DRAIN, STOP};
use crate::heap::Heap;
use crate::image::{ImageError, ImageKind};
use crate::kernels::{Arguments, Kernels, Launches, pause};
use crate::outputs::{self, OutputError};
use crate::program::{complain, say};
use crate::report::{Calls, End, Report, ReportError, Stage};
use crate::serve::{self, Client, ServeError, Serving};
use crate::signals::{self, Interrupt};
use crate::stats::{self, Stats};

mod leave;

pub use leave::leave;
use leave::{depart, within};

/// How often at most the run looks at what has no way to wake it.
const TICK: Duration = Duration::from_micros(500);
/// How long the end waits to say something when what it says it to may be blocked.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// Why nothing was run.
#[derive(Debug, Error)]
pub enum RunError {
    /// The image is none.
    #[error("{path} {error}")]
    Image {
        /// Where it was looked for.
        path: String,
        /// What is wrong with it.
        error: ImageError,
    },
    /// This loader has no device for it.
    #[error(
        "{path} is {}, which this program does not run: {} does, and gpurpc-top runs any image",
        kind.name(),
        kind.loader()
    )]
    NoBackend {
        /// The image.
        path: String,
        /// What it is.
        kind: ImageKind,
    },
    /// The device refused something.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The image's client cannot be served.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// Something would be lost.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// There would be no report.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// A thread or a signal handler could not be set up.
    #[error("the run could not be set up: {0}")]
    System(#[from] io::Error),
    /// The process that started this one has ended already.
    #[error("the program that started this one has ended")]
    Orphan,
}

/// Loads `image` into `device` and runs it: `arguments` are the program's, its name first. Gives
/// the exit code; when a kernel would not end, ends the process with it instead, and when the program
/// has aborted, by SIGABRT.
///
/// # Errors
/// When nothing could be run.
pub fn run(
    name: &'static str,
    options: &Options,
    arguments: &[OsString],
    device: Box<dyn Device>,
    image: &[u8],
) -> Result<u8, RunError> {
    run_serving(name, options, arguments, device, image, |_| ())
}

/// As [`run`], with the handlers that `install` adds to the built-in ones.
///
/// # Errors
/// As [`run`].
pub fn run_serving(
    name: &'static str,
    options: &Options,
    arguments: &[OsString],
    device: Box<dyn Device>,
    image: &[u8],
    install: impl FnOnce(&mut Table),
) -> Result<u8, RunError> {
    die_with_parent(options)?;
    signals::bear_file_size_limit()?;
    // Again, for whoever brings an image that comes from no file.
    outputs::check(None, options, &[])?;
    let report = Report::create(&options.report)?;
    let device: Arc<dyn Device> = Arc::from(device);
    let grid = options.grid(device.info())?;
    let mut stages = device.opening();
    let (launches, service, recorder) = prepare(
        name,
        (options, grid),
        arguments,
        &device,
        image,
        &mut stages,
        install,
    )?;
    let interrupt = Interrupt::watch()?;
    let deadline = options
        .timeout
        .and_then(|limit| Instant::now().checked_add(limit));
    let ret = launches.ret();
    let kernels = Kernels::start(Arc::clone(&device), launches, grid)?;
    let run = Run {
        name,
        options,
        device,
        service,
        recorder,
        kernels,
        interrupt,
        deadline,
        ret,
        stages,
    };
    Ok(run.finish(report))
}

/// Loads the image, which may have to be compiled, and allocates meanwhile what a run needs whatever
/// the image is: the heap, whose result is looked at once it is clear that the image has a client,
/// and shared memory, as much as the default layout takes.
fn load(
    options: &Options,
    grid: Grid,
    device: &dyn Device,
    image: &[u8],
    stages: &mut Vec<Stage>,
) -> Result<(Option<SharedBuffer>, Result<(), DeviceError>), DeviceError> {
    thread::scope(|scope| {
        let ahead = || {
            let began = Instant::now();
            let shared = serve::expected(device, grid, options.ports);
            let size = match options.heap_size {
                Some(size) => Ok(size),
                None => device.free_memory().map(Heap::usual_size),
            };
            let heap = size
                .and_then(|size| device.reserve_heap(size))
                .and_then(|()| device.reserve_staging());
            (shared, heap, Stage::since("memory", began))
        };
        let thread = thread::Builder::new().spawn_scoped(scope, ahead);
        let began = Instant::now();
        let loaded = device.load(image);
        stages.push(Stage::since("image", began));
        // What panicked there, or found no thread to run on, is done here.
        let (shared, heap, stage) =
            (thread.ok().and_then(|thread| thread.join().ok())).unwrap_or_else(ahead);
        stages.push(stage);
        loaded.map(|()| (shared, heap))
    })
}

/// Everything up to the first launch.
fn prepare(
    name: &'static str,
    (options, grid): (&Options, Grid),
    arguments: &[OsString],
    device: &Arc<dyn Device>,
    image: &[u8],
    stages: &mut Vec<Stage>,
    install: impl FnOnce(&mut Table),
) -> Result<(Launches, Option<Service>, Option<Recorder>), RunError> {
    let (shared, heap) = load(options, grid, &**device, image, stages)?;
    let began = Instant::now();
    let mut launches = match &options.kernel {
        Some(kernel) => {
            device.check_plain(kernel)?;
            Launches::Plain(kernel.clone())
        }
        None => Launches::Program(pass(arguments, &**device)?),
    };
    if options.print_resource_usage {
        for line in device.resource_usage()? {
            say(name, &line);
        }
    }
    let client = Client::find(&**device)?;
    let layout = client.map_or("none", |client| client.layout().name());
    let stats = || Stats::create(name, options, arguments, (device.info(), grid), layout);
    let Some(client) = client else {
        let recorder = stats().and_then(|stats| stats.start(None));
        return Ok((launches, None, recorder));
    };
    heap?;
    let stats = stats();
    let server = serve::options(options, name);
    let ports = Some(client.ports_for(device.info(), grid, options.ports));
    let serving = Serving {
        ports,
        ready: shared,
        options: server,
        policy: options.policy(),
        observed: stats.is_some(),
    };
    let served = client.serve_over(device, serving, install)?;
    launches.reach(served.mailbox);
    let recorder = stats.and_then(|stats| stats.start(served.source));
    stages.push(Stage::since("service", began));
    Ok((launches, Some(served.service), recorder))
}

/// Puts the program's arguments and environment where the device finds them, with a word for its
/// value.
fn pass(arguments: &[OsString], device: &dyn Device) -> Result<Arguments, RunError> {
    let block = Block::new(arguments, &host_environment());
    let ret = block.size().next_multiple_of(8);
    let argv = device.allocate_private(ret + 8)?;
    let passed = Arguments {
        argc: block.argc(),
        argv,
        envp: argv + block.envp(),
        ret: argv + ret as u64,
        mailbox: None,
    };
    if !device.has_kernel(&passed.start(device.start_form())) {
        return Err(DeviceError::Missing(
            "kernel _start, which is where a program starts: make it with entry! in Rust, \
             GPURPC_MAIN in C, or LLVM's crt1.o"
                .to_owned(),
        )
        .into());
    }
    device
        .copy_to_device(&block.at(argv), argv)
        .map_err(|error| DeviceError::Api {
            call: "copying the program's arguments",
            reason: error.to_string(),
        })?;
    Ok(passed)
}

/// Asks the system to kill this process when its parent ends, if `options` say so. To be done before
/// anything that may wait, or that is written: again does no harm.
///
/// # Errors
/// When it has ended already.
pub fn die_with_parent(options: &Options) -> Result<(), RunError> {
    use rustix::process::{Signal, getppid, set_parent_process_death_signal};
    let Some(parent) = options.die_with_parent else {
        return Ok(());
    };
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(io::Error::from)?;
    // It may have ended before it was watched.
    if getppid().is_none_or(|now| now.as_raw_nonzero().get() != parent) {
        return Err(RunError::Orphan);
    }
    // This process is not in the foreground of its terminal, if it has one.
    signals::ignore_background_output();
    Ok(())
}

/// A run whose kernels have been started.
struct Run<'a> {
    name: &'static str,
    options: &'a Options,
    device: Arc<dyn Device>,
    service: Option<Service>,
    recorder: Option<Recorder>,
    kernels: Kernels,
    interrupt: Interrupt,
    deadline: Option<Instant>,
    /// Device address of the `ret` word, if there is one.
    ret: Option<u64>,
    stages: Vec<Stage>,
}

impl Run<'_> {
    /// Waits for whatever comes first.
    fn wait(&self) -> Cause {
        let started = Instant::now();
        loop {
            let mut tick = pause(started.elapsed()).max(TICK);
            if let Some(deadline) = self.deadline {
                tick = tick.min(deadline.saturating_duration_since(Instant::now()));
            }
            if let Some(result) = self.kernels.wait(tick) {
                return result.map_or_else(Cause::Failed, |()| self.returned());
            }
            if let Some(end) = self.service.as_ref().and_then(Service::ended) {
                return Cause::from(end);
            }
            if let Some(number) = self.interrupt.number() {
                return Cause::Interrupted(number);
            }
            if self
                .deadline
                .is_some_and(|deadline| Instant::now() >= deadline)
            {
                return Cause::TimedOut;
            }
        }
    }

    /// What the kernels, which have all ended, have returned.
    fn returned(&self) -> Cause {
        let mut value = [0; 4];
        let Some(ret) = self.ret else {
            return Cause::Returned(0);
        };
        match self.device.copy_to_host(ret, &mut value) {
            Ok(()) => Cause::Returned(i32::from_le_bytes(value)),
            Err(error) => Cause::Failed(DeviceError::Api {
                call: "copying what the program returns",
                reason: error.to_string(),
            }),
        }
    }

    /// Waits for the end and brings it about.
    fn finish(mut self, report: Report) -> u8 {
        let mut cause = self.wait();
        self.kernels.cancel();
        // Of a device that has failed nothing more is asked.
        let failed = matches!(cause, Cause::Failed(_));
        let mut running = !failed && !matches!(cause, Cause::Returned(_));
        let mut waiting = Vec::new();
        let mut drained = Drained::default();
        let mut counted = Vec::new();
        if let Some(service) = &self.service {
            if matches!(cause, Cause::TimedOut) {
                waiting = service
                    .open_exchanges()
                    .iter()
                    .map(ToString::to_string)
                    .collect();
            }
            drained = service.drain(DRAIN);
            // An exit that was posted just before the kernel ended came first.
            if let (Cause::Returned(_) | Cause::Failed(_), Some(end)) = (&cause, service.ended()) {
                cause = Cause::from(end);
            }
            if running {
                service.stop_device();
                running = self.kernels.wait(STOP).is_none();
            }
            counted = calls(service);
        }
        let end = End {
            code: cause.code(),
            cancelled: drained.cancelled,
        };
        let code = end.code;
        let recorded = stats::finish(self.recorder.take(), code, end.cancelled);
        let (name, stages) = (self.name, self.stages);
        let sentence = cause.sentence(self.options.timeout, &waiting);
        let aborted = matches!(cause, Cause::Aborted);
        let last_words = move || {
            if let Some(sentence) = sentence {
                say(name, &sentence);
            }
            if let Err(error) = report.write(stages, counted, end) {
                complain(name, &error);
            }
            // A reader that has gone away wants no more.
            let _ = io::stdout().flush();
        };
        if drained.late {
            // A handler may hold standard output or standard error for good.
            within(LAST_WORDS, last_words);
            depart(aborted, code);
        }
        last_words();
        if aborted {
            depart(aborted, code);
        }
        if running || failed || !recorded || !self.service.is_none_or(Service::stop) {
            leave(code);
        }
        code
    }
}

/// What was called, less what never was.
fn calls(service: &Service) -> Vec<Calls> {
    let opcodes = service.counters().opcodes.into_iter();
    opcodes
        .filter(|counters| counters.calls > 0)
        .map(|counters| Calls {
            name: counters.name.to_owned(),
            calls: counters.calls,
            lanes: counters.lanes,
            bytes_in: counters.bytes_in,
            bytes_out: counters.bytes_out,
            errors: counters.errors,
        })
        .collect()
}
