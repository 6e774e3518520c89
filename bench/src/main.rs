#![doc = include_str!("../README.md")]
//!
//! # Map
//!
//! | module | what is in it |
//! |---|---|
//! | `cli` | the command line |
//! | `workloads` | what is measured, a file for each kind |
//! | `session` | the device, its image and the server behind it; kernels under a time limit |
//! | `busy` | a server to compare with: a thread that does nothing but look and answer |
//! | `handlers` | what the device program calls besides the built-in services |
//! | `row` | a result; medians |
//! | `goals` | what results are to be on an H200 |
//! | `output` | the table and the JSON lines |
//! | `compare` | `--compare` |
//! | `machine` | where results come from |
// Counts become parts of rates, of which a few digits are looked at.
#![allow(clippy::cast_precision_loss)]

mod busy;
mod cli;
mod compare;
mod goals;
mod handlers;
mod machine;
mod output;
mod row;
mod session;
mod workloads;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use loader_core::cli::parse_as;
use loader_core::device::DeviceError;
use loader_core::program::{complain, fail, refuse, say};
use loader_core::{exit, run};

use crate::cli::{Cli, Kind, Layout};
use crate::output::{Output, print};
use crate::session::{Session, Trouble};
use crate::workloads::{Bench, Workload};

/// How the program calls itself.
const NAME: &str = "gpurpc-bench";
/// A workload was wrong or took too long, or a ratio is worse than before.
const FAILED: u8 = 1;

fn main() -> ExitCode {
    let options: Cli = match parse_as(NAME, "[OPTIONS]", std::env::args_os().skip(1)) {
        Ok(options) => options,
        Err(usage) => return refuse(NAME, &usage),
    };
    if options.empty_context {
        return empty_context(&options);
    }
    match measure(&options) {
        Ok(failures) => ExitCode::from(if failures == 0 { 0 } else { FAILED }),
        Err(error) => fail(NAME, &*error),
    }
}

/// What a process that `start` compares to does.
fn empty_context(options: &Cli) -> ExitCode {
    let made = match options.device_kind {
        Kind::Cpu => Ok(()),
        Kind::Nvidia => loader_nv::measure::empty_context(options.device),
    };
    match made {
        Ok(()) => {
            print("ready\n");
            run::leave(0)
        }
        Err(error) => fail(NAME, &error),
    }
}

/// Measures everything that is asked for: how many workloads failed, and ratios are worse.
fn measure(options: &Cli) -> Result<usize, Box<dyn Error>> {
    if options.device_kind == Kind::Nvidia {
        // Before there are threads.
        loader_nv::prepare_environment()?;
    }
    let before = options.compare.as_deref().map(compare::read).transpose()?;
    let mut bench = Bench::new(options, Output::create(options.json.as_deref())?);
    let images = images(options);
    let mut failures = 0;
    for (index, path) in images.iter().enumerate() {
        let mut session = Session::open(options, path)?;
        if index == 0 {
            let name = session.device.info().name.clone();
            let kind = options.device_kind;
            bench
                .output
                .begin(machine::describe(kind, &name, options.quick));
        }
        for workload in Workload::ALL {
            if !bench.wants(workload, index == 0) {
                continue;
            }
            if let Err(trouble) = workloads::run(workload, &mut session, &mut bench) {
                failures += 1;
                let layout = session.layout().name();
                complain(&format!("{NAME}: {} ({layout})", workload.name()), &trouble);
                if trouble.is_final() {
                    // Freeing what the device uses would wait for it.
                    run::leave(code(&trouble));
                }
                session.recover();
            }
        }
    }
    if let Some(before) = before {
        let (lines, worse) = compare::compare(&before, bench.output.rows());
        print(&format!("\nratios then and now\n{}\n", lines.join("\n")));
        if worse > 0 {
            say(
                NAME,
                &format!("{worse} ratios are worse by more than a tenth"),
            );
        }
        failures += worse;
    }
    Ok(failures)
}

/// The exit code of a run that ends early.
fn code(trouble: &Trouble) -> u8 {
    match trouble {
        Trouble::Stuck(_) => exit::TIMEOUT,
        Trouble::Device(DeviceError::Fault(_)) => exit::FAULT,
        _ => exit::LOADER,
    }
}

/// The folder of images.
fn images_folder(options: &Cli) -> PathBuf {
    options
        .images
        .clone()
        .unwrap_or_else(|| beside("../images"))
}

/// A path from this program's folder on.
fn beside(path: &str) -> PathBuf {
    let own = std::env::current_exe().unwrap_or_default();
    own.parent().unwrap_or(Path::new(".")).join(path)
}

/// The images to measure with: each has a layout of its own.
fn images(options: &Cli) -> Vec<PathBuf> {
    if !options.image.is_empty() {
        return options.image.clone();
    }
    let layouts = if options.layout.is_empty() {
        &[Layout::Line, Layout::Compact][..]
    } else {
        &options.layout
    };
    let folder = images_folder(options);
    let path = |layout: &Layout| folder.join(options.device_kind.image(*layout, "bench-device"));
    layouts.iter().map(path).collect()
}
