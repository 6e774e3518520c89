//! How long a program takes to say its first word, from the start of its process on.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Instant;

use super::{Bench, Workload, median, row};
use crate::cli::Layout;
use crate::row::{Ratio, Served, Unit};
use crate::session::Trouble;
use crate::{NAME, beside, images_folder};

/// A folder for the driver to keep what it compiles; removed when it is dropped.
struct Cache(PathBuf);

impl Cache {
    fn new() -> Result<Self, Trouble> {
        let folder = std::env::temp_dir().join(format!("{NAME}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).map_err(|error| {
            let place = folder.display();
            Trouble::Wrong(format!("the folder {place} cannot be made: {error}"))
        })?;
        Ok(Self(folder))
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Milliseconds until `command`'s first line, with an empty cache.
fn first_line(bench: &Bench, mut command: Command, wanted: &str) -> Result<f64, Trouble> {
    let program = command.get_program().to_string_lossy().into_owned();
    let wrong = |reason: String| Trouble::Wrong(format!("{program} {reason}"));
    let cache = Cache::new()?;
    command
        .env("CUDA_CACHE_PATH", &cache.0)
        // What this program has set for itself, a fresh one finds out by itself.
        .env_remove("CUDA_MODULE_LOADING")
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let begun = Instant::now();
    let mut child = command
        .spawn()
        .map_err(|error| wrong(format!("cannot be started: {error}")))?;
    let (sender, receiver) = channel();
    if let Some(out) = child.stdout.take() {
        thread::spawn(move || {
            let mut out = BufReader::new(out);
            let mut line = String::new();
            let _ = out.read_line(&mut line);
            let _ = sender.send((line, begun.elapsed()));
            // Read to the end, so that nobody waits to write.
            let _ = std::io::copy(&mut out, &mut std::io::sink());
        });
    }
    let answer = receiver.recv_timeout(bench.options.timeout);
    if answer.is_err() {
        // It has ended already, or has to.
        let _ = child.kill();
    }
    let status = child.wait();
    let Ok((line, time)) = answer else {
        let seconds = bench.options.timeout.as_secs_f64();
        return Err(wrong(format!("said nothing for {seconds} s")));
    };
    if !status.is_ok_and(|status| status.success()) || !line.starts_with(wanted) {
        let line = line.trim_end();
        return Err(wrong(format!(
            "failed, or said '{line}' for its first line"
        )));
    }
    Ok(time.as_secs_f64() * 1e3)
}

pub(super) fn start(bench: &mut Bench) -> Result<(), Trouble> {
    let options = &bench.options;
    let kind = options.device_kind;
    let loader = options
        .loader
        .clone()
        .unwrap_or_else(|| beside(kind.loader()));
    let in_folder = || images_folder(options).join(kind.image(Layout::Line, "hello"));
    let hello = options.hello.clone().unwrap_or_else(in_folder);
    let device = options.device.to_string();
    let hello = || {
        let mut command = Command::new(&loader);
        command.args(["--device", &device]).arg(&hello);
        first_line(bench, command, "hello ")
    };
    let context = || {
        let own = std::env::current_exe().unwrap_or_else(|_| NAME.into());
        let mut command = Command::new(own);
        command.args(["--empty-context", "--device-kind", kind.name()]);
        command.args(["--device", &device]);
        first_line(bench, command, "ready")
    };
    // Programs and libraries are read from disk once.
    context()?;
    hello()?;
    let (mut contexts, mut hellos) = (Vec::new(), Vec::new());
    for _ in 0..bench.repetitions() {
        contexts.push(context()?);
        hellos.push(hello()?);
    }
    let floor = median(&contexts);
    for (workload, values) in [("context", contexts), ("start", hellos)] {
        let mut row = row(Workload::Start, Served::default(), (1, 1), 0);
        row.workload = workload;
        row.unit = Unit::Milliseconds;
        row.ratio = Some(Ratio {
            value: median(&values) / floor,
            to: "context",
        });
        row.values = values;
        bench.output.row(&row)?;
    }
    Ok(())
}
