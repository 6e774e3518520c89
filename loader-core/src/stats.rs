//! What happens, published for monitors: by a file, unless that cannot be written. A run without
//! statistics is a run all the same.

use std::ffi::OsString;
use std::time::{Duration, SystemTime};

use rpc_stats::{Recorder, RunEnd, RunInfo, Snapshot, Source, Writer};

use crate::cli::{Options, Stats as To};
use crate::device::{DeviceInfo, Grid};
use crate::program::say;

/// How long the end waits for the last snapshot: its file system may not answer.
const LAST: Duration = Duration::from_millis(500);
/// Arguments of a program that are shown, and bytes of each.
const SHOWN: (usize, usize) = (256, 1024);

/// A file that a run is about to publish in.
pub(crate) struct Stats {
    name: &'static str,
    writer: Writer,
    run: RunInfo,
}

impl Stats {
    /// Makes the file as the command line says, with what is known of the run; `None` if there is
    /// to be none, or, after a warning, if it cannot be made.
    pub(crate) fn create(
        name: &'static str,
        options: &Options,
        arguments: &[OsString],
        (device, grid): (&DeviceInfo, Grid),
        layout: &str,
    ) -> Option<Self> {
        let run = RunInfo {
            pid: std::process::id(),
            loader: name.to_owned(),
            command: arguments.iter().take(SHOWN.0).map(shown).collect(),
            device: device.name.clone(),
            layout: layout.to_owned(),
            lanes: device.lanes,
            blocks: grid.blocks,
            threads: grid.threads,
            started_unix_ms: SystemTime::now()
                .duration_since(SystemTime::UNIX_EPOCH)
                .map_or(0, |since| since.as_millis() as u64),
            rank: rank(),
        };
        let first = Snapshot {
            run: run.clone(),
            ..Snapshot::default()
        };
        let writer = match &options.stats {
            Some(To::Off) => return None,
            Some(To::At(path)) => Writer::create_at(path, &first, options.keep_stats),
            None => match options.die_with_parent.map(u32::try_from) {
                Some(Ok(parent)) if !options.keep_stats => Writer::create_for(parent, &first),
                _ => Writer::create(&first, options.keep_stats),
            },
        };
        match writer {
            Ok(writer) => Some(Self { name, writer, run }),
            Err(error) => {
                warn(name, &error);
                None
            }
        }
    }

    /// Publishes from now on.
    pub(crate) fn start(self, source: Option<Source>) -> Option<Recorder> {
        let name = self.name;
        let recorder = Recorder::start(self.writer, self.run, source, move |error| {
            warn(name, error);
        });
        recorder.map_err(|error| warn(name, &error)).ok()
    }
}

/// Publishes the end of a run: `false` if something is still to be waited for.
pub(crate) fn finish(recorder: Option<Recorder>, code: u8, cancelled: u64) -> bool {
    recorder.is_none_or(|recorder| recorder.finish(RunEnd { code, cancelled }, LAST))
}

fn warn(name: &str, error: &dyn std::error::Error) {
    say(name, &format!("no statistics are published: {error}"));
}

/// The start of an argument.
fn shown(argument: &OsString) -> String {
    let text = argument.to_string_lossy();
    let end = text.floor_char_boundary(SHOWN.1);
    text[..end].to_owned()
}

/// What launchers tell their processes.
const RANKS: [&str; 4] = [
    "OMPI_COMM_WORLD_RANK",
    "PMIX_RANK",
    "PMI_RANK",
    "SLURM_PROCID",
];

fn rank() -> Option<u32> {
    let told = |name| std::env::var(name).ok()?.parse().ok();
    RANKS.into_iter().find_map(told)
}
