//! Builds the GPU programs for every target and layout into `target/images/`.
//!
//! One cargo invocation and one target folder for each (target, layout): the layout is a feature, and
//! within one folder the cdylibs of both layouts would have the same file name.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::ImagesArgs;
use crate::c;
use crate::process;
use crate::ptx;
use crate::target::{Layout, Target, image_path};
use crate::toolchain::{self, Toolchain};
use crate::workspace::{Program, Workspace};

/// The architecture that `ptxas` is asked for.
const PTXAS_ARCH: &str = "sm_90";

/// Builds what `args` asks for; gives the paths of the images.
pub(crate) fn build(workspace: &Workspace, args: &ImagesArgs) -> Result<Vec<PathBuf>> {
    let (c_names, names): (Vec<_>, Vec<_>) =
        (args.names.iter().cloned()).partition(|name| c::is_program(name));
    let programs = if names.is_empty() && !c_names.is_empty() {
        Vec::new()
    } else {
        workspace.select(&names)?
    };
    let targets = if args.target.is_empty() {
        &Target::ALL[..]
    } else {
        &args.target
    };
    let layouts = if args.layout.is_empty() {
        &Layout::ALL[..]
    } else {
        &args.layout
    };
    // Asked for first: without it nothing is built that would then be of no use.
    let needs_toolchain = targets.iter().any(|target| target.triple().is_some());
    let toolchain = if needs_toolchain {
        Some(toolchain::ensure(workspace)?)
    } else {
        None
    };

    let mut images = Vec::new();
    for &target in targets {
        for &layout in layouts.iter().filter(|_| !programs.is_empty()) {
            let step = format!("images for {} ({})", target.folder(), layout.name());
            // Not every program comes in every layout; but one that is asked for in one should.
            let mut programs = programs.clone();
            if args.layout.is_empty() || names.is_empty() {
                programs.retain(|program| program.has(layout));
            }
            if programs.is_empty() {
                continue;
            }
            let built = process::timed(&step, || {
                build_set(workspace, toolchain.as_ref(), &programs, target, layout)
            })?;
            images.extend(built);
        }
        // The layouts of C programs are their own: all are built where none is asked for.
        if (names.is_empty() || !c_names.is_empty()) && layouts.contains(&Layout::Line) {
            let wanted = c::images(target, &c_names, !args.layout.is_empty());
            let llvm = toolchain.as_ref().and_then(Toolchain::llvm);
            let step = format!("C images for {}", target.folder());
            images.extend(process::timed(&step, || {
                c::build(workspace, llvm, target, &wanted)
            })?);
        }
    }

    let ptx: Vec<PathBuf> = images.iter().filter(|path| is_ptx(path)).cloned().collect();
    ptx::check_files(&ptx)?;
    if let Some(ptxas) = &args.ptxas {
        assemble(workspace, ptxas, &ptx, args.cubin)?;
    }
    Ok(images)
}

fn is_ptx(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "ptx")
}

/// Builds `programs` for one target and layout.
fn build_set(
    workspace: &Workspace,
    toolchain: Option<&Toolchain>,
    programs: &[&Program],
    target: Target,
    layout: Layout,
) -> Result<Vec<PathBuf>> {
    let target_dir = target_dir(workspace, target, layout);
    seed(
        &target_dir,
        &self::target_dir(workspace, target, Layout::Line),
    );
    let mut command = match toolchain {
        Some(toolchain) if target.triple().is_some() => toolchain.cargo(workspace, target)?,
        _ => workspace.cargo(),
    };
    command
        .args(["build", "--release"])
        .args(workspace.locked());
    if let Some(triple) = target.triple() {
        // `mem`: the compiler emits calls of memcpy and its kind, and there is no C library.
        command.args([
            "-Zbuild-std=core",
            "-Zbuild-std-features=compiler-builtins-mem",
        ]);
        // What a program takes of `core` as compiled code is formatting, which the driver's compiler
        // takes longest for; inlined and generic functions are the program's, optimised as it is.
        command.args(["--config", "profile.release.package.core.opt-level=\"s\""]);
        command.args(["--target", triple]);
    }
    command
        .arg("--target-dir")
        .arg(&target_dir)
        .envs(target.profile().iter().copied());
    command.args(selection(programs, layout)?);
    process::run(&mut command)?;

    let mut images = Vec::new();
    for program in programs {
        let artifact = target.artifact(&target_dir, &program.lib);
        let bytes = fs::read(&artifact).with_context(|| {
            format!("cargo built no {} for {}", artifact.display(), program.name)
        })?;
        let image = workspace
            .images()
            .join(image_path(target, layout, &program.name));
        process::write_if_changed(&image, &bytes)?;
        images.push(image);
    }
    Ok(images)
}

fn target_dir(workspace: &Workspace, target: Target, layout: Layout) -> PathBuf {
    workspace
        .cache()
        .join(format!("{}-{}", target.folder(), layout.name()))
}

/// Starts a new target folder as a copy of `first`, so that `core`, the same for every layout, is not
/// built again. Cargo tells what the layout changes by the features.
///
/// Without the copy the build only takes longer, so a failure (another cargo at work in `first`) is
/// no error; a rename at the end keeps half a copy from being taken for a whole one.
fn seed(target_dir: &Path, first: &Path) {
    if target_dir.exists() || !first.exists() {
        return;
    }
    let copy = target_dir.with_extension(std::process::id().to_string());
    // `-a`: cargo compares times of change.
    let copied = process::run(Command::new("cp").arg("-a").arg(first).arg(&copy));
    if copied.is_err() || fs::rename(&copy, target_dir).is_err() {
        let _ = fs::remove_dir_all(&copy);
    }
}

/// The package and feature options of cargo.
fn selection(programs: &[&Program], layout: Layout) -> Result<Vec<String>> {
    let mut options = Vec::new();
    for program in programs {
        options.extend(["-p".to_owned(), program.name.clone()]);
        if let Some(feature) = layout.feature() {
            if !program.has(layout) {
                bail!(
                    "{0} has no feature `{feature}`: add `{feature} = [\"rpc-device/{feature}\"]`",
                    program.name
                );
            }
            options.extend([
                "--features".to_owned(),
                format!("{}/{feature}", program.name),
            ]);
        }
    }
    Ok(options)
}

/// Has `ptxas` translate each PTX, as the driver would.
fn assemble(workspace: &Workspace, ptxas: &Path, ptx: &[PathBuf], keep: bool) -> Result<()> {
    fs::create_dir_all(workspace.cache()).context("cannot create target/xtask")?;
    for file in ptx {
        let cubin = if keep {
            file.with_extension("cubin")
        } else {
            workspace.cache().join("checked.cubin")
        };
        let mut command = Command::new(ptxas);
        command
            .arg(format!("-arch={PTXAS_ARCH}"))
            .arg("-o")
            .arg(cubin)
            .arg(file);
        process::run(&mut command)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(features: &[&str]) -> Program {
        Program {
            name: "two-words".into(),
            lib: "two_words".into(),
            features: features.iter().map(|&name| name.to_owned()).collect(),
        }
    }

    #[test]
    fn the_layout_is_a_feature_of_each_package() {
        let (with, without) = (program(&["compact"]), program(&[]));
        let line = selection(&[&without], Layout::Line).expect("no feature needed");
        assert_eq!(line, ["-p", "two-words"]);
        let compact = selection(&[&with], Layout::Compact).expect("has the feature");
        assert_eq!(
            compact,
            ["-p", "two-words", "--features", "two-words/compact"]
        );
        let error = selection(&[&without], Layout::Compact).expect_err("has no feature");
        assert!(error.to_string().starts_with("two-words has no feature"));
    }
}
