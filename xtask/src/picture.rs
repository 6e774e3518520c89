//! The picture in the README: the dashboard of a real demo run.

use anyhow::Result;

use crate::process::run;
use crate::workspace::Workspace;

/// Builds gpurpc-top and has it drawn into docs/.
pub(crate) fn picture(workspace: &Workspace) -> Result<()> {
    let build = ["build", "--release", "-p", "gpurpc-top"];
    run(workspace.cargo().args(build).args(workspace.locked()))?;
    let example = [
        "run",
        "--release",
        "-p",
        "gpurpc-top",
        "--example",
        "picture",
    ];
    run(workspace
        .cargo()
        .args(example)
        .args(workspace.locked())
        .arg("--")
        .arg(workspace.target_dir.join("release/gpurpc-top"))
        .arg(workspace.root.join("docs/gpurpc-top.svg")))
}
