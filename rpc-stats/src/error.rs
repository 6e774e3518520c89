//! Why there are no statistics.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::format::VERSION;

/// Why a file of statistics is not read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// It cannot be opened.
    #[error("{} cannot be opened: {error}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// It cannot be read any more.
    #[error("{} cannot be read: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// It is something else.
    #[error("{} is no statistics file of gpurpc", .0.display())]
    NotStatistics(PathBuf),
    /// Another release has written it.
    #[error(
        "{} has version {version} of the statistics' format, and this program reads version \
         {VERSION}: take the monitor of the release that the loader is of",
        path.display()
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
    /// What is in it does not fit together, and nobody is writing it just now.
    #[error("{} is damaged: no snapshot in it is whole", .0.display())]
    Damaged(PathBuf),
}

/// Why the directory of the statistics' files is not used.
#[derive(Debug, Error)]
pub enum DirectoryError {
    /// The system refuses it.
    #[error("the directory {} cannot be used: {error}", path.display())]
    System {
        /// The directory.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// It could be a trap.
    #[error(
        "the directory {} belongs to user {owner}: remove it, or set XDG_RUNTIME_DIR to a \
         directory of your own",
        path.display()
    )]
    Foreign {
        /// The directory.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
    },
}

/// Why statistics are not written.
#[derive(Debug, Error)]
pub enum WriteError {
    /// There is no place for them.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// What has the file's name is not to be replaced.
    #[error("{} is {what}: give the path of a file that may be made anew", path.display())]
    Occupied {
        /// The file.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// What has the file's name is something else, which would be lost.
    #[error(
        "{} is {what}, and statistics replace only statistics: give the path of a file that may be \
         made anew",
        path.display()
    )]
    NotStatistics {
        /// The file.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// It cannot be made.
    #[error("{} cannot be made: {error}", path.display())]
    Create {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// It can no longer be written.
    #[error("{} cannot be written: {error}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// It would be larger than files may be.
    #[error(
        "{} would take {size} bytes, and {most} are the most that this process may write (see \
         ulimit -f)",
        path.display()
    )]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Bytes that it would have.
        size: u64,
        /// The most that it may have.
        most: u64,
    },
}
