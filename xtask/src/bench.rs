//! Builds the benchmarks and runs them on the CPU device.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use crate::bundle::build_programs;
use crate::target::Target;
use crate::workspace::Workspace;
use crate::{BenchArgs, ImagesArgs, images};

/// Builds what is needed and measures; the exit code is the program's.
pub(crate) fn bench(workspace: &Workspace, args: &BenchArgs) -> Result<ExitCode> {
    let wanted = ImagesArgs {
        // `hello`: how long it takes to start is measured.
        names: vec!["bench-device".to_owned(), "hello".to_owned()],
        target: vec![Target::X86_64],
        ..ImagesArgs::default()
    };
    images::build(workspace, &wanted)?;
    build_programs(workspace, &["gpurpc-bench", "loader-cpu"])?;

    let program = workspace.target_dir.join("release/gpurpc-bench");
    let status = Command::new(&program)
        .arg("--images")
        .arg(workspace.images())
        .args(&args.args)
        .status()
        .with_context(|| format!("cannot start {}", program.display()))?;
    Ok(status
        .code()
        .map_or(ExitCode::FAILURE, |code| ExitCode::from(code as u8)))
}
