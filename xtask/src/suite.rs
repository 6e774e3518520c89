//! `test`, the README's test command, and `ci`, which adds formatting and lints.

use std::process::Command;

use anyhow::Result;

use crate::process::{self, find_in_path, timed};
use crate::workspace::Workspace;
use crate::{ImagesArgs, images};

/// The crates with loom models, in `tests/loom.rs`.
const LOOM_CRATES: [&str; 2] = ["rpc-bitmap", "rpc-port"];

/// How often loom may preempt a thread in one execution; three find every bug known of this kind, and the
/// models end within minutes.
const LOOM_MAX_PREEMPTIONS: &str = "3";

/// Toolchain, images, all tests with images required, loom models.
pub(crate) fn test(workspace: &Workspace) -> Result<()> {
    timed("images", || {
        images::build(workspace, &ImagesArgs::default())
    })?;
    timed("tests", || {
        let mut command = workspace.cargo();
        command
            .args(["test", "--workspace"])
            .args(workspace.locked());
        // Tests that need an image fail without it, instead of naming themselves left out.
        process::run(command.env("GPURPC_REQUIRE_IMAGES", "1"))
    })?;
    timed("loom models", || loom(workspace))
}

fn loom(workspace: &Workspace) -> Result<()> {
    let mut command = workspace.cargo();
    command
        .args(["test", "--release", "--test", "loom"])
        .args(workspace.locked());
    for name in LOOM_CRATES {
        command.args(["-p", name]);
    }
    command
        .env("RUSTFLAGS", "--cfg loom")
        .env("CARGO_TARGET_DIR", workspace.root.join("target/loom"));
    process::run(command.env("LOOM_MAX_PREEMPTIONS", LOOM_MAX_PREEMPTIONS))
}

/// All that a change must pass.
pub(crate) fn ci(workspace: &Workspace) -> Result<()> {
    timed("fmt", || {
        process::run(workspace.cargo().args(["fmt", "--all", "--check"]))
    })?;
    timed("clippy", || {
        let mut command = workspace.cargo();
        command
            .args(["clippy", "--workspace", "--all-targets"])
            .args(workspace.locked());
        process::run(command.args(["--", "-D", "warnings"]))
    })?;
    // Advisories come from a database on the network; the other checks need none.
    let deny = ["check", "bans", "licenses", "sources"];
    optional(workspace, "cargo-deny", &deny)?;
    optional(workspace, "typos", &[])?;
    test(workspace)
}

/// Runs a tool if it is installed, else says that it was left out.
fn optional(workspace: &Workspace, tool: &str, arguments: &[&str]) -> Result<()> {
    let Some(program) = find_in_path(tool) else {
        eprintln!("xtask: left out: {tool} (not on PATH)");
        return Ok(());
    };
    let mut command = Command::new(program);
    timed(tool, || {
        process::run(command.args(arguments).current_dir(&workspace.root))
    })
}
