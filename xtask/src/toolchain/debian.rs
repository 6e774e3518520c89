//! Debian's packages: a released rustc with its library source, and the LLVM that it was built with.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{HOST_ONLY, Toolchain, core_source, rustc_says};
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

/// The oldest rustc that marks all functions `convergent` on GPU targets: before it, an optimisation
/// may move a warp operation into a branch.
const OLDEST: (u32, u32) = (1, 96);

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
    let (release, llvm_major) = parse_version(&version)?;
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

/// Release and LLVM's major version in what `rustc -vV` prints.
fn parse_version(text: &str) -> Result<(String, u32)> {
    let field = |name: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(name))
            .map(str::trim)
    };
    let release = field("release:").context("rustc -vV names no release")?;
    let llvm = field("LLVM version:").context("rustc -vV names no LLVM version")?;
    let mut numbers = release
        .split('.')
        .map(|number| number.parse::<u32>().unwrap_or(0));
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if version < OLDEST {
        bail!(
            "{RUSTC} is {release}; {}.{} or newer is needed",
            OLDEST.0,
            OLDEST.1
        );
    }
    let major = llvm
        .split('.')
        .next()
        .and_then(|number| number.parse().ok());
    Ok((
        release.to_owned(),
        major.with_context(|| format!("no LLVM version: {llvm}"))?,
    ))
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
    fn versions_are_read_and_old_ones_refused() {
        let text = |release: &str| {
            format!("rustc {release}\nhost: h\nrelease: {release}\nLLVM version: 22.1.8\n")
        };
        assert_eq!(
            parse_version(&text("1.96.0")).expect("new enough"),
            ("1.96.0".into(), 22)
        );
        assert_eq!(parse_version(&text("2.0.0")).expect("new enough").1, 22);
        let error = parse_version(&text("1.85.0")).expect_err("too old");
        assert_eq!(
            error.to_string(),
            "/usr/bin/rustc is 1.85.0; 1.96 or newer is needed"
        );
        assert!(parse_version("").is_err());
    }
}
