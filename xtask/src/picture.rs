//! The picture in the README: the dashboard of a real demo run.

use std::process::Command;

use anyhow::Result;

use crate::process::run;
use crate::workspace::Workspace;

/// Builds gpurpc-top and has it drawn into docs/.
pub(crate) fn picture(workspace: &Workspace) -> Result<()> {
    let what = ["--bin", "gpurpc-top", "--example", "picture"];
    run(workspace
        .cargo()
        .args(["build", "--release", "-p", "gpurpc-top"])
        .args(what)
        .args(workspace.locked()))?;
    let release = workspace.target_dir.join("release");
    run(Command::new(release.join("examples/picture"))
        .arg(release.join("gpurpc-top"))
        .arg(workspace.root.join("docs/gpurpc-top.svg")))
}
