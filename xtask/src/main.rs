//! `cargo xtask`: builds the GPU images and runs the workspace's checks.
//!
//! [`toolchain`] finds the compiler for the GPUs, [`images`] and [`c`] build with it, [`ptx`] checks what came
//! out; [`suite`], [`bundle`], [`bench`], [`run`] and [`picture`] are what people start.

mod bench;
mod bundle;
mod c;
#[cfg(feature = "bindings")]
mod hsa;
mod images;
mod picture;
mod process;
mod ptx;
mod run;
mod suite;
mod target;
mod toolchain;
mod workspace;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};

use target::{Layout, Target};
use workspace::Workspace;

/// The workspace's own commands.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Find the GPU toolchain, or install it when root on Debian.
    Setup,
    /// Build the programs under examples/ into target/images/, those in C as c-NAME.
    Images(ImagesArgs),
    /// Check PTX files for atomics and fences without the ordering or scope they need.
    CheckPtx {
        /// PTX files.
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Build one program and run it.
    Run(RunArgs),
    /// Build the benchmarks and run them on the CPU device.
    Bench(BenchArgs),
    /// Draw the dashboard of a demo run into docs/gpurpc-top.svg.
    Picture,
    /// Set up the toolchain, build all images, run all tests and the loom models.
    Test,
    /// Pack programs, images and run.sh into dist/, for a machine with a GPU and no Rust.
    Bundle,
    /// Make hsa-sys/src/bindings.rs anew from the headers of the HSA runtime (needs libclang).
    HsaSys {
        /// The folder with `hsa/hsa.h` [default: where packages put it].
        #[arg(long, value_name = "FOLDER")]
        include: Option<PathBuf>,
    },
    /// Formatting, clippy, cargo deny, typos, then `test`.
    Ci,
}

/// What `images` builds.
#[derive(Args, Default)]
struct ImagesArgs {
    /// Programs (all if none is named).
    names: Vec<String>,
    /// Targets (all if none is given).
    #[arg(long, value_enum)]
    target: Vec<Target>,
    /// Layouts (all if none is given).
    #[arg(long, value_enum)]
    layout: Vec<Layout>,
    /// Also assemble each PTX with this ptxas for sm_90.
    #[arg(long, env = "PTXAS")]
    ptxas: Option<PathBuf>,
    /// Keep what ptxas made, as NAME.cubin beside NAME.ptx.
    #[arg(long, requires = "ptxas")]
    cubin: bool,
}

/// What `run` runs.
#[derive(Args)]
struct RunArgs {
    /// The program.
    name: String,
    /// The device.
    #[arg(long, value_enum, default_value = "x86_64")]
    target: Target,
    /// The layout of the shared memory.
    #[arg(long, value_enum, default_value = "line")]
    layout: Layout,
    /// The program's arguments.
    args: Vec<String>,
    /// Loader options, after `--`.
    #[arg(last = true)]
    loader: Vec<String>,
}

/// How `bench` measures.
#[derive(Args)]
struct BenchArgs {
    /// Options of gpurpc-bench, such as `--only increment,noop`, `--json FILE` or `--help`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<String>,
}

fn main() -> ExitCode {
    match dispatch(Cli::parse().command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(command: Command) -> Result<ExitCode> {
    match command {
        Command::Setup => {
            let toolchain = toolchain::ensure(&Workspace::load()?)?;
            println!("{toolchain}");
        }
        Command::Images(args) => {
            images::build(&Workspace::load()?, &args)?;
        }
        Command::CheckPtx { files } => ptx::check_files(&files)?,
        Command::Run(args) => return run::run(&Workspace::load()?, &args),
        Command::Bench(args) => return bench::bench(&Workspace::load()?, &args),
        Command::Picture => picture::picture(&Workspace::load()?)?,
        Command::Test => suite::test(&Workspace::load()?)?,
        Command::Bundle => bundle::bundle(&Workspace::load()?)?,
        Command::HsaSys { include } => return hsa_sys(&Workspace::load()?, include.as_deref()),
        Command::Ci => suite::ci(&Workspace::load()?)?,
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(feature = "bindings")]
fn hsa_sys(workspace: &Workspace, include: Option<&Path>) -> Result<ExitCode> {
    hsa::generate(workspace, include)?;
    Ok(ExitCode::SUCCESS)
}

/// Starts this program again with what generates bindings: nothing else needs it.
#[cfg(not(feature = "bindings"))]
fn hsa_sys(workspace: &Workspace, include: Option<&Path>) -> Result<ExitCode> {
    let mut command = workspace.cargo();
    command
        .args(["run", "--quiet", "--package", "xtask"])
        .args(["--features", "bindings"])
        .args(workspace.locked())
        .args(["--", "hsa-sys"]);
    if let Some(include) = include {
        command.arg("--include").arg(include);
    }
    process::run(&mut command)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn options_of_the_benchmarks_are_passed_on() {
        let Ok(Cli {
            command: Command::Bench(bench),
        }) = Cli::try_parse_from(["xtask", "bench", "--only", "noop", "--quick"])
        else {
            panic!("not a bench command");
        };
        assert_eq!(bench.args, ["--only", "noop", "--quick"]);
    }

    #[test]
    fn program_arguments_and_loader_options_are_told_apart() {
        let cli = Cli::try_parse_from([
            "xtask", "run", "args", "--target", "cpu", "1", "2", "--", "--blocks", "3",
        ]);
        let Ok(Cli {
            command: Command::Run(run),
        }) = cli
        else {
            panic!("not a run command");
        };
        assert_eq!(run.target, Target::X86_64);
        assert_eq!(run.args, ["1", "2"]);
        assert_eq!(run.loader, ["--blocks", "3"]);
    }
}
