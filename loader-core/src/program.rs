//! What a loader's `main` is.

use std::error::Error;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use rpc_server::Table;
use rpc_stats::printable;

use crate::cli::{Cli, DeviceChoice, Options, Usage, parse};
use crate::device::{Device, DeviceError};
use crate::exit;
use crate::image::{self, ImageKind};
use crate::outputs;
use crate::place::place;
use crate::run::{RunError, die_with_parent, run, run_serving};

pub use crate::signals::{ONE_INTERRUPT, bear_file_size_limit};

/// How a device is opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceOptions {
    /// Which one.
    pub device: DeviceChoice,
    /// The library through which AMD GPUs are reached, if not the usual one.
    pub hsa_runtime: Option<PathBuf>,
    /// Bytes of stack for each device thread, if not the device's own choice.
    pub stack_size: Option<u64>,
    /// How hard a compiler that the driver brings optimises the image, from 0 to 4, if not its own
    /// choice.
    pub jit_level: Option<u32>,
    /// Bytes of the heap that the run reserves, if not the usual number.
    pub heap_size: Option<u64>,
}

impl From<&Options> for DeviceOptions {
    fn from(options: &Options) -> Self {
        Self {
            device: options.device,
            hsa_runtime: options.hsa_runtime.clone(),
            stack_size: options.stack_size,
            jit_level: options.jit_level,
            heap_size: options.heap_size,
        }
    }
}

/// A device API that can run images of some kinds.
pub trait Backend {
    /// Whether this is the API for images of `kind`.
    fn accepts(&self, kind: ImageKind) -> bool;

    /// Opens a device for an image of `kind`. Called before any other thread is started.
    ///
    /// # Errors
    /// [`DeviceError::Unavailable`] when there is none, with the reason.
    fn open(
        &self,
        kind: ImageKind,
        options: &DeviceOptions,
    ) -> Result<Box<dyn Device>, DeviceError>;
}

/// Runs the image that this process's arguments name; `name` is how the program calls itself.
pub fn main(name: &'static str, backends: &[&dyn Backend]) -> ExitCode {
    main_with(name, backends, std::env::args_os().skip(1))
}

/// As [`main`], with handlers of your own: `install` adds them to the built-in ones.
///
/// ```no_run
/// use std::process::ExitCode;
///
/// use loader_core::program::{Backend, main_serving};
/// use rpc_port::Procedure;
/// use rpc_types::Opcode;
///
/// struct SquareRoot;
///
/// impl Procedure for SquareRoot {
///     const OPCODE: Opcode = Opcode::user(1);
///     const NAME: &'static str = "square_root";
///     type Request = f64;
///     type Reply = f64;
/// }
///
/// fn my_loader(backends: &[&dyn Backend]) -> ExitCode {
///     main_serving("my-loader", backends, |table| {
///         table.procedure::<SquareRoot>(|_, number| Ok(number.sqrt()));
///     })
/// }
/// ```
pub fn main_serving(
    name: &'static str,
    backends: &[&dyn Backend],
    install: impl FnOnce(&mut Table),
) -> ExitCode {
    match parse(name, std::env::args_os().skip(1)) {
        Ok(cli) => finish(name, start(name, backends, &cli, install)),
        Err(usage) => refuse(name, &usage),
    }
}

/// As [`main`], with these arguments.
pub fn main_with(
    name: &'static str,
    backends: &[&dyn Backend],
    arguments: impl IntoIterator<Item = OsString>,
) -> ExitCode {
    let cli: Cli = match parse(name, arguments) {
        Ok(cli) => cli,
        Err(usage) => return refuse(name, &usage),
    };
    run_cli(name, backends, &cli)
}

/// Runs the image that a command line names.
pub fn run_cli(name: &'static str, backends: &[&dyn Backend], cli: &Cli) -> ExitCode {
    finish(name, start(name, backends, cli, |_| ()))
}

fn start(
    name: &'static str,
    backends: &[&dyn Backend],
    cli: &Cli,
    install: impl FnOnce(&mut Table),
) -> Result<u8, RunError> {
    die_with_parent(&cli.options)?;
    let path = &cli.command[0];
    let bad_image = |error| RunError::Image {
        path: shown(path),
        error,
    };
    outputs::check(Some(path), &cli.options, &[])?;
    let file = image::read(path).map_err(bad_image)?;
    let (device, image) = place(backends, &shown(path), &file, &cli.options)?;
    let (options, command) = (&cli.options, &cli.command);
    run_serving(name, options, command, device, &image, install)
}

/// An image's path, for the start of a sentence.
fn shown(path: &OsStr) -> String {
    match path.to_str() {
        Some("-") => "standard input".to_owned(),
        Some("") => "an empty path".to_owned(),
        _ => path.display().to_string(),
    }
}

/// Runs what `device` gets as its image for a command line that names none: `arguments` are the
/// program's, its name first.
pub fn run_on(
    name: &'static str,
    options: &Options,
    arguments: &[OsString],
    device: Box<dyn Device>,
) -> ExitCode {
    finish(name, run(name, options, arguments, device, &[]))
}

fn finish(name: &str, result: Result<u8, RunError>) -> ExitCode {
    result.map_or_else(|error| fail(name, &error), ExitCode::from)
}

/// Says what is wrong; gives the exit code of a loader that could not do its work.
pub fn fail(name: &str, error: &dyn Error) -> ExitCode {
    complain(name, error);
    ExitCode::from(exit::LOADER)
}

/// Says why nothing is run, or prints what was asked for; gives the exit code.
pub fn refuse(name: &str, usage: &Usage) -> ExitCode {
    match usage {
        Usage::Information(text) => {
            // A reader that has gone away wants no more.
            let _ = io::stdout().write_all(text.as_bytes());
            ExitCode::SUCCESS
        }
        Usage::Wrong(sentence) => {
            say(name, sentence);
            ExitCode::from(exit::LOADER)
        }
    }
}

/// One line on standard error: `error` with its causes.
pub fn complain(name: &str, error: &dyn Error) {
    let mut sentence = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        sentence = format!("{sentence}: {error}");
        cause = error.source();
    }
    say(name, &sentence);
}

/// One line on standard error, behind the program's name. What would not be text to a terminal is
/// spelled out: paths and arguments may hold anything.
pub fn say(name: &str, sentence: &str) {
    let words = sentence.split_whitespace().collect::<Vec<_>>();
    let line = printable(&words.join(" "));
    // Nothing better can be done where even standard error is closed.
    let _ = io::stderr().write_all(format!("{name}: {line}\n").as_bytes());
}
