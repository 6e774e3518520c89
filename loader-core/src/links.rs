//! Names of other loaders, as links to ours: who has them in build files and test suites changes
//! nothing there.

use std::ffi::OsStr;
use std::path::Path;

/// LLVM's loader for NVIDIA devices.
pub const NVPTX_LOADER: &str = "nvptx-loader";
/// LLVM's loader for AMD devices.
pub const AMDHSA_LOADER: &str = "amdhsa-loader";
/// The one that LLVM has made of the two.
pub const LLVM_LOADER: &str = "llvm-gpu-loader";

/// Which of `links` this program was called by, if by one of them.
pub fn called_by(links: &[&'static str]) -> Option<&'static str> {
    find(std::env::args_os().next()?.as_os_str(), links)
}

fn find(called: &OsStr, links: &[&'static str]) -> Option<&'static str> {
    let name = Path::new(called).file_name()?;
    links.iter().find(|&&link| name == link).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_name_counts() {
        let links = [NVPTX_LOADER, AMDHSA_LOADER];
        for (called, expected) in [
            ("nvptx-loader", Some(NVPTX_LOADER)),
            ("/opt/bin/amdhsa-loader", Some(AMDHSA_LOADER)),
            ("../nvptx-loader/loader-nv", None),
            ("nvptx-loader-2", None),
            ("", None),
        ] {
            assert_eq!(find(OsStr::new(called), &links), expected, "{called}");
        }
        assert_eq!(called_by(&links), None);
    }
}
