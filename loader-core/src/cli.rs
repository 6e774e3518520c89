//! The command line that all loaders share.

use std::ffi::OsString;
use std::fmt;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::error::ErrorKind;
use clap::{Args, CommandFactory, FromArgMatches, Parser, ValueEnum};
use rpc_libc::Policy;
use rpc_types::layout::MAX_PORTS;

use crate::device::{DeviceError, DeviceInfo, Grid};
use crate::image::MAX_IMAGE;

/// The longest message that is taken unless something else is asked for.
pub const DEFAULT_MAX_MESSAGE: u64 = 64 << 20;
/// Bytes of all messages in flight together: no message can be longer.
pub const MAX_IN_FLIGHT: u64 = 1 << 30;

/// What stands for the emulator in place of a device's number.
const EMULATOR: &str = "emu";

/// Which device an image runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceChoice {
    /// A real one, counted from 0.
    Number(u32),
    /// The emulator, where the device API has one.
    Emulator,
}

impl Default for DeviceChoice {
    fn default() -> Self {
        Self::Number(0)
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Emulator => f.write_str(EMULATOR),
        }
    }
}

impl DeviceChoice {
    /// The number, for an API that has no emulator of its devices, which are `what`.
    ///
    /// # Errors
    /// When the emulator was asked for.
    pub fn number(self, what: &str) -> Result<u32, DeviceError> {
        match self {
            Self::Number(number) => Ok(number),
            Self::Emulator => Err(DeviceError::Unavailable(format!(
                "--device {EMULATOR} is for amdgcn code objects: {what} are not emulated, give a \
                 number"
            ))),
        }
    }
}

/// How the server's threads wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Poll {
    /// Never sleep: the shortest calls, a core for each thread.
    Spin,
    /// Spin after traffic, sleep when idle.
    #[default]
    Adaptive,
    /// Sleep between looks: the least load.
    Sleep,
}

/// Where statistics go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stats {
    /// Nowhere.
    Off,
    /// To this file.
    At(PathBuf),
}

/// What a program may do only if its user says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Class {
    /// Run commands of the host's shell.
    System,
}

/// How an image is run: the options of every loader.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Threads of a block, in x.
    #[arg(long, visible_alias = "threads-x", value_name = "N", default_value_t = 1, value_parser = count, allow_negative_numbers = true)]
    pub threads: u32,
    /// Threads of a block, in y.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count, allow_negative_numbers = true)]
    pub threads_y: u32,
    /// Threads of a block, in z.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count, allow_negative_numbers = true)]
    pub threads_z: u32,
    /// Blocks, in x.
    #[arg(long, visible_alias = "blocks-x", value_name = "N", default_value_t = 1, value_parser = count, allow_negative_numbers = true)]
    pub blocks: u32,
    /// Blocks, in y.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count, allow_negative_numbers = true)]
    pub blocks_y: u32,
    /// Blocks, in z.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count, allow_negative_numbers = true)]
    pub blocks_z: u32,
    /// Which device, counted from 0; `emu` is the emulator of an AMD GPU.
    #[arg(long, value_name = "N|emu", default_value_t, value_parser = device, allow_negative_numbers = true)]
    pub device: DeviceChoice,
    /// The library through which AMD GPUs are reached [default: what GPURPC_HSA_RUNTIME names, else
    /// libhsa-runtime64.so.1].
    #[arg(long, value_name = "PATH")]
    pub hsa_runtime: Option<PathBuf>,
    /// Ports between device and host [default: what the image wishes, else what the grid can use].
    #[arg(long, value_name = "N", value_parser = |text: &str| number(text, 1..=MAX_PORTS), allow_negative_numbers = true)]
    pub ports: Option<u32>,
    /// Stack of each device thread, in bytes (k, m, g: times 1024).
    #[arg(long, value_name = "BYTES", value_parser = positive_size, allow_negative_numbers = true)]
    pub stack_size: Option<u64>,
    /// How hard the driver's compiler works on PTX, from 0, the shortest start, to 4, the fastest
    /// code [default: the driver's choice].
    #[arg(long, value_name = "N", value_parser = |text: &str| number(text, 0..=4), allow_negative_numbers = true)]
    pub jit_level: Option<u32>,
    /// Memory that the device program can allocate, in bytes (k, m, g) [default: 1g, or a quarter of
    /// the device's free memory if that is less].
    #[arg(long, value_name = "BYTES", value_parser = size, allow_negative_numbers = true)]
    pub heap_size: Option<u64>,
    /// End the run after this time (fractions allowed), with code 124.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true)]
    pub timeout: Option<Duration>,
    /// How the server's threads wait for calls.
    #[arg(long, value_enum, default_value_t)]
    pub poll: Poll,
    /// Threads that serve calls [default: by the number of cores].
    #[arg(long, value_name = "N", value_parser = |text: &str| number(text, 1..=64), allow_negative_numbers = true)]
    pub server_threads: Option<u32>,
    /// The longest message that the host takes, in bytes (k, m, g).
    #[arg(long, value_name = "BYTES", default_value = "64m", value_parser = message_size, allow_negative_numbers = true)]
    pub max_message: u64,
    /// Let the program do this as well.
    #[arg(long, value_name = "CLASS", value_enum)]
    pub allow: Vec<Class>,
    /// Run this kernel, which takes no parameters, on the grid instead of the program; then the
    /// program's arguments have no use, and neither constructors nor destructors run.
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub kernel: Option<String>,
    /// Print registers, stack and memory of each kernel before the run.
    #[arg(long)]
    pub print_resource_usage: bool,
    /// Publish what is called in this file, for monitors, instead of one of this user's own; `off`
    /// publishes nothing. What is there already is replaced only if it is empty or statistics.
    #[arg(long, value_name = "PATH|off", value_parser = stats)]
    pub stats: Option<Stats>,
    /// Do not remove that file when the run has ended.
    #[arg(long)]
    pub keep_stats: bool,
    /// Write what was called, as JSON lines, when the run has ended.
    #[arg(long, value_name = "PATH")]
    pub report: Vec<PathBuf>,
    /// End when this process, which has started this one, does, and leave it the file of statistics.
    #[arg(long, hide = true, value_name = "PID")]
    pub die_with_parent: Option<i32>,
}

impl Options {
    /// What the program may ask of the host.
    pub fn policy(&self) -> Policy {
        let mut policy = Policy::default();
        policy.system = self.allow.contains(&Class::System);
        policy
    }

    /// The grid, if `info`'s device takes it.
    ///
    /// # Errors
    /// [`DeviceError::Limit`] for the first number that is too large.
    pub fn grid(&self, info: &DeviceInfo) -> Result<Grid, DeviceError> {
        let grid = Grid {
            blocks: [self.blocks, self.blocks_y, self.blocks_z],
            threads: [self.threads, self.threads_y, self.threads_z],
        };
        info.check(grid)?;
        Ok(grid)
    }
}

/// The command line of a loader.
#[derive(Clone, Debug, Parser)]
#[command(version, about = "Runs a GPU image and serves its calls")]
pub struct Cli {
    /// How it is run.
    #[command(flatten)]
    pub options: Options,
    /// The image (`-` is standard input), then what the program gets as its arguments.
    // One list, so that nothing behind the image is ever taken for an option of the loader.
    #[arg(required = true, trailing_var_arg = true, value_names = ["IMAGE", "ARGUMENTS"], num_args = 1..)]
    pub command: Vec<OsString>,
}

/// Why a command line was not taken.
#[derive(Debug)]
pub enum Usage {
    /// `--help` or `--version`: print this to standard output; nothing is wrong.
    Information(String),
    /// One sentence that says what is wrong.
    Wrong(String),
}

/// Parses the arguments behind the program's name, which is `name`, of a program that takes an image
/// and its arguments.
///
/// # Errors
/// When nothing is to be run.
pub fn parse<C: CommandFactory + FromArgMatches>(
    name: &'static str,
    arguments: impl IntoIterator<Item = OsString>,
) -> Result<C, Usage> {
    parse_as(name, "[OPTIONS] IMAGE [ARGUMENTS]...", arguments)
}

/// As [`parse`], for a program that takes `usage`.
///
/// # Errors
/// When nothing is to be run.
pub fn parse_as<C: CommandFactory + FromArgMatches>(
    name: &'static str,
    usage: &str,
    arguments: impl IntoIterator<Item = OsString>,
) -> Result<C, Usage> {
    C::command()
        .name(name)
        .no_binary_name(true)
        .override_usage(format!("{name} {usage}"))
        .try_get_matches_from(arguments)
        .and_then(|matches| C::from_arg_matches(&matches))
        .map_err(|error| match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
                Usage::Information(error.render().to_string())
            }
            _ => Usage::Wrong(sentence(&error.render().to_string())),
        })
}

/// The first paragraph of what clap says, in one line: after it come tips and the usage.
fn sentence(rendered: &str) -> String {
    let paragraph = rendered.split("\n\n").next().unwrap_or_default();
    let line = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = line.strip_prefix("error: ").unwrap_or(&line);
    format!("{line} (--help lists the options)")
}

/// A whole number in `range`: digits only.
fn number(text: &str, range: RangeInclusive<u32>) -> Result<u32, String> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let value = text.parse().ok().filter(|value| range.contains(value));
    value.filter(|_| digits).ok_or_else(|| {
        let (least, most) = range.into_inner();
        format!("give a whole number from {least} to {most}")
    })
}

fn device(text: &str) -> Result<DeviceChoice, String> {
    if text == EMULATOR {
        return Ok(DeviceChoice::Emulator);
    }
    number(text, 0..=u32::MAX)
        .map(DeviceChoice::Number)
        .map_err(|said| format!("{said}, or {EMULATOR}"))
}

fn count(text: &str) -> Result<u32, String> {
    number(text, 1..=u32::MAX)
}

/// A number of bytes, perhaps with a suffix.
fn size(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.trim_end_matches(['k', 'K', 'm', 'M', 'g', 'G']) {
        digits if text.len() == digits.len() => (digits, 0),
        digits if text.len() == digits.len() + 1 => match text.as_bytes()[digits.len()] {
            b'k' | b'K' => (digits, 10),
            b'm' | b'M' => (digits, 20),
            _ => (digits, 30),
        },
        _ => (text, 0),
    };
    let wrong = "give a whole number of bytes, perhaps followed by k, m or g";
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(wrong.to_owned());
    }
    let number: Option<u64> = digits.parse().ok();
    number
        .and_then(|number| number.checked_mul(1 << shift))
        .filter(|&bytes| bytes <= 1 << 48)
        .ok_or_else(|| "no device has as many bytes".to_owned())
}

fn positive_size(text: &str) -> Result<u64, String> {
    match size(text)? {
        0 => Err("it must be at least 1".to_owned()),
        bytes => Ok(bytes),
    }
}

fn message_size(text: &str) -> Result<u64, String> {
    match positive_size(text)? {
        bytes if bytes > MAX_IN_FLIGHT => Err("the most is 1g".to_owned()),
        bytes => Ok(bytes),
    }
}

#[expect(clippy::unnecessary_wraps, reason = "clap takes parsers that may fail")]
fn stats(text: &str) -> Result<Stats, String> {
    Ok(match text {
        "off" => Stats::Off,
        path => Stats::At(path.into()),
    })
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text
        .parse()
        .map_err(|_| "give a number of seconds".to_owned())?;
    if !(seconds > 0.0 && seconds <= 1e9) {
        return Err("it must be more than 0 and at most 1e9".to_owned());
    }
    Ok(Duration::from_secs_f64(seconds))
}

const _: () = assert!(MAX_IMAGE == 1 << 30 && MAX_IN_FLIGHT == 1 << 30);

#[cfg(test)]
mod tests {
    use super::*;

    fn cli(line: &str) -> Result<Cli, String> {
        parse("loader", line.split_whitespace().map(OsString::from)).map_err(|usage| match usage {
            Usage::Wrong(said) => said,
            Usage::Information(text) => format!("information: {text}"),
        })
    }

    #[test]
    fn the_program_gets_all_behind_the_image() {
        for (line, command) in [
            ("image", vec!["image"]),
            (
                "--threads 2 image --threads 3 --frob -x",
                vec!["image", "--threads", "3", "--frob", "-x"],
            ),
            ("image -- a --help", vec!["image", "--", "a", "--help"]),
            ("- --version", vec!["-", "--version"]),
            ("-- --odd", vec!["--odd"]),
        ] {
            assert_eq!(cli(line).unwrap().command, command, "{line}");
        }
    }

    #[test]
    fn values_are_read() {
        let options = cli(
            "--threads-x 2 --threads-y 3 --blocks 4 --blocks-z 5 --ports 65536 --stack-size 64k \
             --heap-size 0 --timeout 1.5 --poll spin --max-message 1g --report a --report b image",
        )
        .unwrap()
        .options;
        assert_eq!((options.threads, options.threads_y), (2, 3));
        assert_eq!((options.blocks, options.blocks_z), (4, 5));
        assert_eq!(options.ports, Some(65536));
        assert_eq!(options.stack_size, Some(64 << 10));
        assert_eq!(options.heap_size, Some(0));
        assert_eq!(options.timeout, Some(Duration::from_millis(1500)));
        assert_eq!(options.poll, Poll::Spin);
        assert_eq!(options.max_message, 1 << 30);
        assert_eq!(options.report.len(), 2);
        assert_eq!((options.stats, options.keep_stats), (None, false));
        let options = cli("--stats off --keep-stats image").unwrap().options;
        assert_eq!(
            (options.stats, options.keep_stats),
            (Some(Stats::Off), true)
        );
        let options = cli("--stats ./off image").unwrap().options;
        assert_eq!(options.stats, Some(Stats::At("./off".into())));
        let options = cli("--kernel one image").unwrap().options;
        assert_eq!(options.kernel.as_deref(), Some("one"));
        let options = cli("image").unwrap().options;
        assert_eq!(options.kernel, None);
        assert_eq!(options.max_message, DEFAULT_MAX_MESSAGE);
        assert_eq!(options.heap_size, None);
    }

    #[test]
    fn wrong_values_get_one_sentence() {
        for line in [
            "",
            "--frob image",
            "--threads 0 image",
            "--threads x image",
            "--threads -1 image",
            "--blocks 4294967296 image",
            "--ports 0 image",
            "--ports 65537 image",
            "--stack-size 0 image",
            "--stack-size 1kk image",
            "--stack-size m image",
            "--heap-size +1 image",
            "--heap-size 99999999999g image",
            "--max-message 1025m image",
            "--max-message 0 image",
            "--timeout 0 image",
            "--timeout nan image",
            "--timeout -1 image",
            "--timeout soon image",
            "--poll often image",
            "--server-threads 0 image",
            "--threads 1 --threads 2 image",
            "--kernel= image",
        ] {
            let said = cli(line).unwrap_err();
            assert!(
                !said.contains('\n') && !said.starts_with("information"),
                "{line}: {said}"
            );
        }
        assert!(cli("").unwrap_err().contains("IMAGE"));
        // The option is named, and what it takes.
        for (line, words) in [
            (
                "--threads -1 image",
                ["--threads <N>", "from 1 to 4294967295"],
            ),
            (
                "--blocks +1 image",
                ["--blocks <N>", "from 1 to 4294967295"],
            ),
            (
                "--device 0x1 image",
                ["--device <N|emu>", "from 0 to 4294967295, or emu"],
            ),
            ("--ports 1e99 image", ["--ports <N>", "from 1 to 65536"]),
            ("--timeout -1 image", ["--timeout <SECONDS>", "more than 0"]),
            (
                "--heap-size 18446744073709551616 image",
                ["--heap-size <BYTES>", "no device has as many"],
            ),
        ] {
            let said = cli(line).unwrap_err();
            assert!(words.iter().all(|word| said.contains(word)), "{said}");
        }
    }

    #[test]
    fn help_is_no_error() {
        let said = cli("--help").unwrap_err();
        assert!(said.contains("loader [OPTIONS] IMAGE"), "{said}");
        assert!(!said.contains("die-with-parent"));
        assert!(
            cli("--version")
                .unwrap_err()
                .starts_with("information: loader 0")
        );
    }

    #[test]
    fn grids_are_checked() {
        let info = DeviceInfo {
            name: "a device".to_owned(),
            lanes: 32,
            resident_warps: 4,
            max_threads: 1024,
            max_block: [1024, 1024, 64],
            max_grid: [2_147_483_647, 65535, 65535],
        };
        let grid = |line: &str| cli(line).unwrap().options.grid(&info);
        assert_eq!(grid("image").unwrap(), Grid::ONE);
        assert_eq!(
            grid("--threads 5000 image").unwrap_err().to_string(),
            "--threads 5000 is more than the 1024 that a device takes"
        );
        for line in [
            "--blocks 4294967295 image",
            "--blocks-y 65536 image",
            "--threads-z 65 image",
            "--threads 64 --threads-y 17 image",
            "--threads 1024 --threads-y 1024 --threads-z 64 image",
        ] {
            assert!(grid(line).is_err(), "{line}");
        }
    }
}
