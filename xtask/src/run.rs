//! Builds one program and runs it through `gpurpc-top --once`.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::target::Target;
use crate::workspace::Workspace;
use crate::{ImagesArgs, RunArgs, images};

/// Where AMD GPUs are reached, if there are any.
const KFD: &str = "/dev/kfd";

/// Builds and runs what `args` names; the exit code is the program's.
pub(crate) fn run(workspace: &Workspace, args: &RunArgs) -> Result<ExitCode> {
    let wanted = ImagesArgs {
        names: vec![args.name.clone()],
        target: vec![args.target],
        layout: vec![args.layout],
        ..ImagesArgs::default()
    };
    let built = images::build(workspace, &wanted)?;
    let image = built.first().context("no image was built")?;

    let mut command = workspace.cargo();
    command
        .args(["run", "--release", "--quiet", "-p", "gpurpc-top"])
        .args(workspace.locked());
    command.args(["--", "--once"]);
    if args.target == Target::Amdgcn && !Path::new(KFD).exists() {
        eprintln!("xtask: there is no {KFD}, so the emulator runs it (--device emu)");
        command.args(["--device", "emu"]);
    }
    command.args(&args.loader).arg(image).args(&args.args);
    let status = command.status().context("cannot start cargo")?;
    // A program ended by a signal has no code; cargo passes on the others as they are.
    Ok(status
        .code()
        .map_or(ExitCode::FAILURE, |code| ExitCode::from(code as u8)))
}
