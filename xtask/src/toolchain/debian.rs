//! Debian's packages: a released rustc with its library source, and the LLVM that it was built with.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{HOST_ONLY, Toolchain, core_source, field, release, rustc_says};
use crate::process;
use crate::workspace::Workspace;

/// What is installed. `rustc-web` is the newest rustc that Debian 12 and 13 have.
const PACKAGES: [&str; 6] = [
    "rustc-web",
    "rust-web-src",
    "cargo-web",
    "llvm-22",
    "clang-22",
    "lld-22",
];

const RUSTC: &str = "/usr/bin/rustc";
const CARGO: &str = "/usr/bin/cargo";

/// The LLVM tools that a build calls.
const TOOLS: [&str; 5] = ["llvm-link", "opt", "llc", "clang", "ld.lld"];

/// The command that installs the packages.
pub(super) fn install_line() -> String {
    format!(
        "apt-get update && apt-get install --no-install-recommends {}   (Debian 12, as root)",
        PACKAGES.join(" ")
    )
}

/// Finds the packages, installs them when root, and builds the bitcode linker.
pub(super) fn ensure(workspace: &Workspace) -> Result<Toolchain> {
    let found = match find() {
        Ok(found) => found,
        Err(reason) => {
            if !can_install() {
                return Err(
                    reason.context("not root on a machine with apt-get, so nothing was installed")
                );
            }
            eprintln!("xtask: installing Debian's packages for the GPU targets ({reason:#})");
            process::timed("apt-get", install)?;
            find().context("apt-get succeeded, but the packages are not what was expected")?
        }
    };
    let linker = bitcode_linker(workspace, &found)?;
    Ok(Toolchain {
        name: format!(
            "Debian's rustc {} with LLVM {}",
            found.release, found.llvm_major
        ),
        cargo: CARGO.into(),
        rustc: RUSTC.into(),
        llvm: Some(found.llvm),
        bitcode_linker: Some(linker),
    })
}

/// What `find` found.
struct Found {
    /// rustc's release, as `1.96.0`.
    release: String,
    llvm_major: u32,
    /// The folder of LLVM's tools.
    llvm: PathBuf,
}

fn find() -> Result<Found> {
    let version = rustc_says(Path::new(RUSTC), &["-vV"]).with_context(|| format!("no {RUSTC}"))?;
    let release = release(&version).with_context(|| format!("{RUSTC} is of no use"))?;
    let llvm_major = llvm_major(&version)?;
    let sysroot = rustc_says(Path::new(RUSTC), &["--print", "sysroot"]).context("no sysroot")?;
    if !core_source(Path::new(sysroot.trim())).exists() {
        bail!(
            "no library source in {} (package rust-web-src)",
            sysroot.trim()
        );
    }
    let linker = linker_source(&release);
    for path in [Path::new(CARGO), &linker] {
        if !path.exists() {
            bail!("no {}", path.display());
        }
    }
    let llvm = PathBuf::from(format!("/usr/lib/llvm-{llvm_major}/bin"));
    for tool in TOOLS {
        if !llvm.join(tool).exists() {
            bail!(
                "no {tool} in {}, whose version is that of rustc's LLVM",
                llvm.display()
            );
        }
    }
    Ok(Found {
        release,
        llvm_major,
        llvm,
    })
}

/// LLVM's major version in what `rustc -vV` prints.
fn llvm_major(text: &str) -> Result<u32> {
    let llvm = field(text, "LLVM version:")?;
    let major = llvm
        .split('.')
        .next()
        .and_then(|number| number.parse().ok());
    major.with_context(|| format!("no LLVM version: {llvm}"))
}

fn can_install() -> bool {
    let is_root = process::output(Command::new("id").arg("-u")).is_some_and(|id| id.trim() == "0");
    is_root && process::find_in_path("apt-get").is_some()
}

fn install() -> Result<()> {
    let apt = |arguments: &[&str]| {
        process::run(
            Command::new("apt-get")
                .args(arguments)
                .env("DEBIAN_FRONTEND", "noninteractive"),
        )
    };
    apt(&["update", "-q"])?;
    let options = ["install", "-q", "-y", "--no-install-recommends"];
    apt(&[&options[..], &PACKAGES[..]].concat())
}

/// Where `rust-web-src` has the linker's source.
fn linker_source(release: &str) -> PathBuf {
    PathBuf::from(format!(
        "/usr/src/rustc-{release}/src/tools/llvm-bitcode-linker"
    ))
}

/// The folder of `llvm-bitcode-linker`, which Debian ships as source only; built once for each release.
fn bitcode_linker(workspace: &Workspace, found: &Found) -> Result<PathBuf> {
    let folder = workspace
        .cache()
        .join(format!("llvm-bitcode-linker-{}", found.release));
    let target = folder.join("target");
    let bin = target.join("debug");
    if bin.join("llvm-bitcode-linker").exists() {
        return Ok(bin);
    }
    let package = folder.join("source");
    copy_folder(&linker_source(&found.release), &package)
        .context("cannot copy llvm-bitcode-linker's source")?;
    // Its own workspace: it lies below ours.
    let manifest = package.join("Cargo.toml");
    let text = fs::read_to_string(&manifest).context("llvm-bitcode-linker has no Cargo.toml")?;
    fs::write(&manifest, format!("{text}\n[workspace]\n"))
        .context("cannot write its Cargo.toml")?;

    let mut command = Command::new(CARGO);
    for variable in HOST_ONLY {
        command.env_remove(variable);
    }
    // It only calls LLVM's tools: an unoptimised build takes half the time and works as fast.
    command
        .current_dir(&package)
        .env("RUSTC", RUSTC)
        .env("CARGO_PROFILE_DEV_DEBUG", "false");
    command.args(["build", "--target-dir"]).arg(&target);
    process::timed("llvm-bitcode-linker", || process::run(&mut command))?;
    Ok(bin)
}

fn copy_folder(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn llvm_s_version_is_read() {
        let text = "rustc 1.96.0\nrelease: 1.96.0\nLLVM version: 22.1.8\n";
        assert_eq!(llvm_major(text).expect("is there"), 22);
        assert!(llvm_major("").is_err());
    }
}
