//! Builds the C programs of `examples/c` over the header `include/gpurpc.h`, with clang.
//!
//! For each target and layout of the header there is an image `c-NAME-LAYOUT`; what is newer than all it
//! is made from is not built again.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use anyhow::{Context, Result, bail};

use crate::process::{self, find_in_path};
use crate::target::Target;
use crate::workspace::Workspace;

/// The programs: `examples/c/NAME.c`.
const PROGRAMS: [&str; 2] = ["hello", "opcodes"];
/// One for NVIDIA alone, in LLVM's layout: elsewhere linkers make the arrays that it is about.
const CONSTRUCTORS: &str = "constructors";
/// What is before a program's name in that of its image.
const PREFIX: &str = "c-";
/// The first clang that has variable arguments on both GPUs.
const OLDEST: u32 = 20;

/// The layouts of the header: in an image's name, and what is defined for it.
const LAYOUTS: [(&str, Option<&str>); 3] = [
    ("line", Some("GPURPC_LINE")),
    ("llvm", None),
    ("llvm22", Some("GPURPC_LLVM_22")),
];

/// What all compilations have.
const FLAGS: [&str; 7] = [
    "-std=c11",
    "-Os",
    "-ffreestanding",
    "-nostdlib",
    "-Wall",
    "-Wextra",
    "-Werror",
];

/// An image of a C program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Image {
    source: PathBuf,
    /// Below `target/images/`.
    pub(crate) path: PathBuf,
    flags: Vec<String>,
}

/// Whether `name` is that of a C program among the images.
pub(crate) fn is_program(name: &str) -> bool {
    name.strip_prefix(PREFIX)
        .is_some_and(|name| PROGRAMS.contains(&name) || name == CONSTRUCTORS)
}

/// The names of the C programs among the images.
pub(crate) fn names() -> impl Iterator<Item = String> {
    PROGRAMS.iter().map(|name| format!("{PREFIX}{name}"))
}

/// The images for `target` of the programs in `names`, or of all if it is empty; only those of the layout
/// `Line` if `line`.
pub(crate) fn images(target: Target, names: &[String], line: bool) -> Vec<Image> {
    let mut images = Vec::new();
    let nvptx = (target == Target::Nvptx64).then_some(CONSTRUCTORS);
    for program in PROGRAMS.into_iter().chain(nvptx) {
        let name = format!("{PREFIX}{program}");
        if !names.is_empty() && !names.contains(&name) {
            continue;
        }
        for (layout, define) in LAYOUTS {
            if line && layout != "line" || program == CONSTRUCTORS && layout != "llvm" {
                continue;
            }
            let mut flags = flags(target);
            flags.extend(define.map(|define| format!("-D{define}")));
            let image = |suffix: &str, flags| Image {
                source: format!("examples/c/{program}.c").into(),
                path: format!(
                    "{}/{name}-{layout}{suffix}.{}",
                    target.folder(),
                    target.extension()
                )
                .into(),
                flags,
            };
            images.push(image("", flags.clone()));
            // Wavefronts of 64 lanes, which other GPUs of AMD's always have.
            if target == Target::Amdgcn && program == "opcodes" && layout != "llvm22" {
                flags.push("-mwavefrontsize64".to_owned());
                images.push(image("-wave64", flags));
            }
        }
    }
    images
}

fn flags(target: Target) -> Vec<String> {
    let own: &[&str] = match target {
        Target::X86_64 => &["-fPIC", "-shared"],
        // As for the Rust images; each call of the header's operations is one that lanes do together.
        Target::Nvptx64 => &[
            "--target=nvptx64-nvidia-cuda",
            "-march=sm_70",
            "-Xclang",
            "-target-feature",
            "-Xclang",
            "+ptx80",
            "-nogpulib",
            "-fconvergent-functions",
            "-S",
        ],
        Target::Amdgcn => &[
            "--target=amdgcn-amd-amdhsa",
            "-mcpu=gfx1100",
            "-nogpulib",
            "-fconvergent-functions",
        ],
    };
    let all = FLAGS.iter().chain(own);
    all.map(|&flag| flag.to_owned()).collect()
}

/// Builds `images` with the clang in `llvm`, or one on PATH; for hosts any C compiler does.
pub(crate) fn build(
    workspace: &Workspace,
    llvm: Option<&Path>,
    target: Target,
    images: &[Image],
) -> Result<Vec<PathBuf>> {
    let compiler = match (clang(llvm), target, find_in_path("cc")) {
        (Err(_), Target::X86_64, Some(compiler)) => compiler,
        (clang, _, _) => clang?,
    };
    let newest = newest_source(workspace)?;
    let folder = workspace.images();
    let mut built = Vec::new();
    for image in images {
        let path = folder.join(&image.path);
        let made = fs::metadata(&path).and_then(|metadata| metadata.modified());
        if !made.is_ok_and(|made| made > newest) {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)
                    .with_context(|| format!("cannot create {}", folder.display()))?;
            }
            let mut command = Command::new(&compiler);
            command
                .current_dir(&workspace.root)
                .args(&image.flags)
                .args(["-I", "include"])
                .arg(&image.source)
                .arg("-o")
                .arg(&path);
            process::run(&mut command)?;
        }
        built.push(path);
    }
    Ok(built)
}

/// When what all images are made from changed last: sources, header, and the flags, which are here.
fn newest_source(workspace: &Workspace) -> Result<SystemTime> {
    let mut newest =
        fs::metadata(std::env::current_exe().context("xtask does not know where it lies")?)?
            .modified()?;
    for folder in ["examples/c", "include", "include/gpurpc"] {
        let folder = workspace.root.join(folder);
        for entry in
            fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?
        {
            newest = newest.max(entry?.metadata()?.modified()?);
        }
    }
    Ok(newest)
}

fn clang(llvm: Option<&Path>) -> Result<PathBuf> {
    let own = llvm
        .map(|folder| folder.join("clang"))
        .filter(|clang| clang.exists());
    let versioned = (OLDEST..OLDEST + 10)
        .rev()
        .find_map(|major| find_in_path(&format!("clang-{major}")));
    let found = own
        .or(versioned)
        .or_else(|| find_in_path("clang"))
        .context("the C programs need clang: `apt-get install clang-22 lld-22` brings it")?;
    let says = process::output(Command::new(&found).arg("-dumpversion")).unwrap_or_default();
    match major(&says) {
        Some(major) if major >= OLDEST => Ok(found),
        _ => bail!(
            "the C programs need clang {OLDEST} or newer, and {} is {}",
            found.display(),
            says.trim()
        ),
    }
}

fn major(version: &str) -> Option<u32> {
    version.trim().split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(target: Target, names: &[&str], line: bool) -> Vec<String> {
        let names: Vec<_> = names.iter().map(|&name| name.to_owned()).collect();
        let images = images(target, &names, line);
        let path = |image: &Image| image.path.display().to_string();
        images.iter().map(path).collect()
    }

    #[test]
    fn images_are_named_by_program_and_layout() {
        assert_eq!(
            paths(Target::X86_64, &["c-hello"], false),
            [
                "x86_64/c-hello-line.so",
                "x86_64/c-hello-llvm.so",
                "x86_64/c-hello-llvm22.so"
            ]
        );
        assert_eq!(
            paths(Target::Nvptx64, &["hello", "c-opcodes"], true),
            ["nvptx64/c-opcodes-line.ptx"]
        );
        let constructors = ["c-constructors"];
        assert_eq!(
            paths(Target::Nvptx64, &constructors, false),
            ["nvptx64/c-constructors-llvm.ptx"]
        );
        assert!(paths(Target::Amdgcn, &constructors, false).is_empty());
        let all = paths(Target::Amdgcn, &[], false);
        assert_eq!(all.len(), 8);
        assert!(all.contains(&"amdgcn-gfx1100/c-opcodes-llvm-wave64.elf".to_owned()));
    }

    #[test]
    fn names_are_told_from_those_of_rust_programs() {
        assert!(is_program("c-hello") && is_program("c-opcodes"));
        assert!(!is_program("hello") && !is_program("c-args"));
    }

    /// Other languages and compilers than the images are made with.
    #[test]
    fn the_header_is_c_plus_plus_and_cuda_too() {
        let Ok(clang) = clang(Some(Path::new("/usr/lib/llvm-22/bin"))) else {
            eprintln!("left out: there is no clang {OLDEST} or newer");
            return;
        };
        let cuda = [
            "--cuda-device-only",
            "--cuda-gpu-arch=sm_70",
            "--cuda-feature=+ptx80",
            "-nocudainc",
            "-nocudalib",
        ];
        for options in [
            &["-xc++"][..],
            &["-xc++", "--target=nvptx64-nvidia-cuda", "-march=sm_70"],
            &["-xc++", "--target=amdgcn-amd-amdhsa", "-mcpu=gfx90a"],
            &["-xcuda", "-Wno-unknown-cuda-version"],
        ] {
            let cuda = cuda.iter().filter(|_| options.contains(&"-xcuda"));
            for (_, define) in LAYOUTS {
                let mut command = Command::new(&clang);
                command
                    .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))
                    .args([
                        "-std=c++17",
                        "-ffreestanding",
                        "-fsyntax-only",
                        "-I",
                        "include",
                    ])
                    .args(["-Wall", "-Wextra", "-Werror"])
                    .args(options)
                    .args(cuda.clone())
                    .args(define.map(|define| format!("-D{define}")))
                    .arg("examples/c/opcodes.c");
                process::run(&mut command).expect("clang takes it");
            }
        }
    }

    #[test]
    fn versions_are_read() {
        assert_eq!(major("22.1.8\n"), Some(22));
        assert_eq!(major(""), None);
    }
}
