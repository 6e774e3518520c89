//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use loader_core::cli::Poll;
use rpc_types::LayoutKind;

use crate::workloads::Workload;

/// A kind of device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// Threads of this machine.
    Cpu,
    /// A GPU of NVIDIA.
    Nvidia,
}

impl Kind {
    /// As it is written in results.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Nvidia => "nvidia",
        }
    }

    /// Where the image of this device and `layout` lies in the folder of images.
    pub(crate) fn image(self, layout: Layout, program: &str) -> PathBuf {
        let (folder, extension) = match self {
            Self::Cpu => ("x86_64", "so"),
            Self::Nvidia => ("nvptx64", "ptx"),
        };
        let mut path = PathBuf::from(folder);
        if layout != Layout::Line {
            path.push(layout.name());
        }
        path.join(format!("{program}.{extension}"))
    }

    /// The loader for this device.
    pub(crate) const fn loader(self) -> &'static str {
        match self {
            Self::Cpu => "loader-cpu",
            Self::Nvidia => "loader-nv",
        }
    }
}

/// The layout of the shared memory, chosen when an image is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Layout {
    /// A line for each request.
    Line,
    /// A bit for each request.
    Compact,
    /// A word for each mailbox, as LLVM's libc has it.
    Llvm,
}

impl Layout {
    /// As it is written in results.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Line => "line",
            Self::Compact => "compact",
            Self::Llvm => "llvm",
        }
    }
}

impl From<LayoutKind> for Layout {
    fn from(kind: LayoutKind) -> Self {
        match kind {
            LayoutKind::Line => Self::Line,
            LayoutKind::Compact => Self::Compact,
            LayoutKind::Llvm22 | LayoutKind::Llvm | LayoutKind::First => Self::Llvm,
        }
    }
}

/// Measures what calls cost, beside what a bare flag and the copy engine cost on the same machine.
#[derive(Clone, Debug, Parser)]
#[command(version, about)]
#[allow(clippy::struct_excessive_bools)] // they are switches
pub(crate) struct Cli {
    /// The kind of device.
    #[arg(long, value_enum, default_value = "cpu")]
    pub(crate) device_kind: Kind,
    /// Which device, counted from 0.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) device: u32,
    /// The folder of images, as `cargo xtask images` fills it [default: ../images beside this
    /// program's folder].
    #[arg(long, value_name = "FOLDER")]
    pub(crate) images: Option<PathBuf>,
    /// An image of the device program, instead of those in the folder.
    #[arg(long, value_name = "PATH", conflicts_with = "layout")]
    pub(crate) image: Vec<PathBuf>,
    /// The layouts [default: line and compact].
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(crate) layout: Vec<Layout>,
    /// The loader that `start` times [default: the one beside this program].
    #[arg(long, value_name = "PATH")]
    pub(crate) loader: Option<PathBuf>,
    /// The image that `start` times [default: `hello` in the folder of images].
    #[arg(long, value_name = "PATH")]
    pub(crate) hello: Option<PathBuf>,
    /// Only these workloads, and what their ratios need.
    #[arg(long, value_enum, value_name = "NAME,...", value_delimiter = ',')]
    pub(crate) only: Vec<Workload>,
    /// So few calls that numbers mean nothing: for tests, that results are right.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Measured repetitions of each workload [default: 5, with --quick 2].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) repetitions: Option<u32>,
    /// Ports between device and host, where a workload does not say [default: as loaders do].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub(crate) ports: Option<u32>,
    /// Threads that serve calls [default: by the number of cores].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) server_threads: Option<u32>,
    /// How the server's threads wait for calls.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) poll: Poll,
    /// How long a kernel may take, beyond what it is to take.
    #[arg(long, value_name = "SECONDS", default_value = "20", value_parser = seconds)]
    pub(crate) timeout: Duration,
    /// Write each result to this file as well, as a JSON object a line.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Compare the ratios with those in this file of earlier results: code 1 if any is worse by more
    /// than a tenth.
    #[arg(long, value_name = "FILE")]
    pub(crate) compare: Option<PathBuf>,
    /// Make a context, load an empty image, say so, and end: what `start` is compared to.
    #[arg(long, hide = true)]
    pub(crate) empty_context: bool,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let wrong = "give a number of seconds, more than 0 and at most 1e6";
    let seconds: f64 = text.parse().map_err(|_| wrong.to_owned())?;
    if seconds > 0.0 && seconds <= 1e6 {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err(wrong.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn images_lie_where_xtask_puts_them() {
        let path = |kind: Kind, layout| kind.image(layout, "x").display().to_string();
        assert_eq!(path(Kind::Cpu, Layout::Line), "x86_64/x.so");
        assert_eq!(path(Kind::Nvidia, Layout::Compact), "nvptx64/compact/x.ptx");
    }

    #[test]
    fn times_are_read() {
        assert_eq!(seconds("1.5"), Ok(Duration::from_millis(1500)));
        for text in ["", "0", "-1", "nan", "1e7", "soon"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }
}
