//! The compiler for the GPU targets: found, or installed where that is allowed.
//!
//! Both GPU targets need `core` built from source, so what counts is a toolchain *with its library
//! source*; NVPTX also needs `llvm-bitcode-linker` and the LLVM tools that it calls.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, anyhow, bail};

use crate::process;
use crate::target::Target;
use crate::workspace::Workspace;

mod debian;
mod rustup;

/// A toolchain that builds for both GPU targets.
#[derive(Debug)]
pub(crate) struct Toolchain {
    /// What it is, for people.
    name: String,
    cargo: PathBuf,
    rustc: PathBuf,
    /// The LLVM tools of the compiler's own version; `None` if rustc finds its own.
    llvm: Option<PathBuf>,
    /// The folder of `llvm-bitcode-linker`; `None` if rustc finds its own.
    bitcode_linker: Option<PathBuf>,
}

impl fmt::Display for Toolchain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "GPU toolchain: {}", self.name)?;
        write!(f, "  rustc  {}", self.rustc.display())?;
        for (what, path) in [("llvm", &self.llvm), ("linker", &self.bitcode_linker)] {
            if let Some(path) = path {
                write!(f, "\n  {what:6} {}", path.display())?;
            }
        }
        Ok(())
    }
}

/// Finds the toolchain, or installs Debian's as root.
pub(crate) fn ensure(workspace: &Workspace) -> Result<Toolchain> {
    let wish = std::env::var("GPURPC_TOOLCHAIN").unwrap_or_default();
    let (try_rustup, try_debian) = match wish.as_str() {
        "" => (true, true),
        "rustup" => (true, false),
        "debian" => (false, true),
        other => bail!("GPURPC_TOOLCHAIN is {other}; it can be rustup or debian"),
    };
    let mut reasons = Vec::new();
    if try_rustup {
        match rustup::find() {
            Ok(toolchain) => return Ok(toolchain),
            Err(reason) => reasons.push(format!("rustup: {reason:#}")),
        }
    }
    if try_debian {
        match debian::ensure(workspace) {
            Ok(toolchain) => return Ok(toolchain),
            Err(reason) => reasons.push(format!("Debian's packages: {reason:#}")),
        }
    }
    Err(missing(&reasons))
}

/// What was looked for in vain, and the commands that would bring it.
fn missing(reasons: &[String]) -> anyhow::Error {
    anyhow!(
        "no toolchain for the GPU targets (x86_64 images need none: `cargo xtask images --target x86_64`)\n  {}\n\
         One of these brings it:\n  {}\n  {}",
        reasons.join("\n  "),
        rustup::INSTALL,
        debian::install_line(),
    )
}

impl Toolchain {
    /// The folder of the LLVM tools of the compiler's own version, clang among them; `None` if rustc finds
    /// its own.
    pub(crate) fn llvm(&self) -> Option<&Path> {
        self.llvm.as_deref()
    }

    /// Its cargo, set up to build for the GPU `target`.
    pub(crate) fn cargo(&self, workspace: &Workspace, target: Target) -> Result<Command> {
        let mut command = Command::new(&self.cargo);
        command.current_dir(&workspace.root);
        for variable in HOST_ONLY {
            command.env_remove(variable);
        }
        command.env("RUSTC", &self.rustc);
        // Lets a release of rustc, which Debian's is, take `-Z` options and `#![feature]`.
        command.env("RUSTC_BOOTSTRAP", "1");
        command.env(
            "CARGO_ENCODED_RUSTFLAGS",
            self.rustflags(target).join("\u{1f}"),
        );
        // Before /usr/bin, where LLVM tools of another version may lie.
        let ours = self.bitcode_linker.iter().chain(&self.llvm).cloned();
        let rest = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths(ours.chain(std::env::split_paths(&rest)))
            .context("a folder in PATH has a colon in its name")?;
        command.env("PATH", path);
        Ok(command)
    }

    fn rustflags(&self, target: Target) -> Vec<String> {
        let flags: &[&str] = match target {
            Target::X86_64 => &[],
            // sm_70 is the oldest with scoped atomics; its default PTX version cannot select activemask.
            Target::Nvptx64 => &["-Ctarget-cpu=sm_70", "-Ctarget-feature=+ptx84"],
            Target::Amdgcn => &["-Zunstable-options", "-Ctarget-cpu=gfx1100"],
        };
        let mut flags: Vec<String> = flags.iter().map(|&flag| flag.to_owned()).collect();
        // Debian's rustc brings no linker for amdgcn; clang calls lld with what this target wants.
        if let (Target::Amdgcn, Some(llvm)) = (target, &self.llvm) {
            flags.push(format!("-Clinker={}", llvm.join("clang").display()));
            flags.push("-Clinker-flavor=gnu-lld-cc".to_owned());
            for argument in [
                "--target=amdgcn-amd-amdhsa",
                "-mcpu=gfx1100",
                "-nogpulib",
                "-nostdlib",
            ] {
                flags.push(format!("-Clink-arg={argument}"));
            }
        }
        flags
    }
}

/// Variables that the host's cargo and rustup set for us, or that are meant for host builds.
const HOST_ONLY: [&str; 12] = [
    "CARGO",
    "CARGO_BUILD_RUSTFLAGS",
    "CARGO_BUILD_TARGET",
    "CARGO_ENCODED_RUSTFLAGS",
    "CARGO_TARGET_DIR",
    "LD_LIBRARY_PATH",
    "RUSTC",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTC_WRAPPER",
    "RUSTDOC",
    "RUSTFLAGS",
    "RUSTUP_TOOLCHAIN",
];

/// Runs `rustc` without the host's settings and gives its output.
fn rustc_says(rustc: &Path, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new(rustc);
    command.args(arguments);
    for variable in HOST_ONLY {
        command.env_remove(variable);
    }
    process::output(&mut command)
}

/// The oldest rustc that marks all functions `convergent` on GPU targets: before it, an optimisation
/// may move a warp operation into a branch.
const OLDEST: (u32, u32) = (1, 96);

/// What `rustc -vV` prints behind `name`.
fn field<'t>(text: &'t str, name: &str) -> Result<&'t str> {
    let mut found = text.lines().filter_map(|line| line.strip_prefix(name));
    let value = found.next().map(str::trim);
    value.with_context(|| format!("rustc -vV has no {name:?}"))
}

/// Its release, as `1.96.0` or `1.98.0-nightly`, if that is not too old.
fn release(text: &str) -> Result<String> {
    let release = field(text, "release:")?;
    let mut numbers = release
        .split('.')
        .map(|number| number.parse::<u32>().unwrap_or(0));
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if version < OLDEST {
        let (major, minor) = OLDEST;
        bail!("rustc is {release}; {major}.{minor} or newer is needed");
    }
    Ok(release.to_owned())
}

/// The library source that `-Zbuild-std` builds `core` from.
fn core_source(sysroot: &Path) -> PathBuf {
    sysroot.join("lib/rustlib/src/rust/library/core/Cargo.toml")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn toolchain(llvm: Option<&str>) -> Toolchain {
        Toolchain {
            name: "test".into(),
            cargo: "/c/cargo".into(),
            rustc: "/c/rustc".into(),
            llvm: llvm.map(PathBuf::from),
            bitcode_linker: None,
        }
    }

    #[test]
    fn the_linker_is_named_only_where_rustc_has_none() {
        let debian = toolchain(Some("/llvm/bin")).rustflags(Target::Amdgcn);
        assert!(
            debian.contains(&"-Clinker=/llvm/bin/clang".to_owned()),
            "{debian:?}"
        );
        let rustup = toolchain(None).rustflags(Target::Amdgcn);
        assert_eq!(rustup, ["-Zunstable-options", "-Ctarget-cpu=gfx1100"]);
    }

    #[test]
    fn old_releases_are_refused() {
        let text = |release: &str| format!("rustc {release}\nhost: h\nrelease: {release}\n");
        for new in ["1.96.0", "1.98.0-nightly", "2.0.0"] {
            assert_eq!(release(&text(new)).expect("new enough"), new);
        }
        for old in ["1.85.0", "1.95.0-nightly", "0.99.0"] {
            let error = release(&text(old)).expect_err("too old");
            assert_eq!(
                error.to_string(),
                format!("rustc is {old}; 1.96 or newer is needed")
            );
        }
        assert!(release("").is_err());
    }

    #[test]
    fn the_message_gives_reasons_and_commands() {
        let text = missing(&["rustup: not installed".into()]).to_string();
        for part in [
            "rustup: not installed",
            "rustup component add",
            "apt-get install",
            "--target x86_64",
        ] {
            assert!(text.contains(part), "{part} is not in: {text}");
        }
    }
}
