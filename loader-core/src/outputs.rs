//! The files that a run writes, looked at before anything is written: none of them is to destroy the
//! image, another one of them, or what is no file of ours.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rpc_stats::{WriteError, Writer};
use thiserror::Error;

use crate::cli::{Options, Stats};

/// Symbolic links that are followed, as by the system.
const LINKS: usize = 40;

/// Why a file is not written.
#[derive(Debug, Error)]
pub enum OutputError {
    /// It is read.
    #[error("{option} {} is the image, which would be lost: give another file", path.display())]
    Image {
        /// What it was given to.
        option: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// It is written already.
    #[error(
        "{} {} and {} {} are one file: give each a file of its own",
        first.0, first.1.display(), second.0, second.1.display()
    )]
    Same {
        /// An option and its file.
        first: (&'static str, PathBuf),
        /// Another option and the same file.
        second: (&'static str, PathBuf),
    },
    /// Something is there that is not to be replaced.
    #[error("--stats {0}")]
    Stats(WriteError),
}

/// Looks at what `options` has a run of `image` write, and at `more` files, each with its option; no
/// image: it comes from no file. Changes nothing.
///
/// # Errors
/// When something would be lost that is not to be.
pub fn check(
    image: Option<&OsStr>,
    options: &Options,
    more: &[(&'static str, &Path)],
) -> Result<(), OutputError> {
    let stats = match &options.stats {
        Some(Stats::At(path)) => Some(path.as_path()),
        _ => None,
    };
    let reports = options.report.iter().map(PathBuf::as_path);
    let outputs: Vec<_> = (more.iter().copied())
        .chain(reports.map(|path| ("--report", path)))
        .chain(stats.map(|path| ("--stats", path)))
        .map(|(option, path)| (option, path, Identity::of(path)))
        .collect();
    let image = image.and_then(Identity::of_image);
    for (index, (option, path, own)) in outputs.iter().enumerate() {
        let (option, path) = (*option, path.to_path_buf());
        if own.is_none() {
            continue;
        }
        if *own == image {
            return Err(OutputError::Image { option, path });
        }
        // Two reports say the same.
        let before = outputs[..index].iter();
        let same = before
            .clone()
            .find(|(other, _, its)| *other != option && its == own);
        if let Some((other, its, _)) = same {
            return Err(OutputError::Same {
                first: (other, its.to_path_buf()),
                second: (option, path),
            });
        }
    }
    match stats.map(Writer::check) {
        Some(Err(error @ WriteError::NotStatistics { .. })) => Err(OutputError::Stats(error)),
        // What else keeps statistics from being published is a warning.
        _ => Ok(()),
    }
}

/// Whether two paths are those of one regular file, which may still have to be made.
pub fn are_one(a: &Path, b: &Path) -> bool {
    let a = Identity::of(a);
    a.is_some() && a == Identity::of(b)
}

/// Which file it is that a path leads to.
#[derive(Debug, PartialEq, Eq)]
enum Identity {
    /// Device and inode.
    There(u64, u64),
    /// Those of its directory, and its name there.
    ToCome(u64, u64, OsString),
}

impl Identity {
    /// `None` for what nothing is lost in, such as a pipe or a device, and what cannot be found out.
    fn of(path: &Path) -> Option<Self> {
        let mut path = path.to_owned();
        for _ in 0..LINKS {
            match fs::metadata(&path) {
                Ok(data) => return Self::there(&data),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(_) => return None,
            }
            // A link to what is not there: that is made.
            let Ok(target) = fs::read_link(&path) else {
                break;
            };
            path = directory(&path).join(target);
        }
        let data = fs::metadata(directory(&path)).ok()?;
        let name = path.file_name()?.to_owned();
        Some(Self::ToCome(data.dev(), data.ino(), name))
    }

    fn of_image(path: &OsStr) -> Option<Self> {
        if path != "-" {
            // One that is not there is refused for that.
            return Self::there(&fs::metadata(path).ok()?);
        }
        let input = io::stdin().as_fd().try_clone_to_owned().ok()?;
        Self::there(&File::from(input).metadata().ok()?)
    }

    fn there(data: &Metadata) -> Option<Self> {
        data.is_file().then(|| Self::There(data.dev(), data.ino()))
    }
}

fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use clap::Parser as _;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn what_would_be_lost_is_refused() {
        let folder = std::env::temp_dir().join(format!("gpurpc-outputs-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        let file = |name: &str| folder.join(name);
        fs::write(file("image"), "an image").unwrap();
        fs::write(file("other"), "another file").unwrap();
        fs::hard_link(file("image"), file("hard")).unwrap();
        symlink("image", file("soft")).unwrap();
        symlink("new", file("to-come")).unwrap();
        symlink("round", file("round")).unwrap();
        let check = |line: &str, output: Option<&str>| {
            let words = line.split_whitespace().map(|word| match word {
                "off" | "--report" | "--stats" => word.into(),
                name if name.starts_with('/') => name.into(),
                name => file(name).into_os_string(),
            });
            let cli = Cli::parse_from([OsString::from("loader")].into_iter().chain(words));
            let output = output.map(file);
            let more = output.iter().map(|path| ("--output", path.as_path()));
            let more: Vec<_> = more.collect();
            let checked = super::check(Some(&cli.command[0]), &cli.options, &more);
            checked.map_err(|error| error.to_string())
        };
        for (line, output, words) in [
            ("--report image image", None, "--report"),
            ("--report hard image", None, "is the image"),
            ("--report soft image", None, "is the image"),
            ("--report image soft", None, "is the image"),
            ("--report new --report image image", None, "is the image"),
            ("--stats image image", None, "is the image"),
            ("image", Some("image"), "--output"),
            ("--report new image", Some("new"), "are one file"),
            ("--report other image", Some("other"), "are one file"),
            ("--stats new image", Some("to-come"), "are one file"),
            ("--stats new --report new image", None, "--stats"),
            ("--stats other image", None, "no statistics file"),
            ("--stats /dev/null image", None, "no regular file"),
        ] {
            let said = check(line, output).unwrap_err();
            assert!(
                said.contains(words) && !said.contains('\n'),
                "{line}: {said}"
            );
        }
        for (line, output) in [
            ("--report other --stats new image", None),
            ("--report new --report new image", Some("newer")),
            ("--report /dev/null image", Some("other")),
            ("--stats off --report off image", None),
            // What is not there is refused for that.
            ("--report none none", Some("newer")),
            ("--report round --stats none/file image", Some("none/file")),
        ] {
            let allowed = check(line, output);
            assert!(allowed.is_ok(), "{line}: {allowed:?}");
        }
        assert_eq!(fs::read(file("image")).unwrap(), b"an image");
        assert_eq!(fs::read(file("other")).unwrap(), b"another file");
        assert!(!file("new").exists());
        assert!(are_one(&file("hard"), &file("soft")));
        assert!(!are_one(&file("hard"), &file("other")));
        assert!(!are_one(Path::new("/dev/null"), Path::new("/dev/null")));
        fs::remove_dir_all(&folder).unwrap();
    }
}
