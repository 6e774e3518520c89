//! A rustup nightly, if it has what the GPU targets need.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{Toolchain, core_source, field, release, rustc_says};
use crate::process;

/// The command that brings what is looked for here.
pub(super) const INSTALL: &str = "rustup toolchain install nightly --profile minimal && rustup component add --toolchain nightly rust-src \
     llvm-tools llvm-bitcode-linker";

/// The first nightly that has all that is needed.
pub(super) fn find() -> Result<Toolchain> {
    let list = process::output(Command::new("rustup").args(["toolchain", "list"]))
        .context("rustup is not installed")?;
    let mut reasons = Vec::new();
    for name in nightlies(&list) {
        match check(name) {
            Ok(toolchain) => return Ok(toolchain),
            Err(reason) => reasons.push(format!("{name} {reason:#}")),
        }
    }
    if reasons.is_empty() {
        bail!("no nightly is installed");
    }
    bail!("{}", reasons.join("; "))
}

/// The nightlies in what `rustup toolchain list` prints.
fn nightlies(list: &str) -> impl Iterator<Item = &str> {
    list.lines()
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| name.starts_with("nightly"))
}

fn check(name: &str) -> Result<Toolchain> {
    let rustc =
        process::output(Command::new("rustup").args(["which", "--toolchain", name, "rustc"]))
            .context("has no rustc")?;
    let rustc = PathBuf::from(rustc.trim());
    let version = rustc_says(&rustc, &["-vV"]).context("has a rustc that does not start")?;
    release(&version).context("is too old")?;
    let sysroot = rustc_says(&rustc, &["--print", "sysroot"]).context("names no sysroot")?;
    let lacking = lacking(Path::new(sysroot.trim()), field(&version, "host:")?);
    if !lacking.is_empty() {
        bail!("lacks {}", lacking.join(", "));
    }
    Ok(Toolchain {
        name: format!(
            "rustup's {name} ({})",
            version.lines().next().unwrap_or_default()
        ),
        cargo: rustc.with_file_name("cargo"),
        rustc,
        llvm: None,
        bitcode_linker: None,
    })
}

/// The components that are not in `sysroot`.
fn lacking(sysroot: &Path, host: &str) -> Vec<&'static str> {
    let bin = sysroot.join("lib/rustlib").join(host).join("bin");
    let mut lacking = Vec::new();
    if !core_source(sysroot).exists() {
        lacking.push("rust-src");
    }
    if !bin.join("llc").exists() && !bin.join("opt").exists() {
        lacking.push("llvm-tools");
    }
    if !bin.join("self-contained/llvm-bitcode-linker").exists() {
        lacking.push("llvm-bitcode-linker");
    }
    lacking
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn nightlies_are_told_from_other_toolchains() {
        let list = "stable-x86_64 (active, default)\nnightly-x86_64\n1.95.0-x86_64\nnightly-2026-01-01-x86_64 (override)\n";
        assert_eq!(
            nightlies(list).collect::<Vec<_>>(),
            ["nightly-x86_64", "nightly-2026-01-01-x86_64"]
        );
    }

    #[test]
    fn a_bare_nightly_is_of_no_use() {
        let sysroot = std::env::temp_dir().join(format!("xtask-sysroot-{}", std::process::id()));
        assert_eq!(
            lacking(&sysroot, "h"),
            ["rust-src", "llvm-tools", "llvm-bitcode-linker"]
        );
        for file in [
            "lib/rustlib/src/rust/library/core/Cargo.toml",
            "lib/rustlib/h/bin/opt",
            "lib/rustlib/h/bin/self-contained/llvm-bitcode-linker",
        ] {
            let file = sysroot.join(file);
            fs::create_dir_all(file.parent().expect("has one")).expect("created");
            fs::write(file, "").expect("written");
        }
        assert!(lacking(&sysroot, "h").is_empty());
        fs::remove_dir_all(sysroot).expect("removed");
    }
}
