//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{OsStringValueParser, TypedValueParser as _};
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;
use gpurpc_top::palette::{Colours, Palette};
use gpurpc_top::state::Settings;
use loader_core::cli::Options;

/// The ways to call the program, behind its name.
pub(crate) const USAGE: &str = "[OPTIONS] IMAGE [ARGUMENTS]...
       gpurpc-top [OPTIONS] --demo
       gpurpc-top attach [OPTIONS] [PID|PATH]
       gpurpc-top completions SHELL";

/// The option for what tables and records are written to.
pub(crate) const OUTPUT: &str = "--output";

/// Runs a GPU image and shows what it asks of its host.
#[derive(Clone, Debug, Parser)]
#[command(
    version,
    about,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true,
    subcommand_help_heading = "Other commands"
)]
pub(crate) struct Top {
    /// What else can be done.
    #[command(subcommand)]
    pub(crate) action: Option<Action>,
    /// The image (`-` is standard input), then what the program gets as its arguments.
    #[arg(required_unless_present = "demo", trailing_var_arg = true, value_names = ["IMAGE", "ARGUMENTS"], num_args = 1..)]
    pub(crate) command: Vec<OsString>,
    /// Run a program that is linked in, on the CPU device: for as long as it is watched, without a
    /// terminal for two seconds.
    #[arg(long, conflicts_with = "command")]
    pub(crate) demo: bool,
    /// The demo ends when it is told to.
    #[arg(long, hide = true, requires = "demo")]
    pub(crate) watched: bool,
    /// How it is shown.
    #[command(flatten)]
    pub(crate) show: Show,
    /// How it is run.
    #[command(flatten, next_help_heading = "Options of the loader")]
    pub(crate) options: Options,
}

/// What else can be done.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Action {
    /// Watch a loader that runs already.
    #[command(override_usage = "gpurpc-top attach [OPTIONS] [PID|PATH]")]
    Attach(Attach),
    /// Print a script that completes this program's options in a shell.
    #[command(override_usage = "gpurpc-top completions SHELL")]
    Completions {
        /// The shell.
        shell: Shell,
    },
}

/// Which loader.
#[derive(Args, Clone, Debug)]
pub(crate) struct Attach {
    /// How it is shown.
    #[command(flatten)]
    pub(crate) show: Show,
    /// The loader's process, or the file of one with `--stats PATH`: digits only are a process, and
    /// `./123` is a file [default: the one that runs; of several, a list].
    #[arg(
        value_name = "PID|PATH",
        value_parser = OsStringValueParser::new().try_map(loader),
        value_hint = ValueHint::FilePath
    )]
    pub(crate) loader: Option<Loader>,
}

/// What a loader is found by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Loader {
    /// The number of its process.
    Pid(u32),
    /// Its file of statistics.
    Path(PathBuf),
}

fn loader(text: OsString) -> Result<Loader, String> {
    let bytes = text.as_encoded_bytes();
    if bytes.is_empty() {
        return Err("give a process or a file".to_owned());
    }
    let digits = text
        .to_str()
        .filter(|_| bytes.iter().all(u8::is_ascii_digit));
    match digits.map(str::parse) {
        None => Ok(Loader::Path(text.into())),
        Some(Ok(pid)) => Ok(Loader::Pid(pid)),
        Some(Err(_)) => {
            Err("no process has this number (before the name of a file put ./)".to_owned())
        }
    }
}

/// In which form records are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    #[default]
    Table,
    /// One JSON value.
    Json,
    /// A JSON object a line.
    Jsonl,
    /// A line for each opcode.
    Csv,
}

/// Which colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Choice {
    /// Those of the terminal.
    #[default]
    Default,
    /// Those that everybody can tell apart.
    ColourBlind,
    /// None, as with NO_COLOR.
    Mono,
}

/// How a run is shown.
#[derive(Args, Clone, Debug)]
pub(crate) struct Show {
    /// No dashboard: print a table at the end, or of a loader that runs already its state now.
    /// Without a terminal on standard output this is the default.
    #[arg(long, conflicts_with = "batch")]
    pub(crate) once: bool,
    /// No dashboard: print a table at intervals and at the end.
    #[arg(long)]
    pub(crate) batch: bool,
    /// With --batch, print so many tables at most; the program runs on.
    #[arg(short = 'n', long, value_name = "N", requires = "batch")]
    pub(crate) count: Option<u64>,
    /// With --batch, the seconds between two tables (fractions allowed).
    #[arg(short = 'd', long, value_name = "SECONDS", requires = "batch", default_value = "1", value_parser = seconds)]
    pub(crate) delay: Duration,
    /// Print this instead of a table. Unless there is --output, it goes to standard output, and what
    /// the program prints there goes to standard error. No dashboard.
    #[arg(long, value_enum, default_value_t, hide_default_value = true)]
    pub(crate) format: Format,
    /// Write tables, or what --format says, to this file. No dashboard.
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Frames of the dashboard in a second, at most; without a change there is none.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10))]
    pub(crate) fps: u32,
    /// Colours of the dashboard; NO_COLOR stands for mono.
    #[arg(long, value_enum, value_name = "COLOURS")]
    pub(crate) palette: Option<Choice>,
    /// Draw with ASCII only.
    #[arg(long)]
    pub(crate) ascii: bool,
    /// Call a port stuck whose exchange has been in one state for longer.
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    pub(crate) stuck: Duration,
    /// Call a handler slow whose p99 is longer.
    #[arg(long, value_name = "SECONDS", default_value = "0.01", value_parser = seconds)]
    pub(crate) slow: Duration,
}

impl Show {
    /// Whether a dashboard is not wanted, terminal or not.
    pub(crate) fn is_plain(&self) -> bool {
        self.once || self.batch || self.format != Format::Table || self.output.is_some()
    }

    pub(crate) fn settings(&self) -> Settings {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Settings {
            stuck_ns: ns(self.stuck),
            slow_ns: ns(self.slow),
            ..Settings::default()
        }
    }

    pub(crate) fn colours(&self) -> Palette {
        let none = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let colours = match self.palette {
            Some(Choice::ColourBlind) => Colours::ColourBlind,
            Some(Choice::Mono) => Colours::Mono,
            None if none => Colours::Mono,
            None | Some(Choice::Default) => Colours::Default,
        };
        Palette {
            colours,
            ascii: self.ascii,
        }
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: Option<f64> = text.parse().ok();
    seconds
        .filter(|seconds| (0.001..1e9).contains(seconds))
        .map(Duration::from_secs_f64)
        .ok_or_else(|| "give a number of seconds, at least 0.001".to_owned())
}
