//! The workspace as cargo describes it: where it lies and which GPU programs it has.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::c;
use crate::process;
use crate::target::Layout;

/// A GPU program: a package under `examples/` or `bench/` that builds a cdylib.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    /// The package's name, which is the program's.
    pub(crate) name: String,
    /// The library target's name, which is the artifact's.
    pub(crate) lib: String,
    /// The package's features.
    pub(crate) features: Vec<String>,
}

/// Where the GPU programs lie, below the workspace.
const PROGRAM_FOLDERS: [&str; 2] = ["examples", "bench"];

/// Where the workspace lies and what it holds.
pub(crate) struct Workspace {
    /// The folder of the workspace manifest.
    pub(crate) root: PathBuf,
    /// Where cargo builds for the host.
    pub(crate) target_dir: PathBuf,
    /// The GPU programs, by name.
    pub(crate) programs: Vec<Program>,
}

impl Program {
    /// Whether it can be built for this layout.
    pub(crate) fn has(&self, layout: Layout) -> bool {
        layout
            .feature()
            .is_none_or(|feature| self.features.iter().any(|own| own == feature))
    }
}

impl Workspace {
    /// Asks cargo.
    pub(crate) fn load() -> Result<Self> {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml");
        let mut command = Command::new(cargo_program());
        command.args([
            "metadata",
            "--no-deps",
            "--format-version=1",
            "--manifest-path",
        ]);
        let text = process::output(command.arg(&manifest)).with_context(|| {
            format!(
                "`cargo metadata` failed; run it in {} to see why",
                manifest.display()
            )
        })?;
        Self::parse(&serde_json::from_str(&text).context("cargo metadata printed no JSON")?)
    }

    fn parse(metadata: &Value) -> Result<Self> {
        let path = |key: &str| {
            let text = metadata[key].as_str();
            text.map(PathBuf::from)
                .with_context(|| format!("cargo metadata names no {key}"))
        };
        let root = path("workspace_root")?;
        let folders = PROGRAM_FOLDERS.map(|folder| root.join(folder));
        let mut programs: Vec<Program> = (metadata["packages"].as_array().into_iter().flatten())
            .filter(|package| {
                let manifest = package["manifest_path"].as_str();
                let lies_in = |manifest| {
                    folders
                        .iter()
                        .any(|folder| Path::new(manifest).starts_with(folder))
                };
                manifest.is_some_and(lies_in)
            })
            .filter_map(program)
            .collect();
        programs.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Self {
            root,
            target_dir: path("target_directory")?,
            programs,
        })
    }

    /// Where the images lie. Always below the workspace, whatever cargo's target folder is: tests,
    /// README and loaders' users look there.
    pub(crate) fn images(&self) -> PathBuf {
        self.root.join("target/images")
    }

    /// Where xtask keeps what it builds for itself and between runs.
    pub(crate) fn cache(&self) -> PathBuf {
        self.root.join("target/xtask")
    }

    /// The programs named, or all if none is.
    pub(crate) fn select(&self, names: &[String]) -> Result<Vec<&Program>> {
        if names.is_empty() {
            if self.programs.is_empty() {
                bail!("no package under examples/ or bench/ builds a cdylib");
            }
            return Ok(self.programs.iter().collect());
        }
        names
            .iter()
            .map(|name| {
                self.programs
                    .iter()
                    .find(|program| &program.name == name)
                    .with_context(|| {
                        let own = self.programs.iter().map(|p| p.name.clone());
                        let known: Vec<_> = own.chain(c::names()).collect();
                        format!(
                            "no program is called {name}; there are: {}",
                            known.join(", ")
                        )
                    })
            })
            .collect()
    }

    /// The host's cargo, in the workspace.
    pub(crate) fn cargo(&self) -> Command {
        let mut command = Command::new(cargo_program());
        command.current_dir(&self.root);
        command
    }

    /// The commit that is checked out, `-dirty` behind it if files differ; `None` outside a repository.
    pub(crate) fn commit(&self) -> Option<String> {
        let git = |arguments: &[&str]| {
            let mut command = Command::new("git");
            process::output(command.current_dir(&self.root).args(arguments))
        };
        let text = git(&["describe", "--always", "--dirty", "--exclude=*"])?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    /// `--locked`, once there is a lock file: the toolchains used here must not rewrite it in turn.
    pub(crate) fn locked(&self) -> Option<&'static str> {
        self.root.join("Cargo.lock").exists().then_some("--locked")
    }
}

/// The cargo that started us, else the one on PATH.
fn cargo_program() -> std::ffi::OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// The program that `package` builds, if it builds a cdylib.
fn program(package: &Value) -> Option<Program> {
    let is_cdylib = |target: &&Value| {
        let types = target["crate_types"].as_array();
        types.is_some_and(|types| types.iter().any(|kind| kind == "cdylib"))
    };
    let lib = package["targets"].as_array()?.iter().find(is_cdylib)?;
    Some(Program {
        name: package["name"].as_str()?.to_owned(),
        lib: lib["name"].as_str()?.replace('-', "_"),
        features: (package["features"].as_object().into_iter().flatten())
            .map(|(name, _)| name.clone())
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sample() -> Workspace {
        let package = |name: &str, folder: &str, kind: &str| {
            json!({
                "name": name, "manifest_path": format!("/w/{folder}/Cargo.toml"),
                "targets": [{"name": name, "crate_types": [kind]}],
                "features": {"compact": ["rpc-device/compact"]},
            })
        };
        let metadata = json!({
            "workspace_root": "/w", "target_directory": "/t",
            "packages": [
                package("two-words", "examples/two-words", "cdylib"),
                package("args", "examples/args", "cdylib"),
                package("helper", "examples/helper", "lib"),
                package("loader", "loader", "cdylib"),
            ],
        });
        Workspace::parse(&metadata).expect("well-formed")
    }

    #[test]
    fn programs_are_the_cdylibs_under_examples() {
        let workspace = sample();
        let names: Vec<_> = workspace
            .programs
            .iter()
            .map(|p| (&*p.name, &*p.lib))
            .collect();
        assert_eq!(names, [("args", "args"), ("two-words", "two_words")]);
        assert_eq!(workspace.programs[0].features, ["compact"]);
        assert_eq!(workspace.images(), Path::new("/w/target/images"));
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let workspace = sample();
        assert_eq!(workspace.select(&[]).expect("all").len(), 2);
        let error = workspace.select(&["frob".into()]).expect_err("unknown");
        assert_eq!(
            error.to_string(),
            "no program is called frob; there are: args, two-words, c-hello, c-opcodes"
        );
    }
}
