//! What an image is built for: the device and the layout of its shared memory.

use std::path::{Path, PathBuf};

use clap::ValueEnum;

/// A device that images are built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Target {
    /// The CPU device: an x86-64 shared object.
    #[value(name = "x86_64", alias = "cpu")]
    X86_64,
    /// NVIDIA: PTX text.
    #[value(name = "nvptx64", alias = "nv")]
    Nvptx64,
    /// AMD gfx1100: a code object.
    #[value(name = "amdgcn", aliases = ["amdgcn-gfx1100", "amd"])]
    Amdgcn,
}

impl Target {
    /// Every target, in build order.
    pub(crate) const ALL: [Self; 3] = [Self::X86_64, Self::Nvptx64, Self::Amdgcn];

    /// The folder under `target/images/`.
    pub(crate) fn folder(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Nvptx64 => "nvptx64",
            Self::Amdgcn => "amdgcn-gfx1100",
        }
    }

    /// The file extension of an image.
    pub(crate) fn extension(self) -> &'static str {
        match self {
            Self::X86_64 => "so",
            Self::Nvptx64 => "ptx",
            Self::Amdgcn => "elf",
        }
    }

    /// Cargo's `--target`; `None` is the host itself.
    pub(crate) fn triple(self) -> Option<&'static str> {
        match self {
            Self::X86_64 => None,
            Self::Nvptx64 => Some("nvptx64-nvidia-cuda"),
            Self::Amdgcn => Some("amdgcn-amd-amdhsa"),
        }
    }

    /// Where cargo leaves the cdylib of the library target `lib`.
    pub(crate) fn artifact(self, target_dir: &Path, lib: &str) -> PathBuf {
        let mut path = target_dir.to_path_buf();
        path.extend(self.triple());
        path.push("release");
        match self {
            Self::X86_64 => path.join(format!("lib{lib}.so")),
            _ => path.join(format!("{lib}.{}", self.extension())),
        }
    }

    /// Profile settings, as environment variables so that the workspace's own release profile stays
    /// one for hosts.
    ///
    /// PTX is optimised for speed: on an H200 a call is a tenth faster than from an image made for
    /// size, which is not even smaller. The x86-64 image keeps unwinding, by which the CPU device ends a thread.
    pub(crate) fn profile(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::X86_64 => &[("CARGO_PROFILE_RELEASE_STRIP", "debuginfo")],
            Self::Nvptx64 => &[
                ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "3"),
                ("CARGO_PROFILE_RELEASE_PANIC", "abort"),
                ("CARGO_PROFILE_RELEASE_DEBUG", "false"),
            ],
            // The linker takes no bitcode, so LTO has to be rustc's own.
            Self::Amdgcn => &[
                ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "s"),
                ("CARGO_PROFILE_RELEASE_PANIC", "abort"),
                ("CARGO_PROFILE_RELEASE_DEBUG", "false"),
                ("CARGO_PROFILE_RELEASE_LTO", "fat"),
            ],
        }
    }
}

/// The layout of the shared memory, a compile-time choice of the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Layout {
    /// A request line per port: the default.
    Line,
    /// A mailbox bit per port.
    Compact,
    /// A mailbox word per port, as LLVM's libc has it: only programs that have the feature for it.
    Llvm,
}

impl Layout {
    /// Every layout.
    pub(crate) const ALL: [Self; 3] = [Self::Line, Self::Compact, Self::Llvm];

    /// Its name, in paths and messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Line => "line",
            Self::Compact => "compact",
            Self::Llvm => "llvm",
        }
    }

    /// The example packages' feature that chooses it.
    pub(crate) fn feature(self) -> Option<&'static str> {
        match self {
            Self::Line => None,
            Self::Compact => Some("compact"),
            Self::Llvm => Some("llvm"),
        }
    }
}

/// The path of an image below `target/images/`.
pub(crate) fn image_path(target: Target, layout: Layout, name: &str) -> PathBuf {
    let mut path = PathBuf::from(target.folder());
    path.extend(layout.feature());
    path.join(format!("{name}.{}", target.extension()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_paths() {
        let path = |t, l| image_path(t, l, "hello").display().to_string();
        assert_eq!(path(Target::X86_64, Layout::Line), "x86_64/hello.so");
        assert_eq!(
            path(Target::Nvptx64, Layout::Compact),
            "nvptx64/compact/hello.ptx"
        );
        assert_eq!(
            path(Target::Amdgcn, Layout::Line),
            "amdgcn-gfx1100/hello.elf"
        );
    }

    #[test]
    fn artifacts_lie_where_cargo_puts_them() {
        let path = |t: Target| t.artifact(Path::new("t"), "hello").display().to_string();
        assert_eq!(path(Target::X86_64), "t/release/libhello.so");
        assert_eq!(
            path(Target::Nvptx64),
            "t/nvptx64-nvidia-cuda/release/hello.ptx"
        );
        assert_eq!(
            path(Target::Amdgcn),
            "t/amdgcn-amd-amdhsa/release/hello.elf"
        );
    }
}
