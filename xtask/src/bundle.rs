//! Packs `dist/`: programs, images and `run.sh`, for a machine with a GPU driver and no Rust.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process::{self, find_in_path, timed};
use crate::target::{Layout, Target, image_path};
use crate::workspace::{Program, Workspace};
use crate::{ImagesArgs, c, images};

/// The programs that go into `dist/bin/`: binaries of packages of the same name.
const PROGRAMS: [&str; 5] = [
    "gpurpc-top",
    "loader-nv",
    "loader-amd",
    "loader-cpu",
    "gpurpc-bench",
];

/// The most that `dist/` may weigh: it is copied to other machines for every run there.
const MAX_BYTES: u64 = 64 << 20;

/// The script that runs the suite there.
const RUN_SH: &str = include_str!("../run.sh");

/// Builds the test program of `loader-nv` that runs the C programs.
fn c_programs(workspace: &Workspace) -> Result<PathBuf> {
    let mut command = workspace.cargo();
    command
        .args(["test", "--release", "-p", "loader-nv", "--test", "c"])
        .args(["--no-run", "--message-format", "json"])
        .args(workspace.locked());
    let told = process::output(&mut command).context(
        "the test `c` of loader-nv cannot be built: `cargo test -p loader-nv --no-run` says why",
    )?;
    let messages = told
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    messages
        .filter(|message: &serde_json::Value| message["target"]["name"] == "c")
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
        .context("cargo does not say where it has put the test `c` of loader-nv")
}

/// Builds everything and packs it.
pub(crate) fn bundle(workspace: &Workspace) -> Result<()> {
    timed("images", || {
        images::build(workspace, &ImagesArgs::default())
    })?;
    timed("programs", || build_programs(workspace, &PROGRAMS))?;
    let suite = timed("the suite of C programs", || c_programs(workspace))?;

    let dist = workspace.root.join("dist");
    if dist.exists() {
        fs::remove_dir_all(&dist).context("cannot remove the old dist/")?;
    }
    let release = workspace.target_dir.join("release");
    for name in PROGRAMS {
        copy(&release.join(name), &dist.join("bin").join(name))?;
        strip(&dist.join("bin").join(name))?;
    }
    copy(&suite, &dist.join("bin/c-programs"))?;
    strip(&dist.join("bin/c-programs"))?;
    for target in Target::ALL {
        let rust = Layout::ALL.into_iter().flat_map(|layout| {
            let path = move |program: &Program| image_path(target, layout, &program.name);
            let programs = workspace.programs.iter();
            programs
                .filter(move |program| program.has(layout))
                .map(path)
        });
        let c = c::images(target, &[], false).into_iter();
        for image in rust.chain(c.map(|image| image.path)) {
            copy(
                &workspace.images().join(&image),
                &dist.join("images").join(&image),
            )?;
        }
    }
    let script = dist.join("run.sh");
    process::write_if_changed(&script, RUN_SH.as_bytes())?;
    make_executable(&script)?;

    let bytes = size(&dist)?;
    println!(
        "dist/: {} KiB; `dist/run.sh gpu` runs the suite on a GPU, `dist/run.sh bench` measures",
        bytes >> 10
    );
    if bytes > MAX_BYTES {
        bail!(
            "dist/ has {bytes} bytes, more than the {MAX_BYTES} it may have: look for images with debug information"
        );
    }
    Ok(())
}

/// Builds host programs as they are shipped.
pub(crate) fn build_programs(workspace: &Workspace, names: &[&str]) -> Result<()> {
    let mut command = workspace.cargo();
    command
        .args(["build", "--release", "--bins"])
        .args(workspace.locked());
    for name in names {
        command.args(["-p", name]);
    }
    // Which commit was measured is told with the numbers.
    command.envs(workspace.commit().map(|commit| ("GPURPC_COMMIT", commit)));
    process::run(&mut command)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
    }
    fs::copy(from, to)
        .map(drop)
        .with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))
}

/// Drops symbols and debug information, where binutils are there; without them the copy is only larger.
fn strip(file: &Path) -> Result<()> {
    match find_in_path("strip") {
        Some(strip) => process::run(Command::new(strip).arg(file)),
        None => Ok(()),
    }
}

fn make_executable(file: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mode = fs::Permissions::from_mode(0o755);
    fs::set_permissions(file, mode)
        .with_context(|| format!("cannot make {} executable", file.display()))
}

/// The bytes of all files below `folder`.
fn size(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?
    {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += if metadata.is_dir() {
            size(&entry.path())?
        } else {
            metadata.len()
        };
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_add_up_over_folders() {
        let folder = std::env::temp_dir().join(format!("xtask-size-{}", std::process::id()));
        process::write_if_changed(&folder.join("a"), b"12").expect("written");
        process::write_if_changed(&folder.join("b/c"), b"345").expect("written");
        assert_eq!(size(&folder).expect("read"), 5);
        fs::remove_dir_all(&folder).expect("removed");
        assert!(size(&folder).is_err());
    }

    #[test]
    fn the_script_parses() {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("run.sh");
        process::run(Command::new("bash").arg("-n").arg(script)).expect("bash takes it");
    }
}
