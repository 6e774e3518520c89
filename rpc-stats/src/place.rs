//! Where the files lie: in a directory of this user's own.

use std::env;
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, fchmod, fstat, mkdir, open, openat, unlinkat};
use rustix::process::{Pid, getuid, test_kill_process};

use crate::error::DirectoryError;
use crate::format::{self, Fate};
use crate::lock;

/// What the names of files end with that are complete.
const SUFFIX: &str = ".stats";
/// And of those that are being made.
const UNFINISHED: &str = ".new";
/// How long making one, or opening one that is left, takes at most: then who was about to is gone.
const MAKING: Duration = Duration::from_mins(1);

/// A run's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The loader's process.
    pub pid: u32,
    /// The file, for [`Reader::open`](crate::Reader::open).
    pub path: PathBuf,
    /// Whether that loader lives.
    pub alive: bool,
}

/// The directory in which loaders put their files: `$XDG_RUNTIME_DIR/gpurpc`, else
/// `gpurpc-UID` in the directory for temporary files. It is there once a loader has made it.
///
/// # Errors
/// When it is there and must not be used.
pub fn directory() -> Result<PathBuf, DirectoryError> {
    let path = candidates().swap_remove(0);
    match open_directory(&path) {
        Err(DirectoryError::System { error, .. }) if error.kind() == io::ErrorKind::NotFound => {}
        opened => drop(opened?),
    }
    Ok(path)
}

/// The files of this user's runs, latest process first.
///
/// # Errors
/// When a directory for them is there and cannot be looked into.
pub fn runs() -> Result<Vec<Found>, DirectoryError> {
    runs_in(&candidates())
}

fn runs_in(candidates: &[PathBuf]) -> Result<Vec<Found>, DirectoryError> {
    let mut runs = Vec::new();
    for (index, path) in candidates.iter().enumerate() {
        let looked = look(path, |_, name, file| {
            if let Some(pid) = pid_of(name) {
                runs.push(Found {
                    pid,
                    path: path.join(name),
                    // Who cannot be asked for is not given up.
                    alive: lock::is_taken(file).unwrap_or(true),
                });
            }
        });
        unless_foreign(index, looked)?;
    }
    runs.sort_by(|a, b| b.pid.cmp(&a.pid).then_with(|| a.path.cmp(&b.path)));
    Ok(runs)
}

/// Removes what loaders have left that are dead: how many files. Those that were to be kept stay.
///
/// # Errors
/// When a directory for them is there and cannot be looked into.
pub fn clean() -> Result<usize, DirectoryError> {
    let mut removed = 0;
    for (index, path) in candidates().iter().enumerate() {
        removed += unless_foreign(index, clean_in(path))?;
    }
    Ok(removed)
}

/// What is done in candidate `index`; nothing where no loader of this user can have put a file. Anyone
/// may take the name in the directory for temporary files, and that is to keep nobody from the
/// preferred one.
fn unless_foreign<T: Default>(
    index: usize,
    done: Result<T, DirectoryError>,
) -> Result<T, DirectoryError> {
    use rustix::io::Errno;
    let is_foreign = |error: &DirectoryError| match error {
        DirectoryError::Foreign { .. } => true,
        DirectoryError::System { error, .. } => {
            // A symbolic link, something else, a directory of somebody who lets nobody in.
            [Errno::LOOP, Errno::NOTDIR, Errno::ACCESS]
                .map(|errno| Some(errno.raw_os_error()))
                .contains(&error.raw_os_error())
        }
    };
    match done {
        Err(error) if index > 0 && is_foreign(&error) => Ok(T::default()),
        done => done,
    }
}

fn clean_in(path: &Path) -> Result<usize, DirectoryError> {
    let mut removed = 0;
    look(path, |directory, name, file| {
        let left = if name.ends_with(UNFINISHED) {
            is_old(file)
        } else {
            pid_of(name).is_some() && !is_kept(file)
        };
        // Whoever is there to remove it, too, has the same in mind.
        let free = || lock::is_taken(file).is_ok_and(|taken| !taken);
        if left && free() && unlinkat(directory, name, AtFlags::empty()).is_ok() {
            removed += 1;
        }
    })?;
    Ok(removed)
}

/// A name that nobody else chooses.
pub(crate) fn new_name() -> String {
    use std::hash::{BuildHasher, Hasher, RandomState};
    // Seeded by the system.
    let random = RandomState::new().build_hasher().finish();
    format!("{}-{random:016x}{SUFFIX}", std::process::id())
}

/// What the file of this name is called while it is made.
pub(crate) fn unfinished(name: &str) -> String {
    format!(".{name}{UNFINISHED}")
}

fn pid_of(name: &str) -> Option<u32> {
    let (pid, random) = name.strip_suffix(SUFFIX)?.split_once('-')?;
    let hex = random.len() == 16 && random.bytes().all(|byte| byte.is_ascii_hexdigit());
    pid.parse().ok().filter(|_| hex)
}

/// Whether a dead loader's file is not to be removed.
fn is_kept(file: &File) -> bool {
    let mut line = [0; 64];
    if file.read_exact_at(&mut line, 0).is_err() {
        return false;
    }
    match format::check(&line) {
        Ok(Fate::Kept) => true,
        // By now whoever is there has it open; or the number is another process's.
        Ok(Fate::KeptFor(reader)) => is_there(reader) && !is_old(file),
        Ok(Fate::Removed) | Err(_) => false,
    }
}

fn is_there(process: u32) -> bool {
    let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
    let gone = |pid| test_kill_process(pid) == Err(rustix::io::Errno::SRCH);
    pid.is_some_and(|pid| !gone(pid))
}

fn is_old(file: &File) -> bool {
    let changed = file.metadata().and_then(|data| data.modified()).ok();
    changed
        .and_then(|then| SystemTime::now().duration_since(then).ok())
        .is_some_and(|age| age > MAKING)
}

/// The directories, the preferred one first.
fn candidates() -> Vec<PathBuf> {
    let own = format!("gpurpc-{}", getuid().as_raw());
    let runtime = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let runtime = runtime.filter(|path| path.is_absolute() && is_own(path));
    let paths = runtime.map(|path| path.join("gpurpc"));
    paths
        .into_iter()
        .chain([env::temp_dir().join(own)])
        .collect()
}

/// Under another user's name (`su`, `sudo`), the variable may still be the first one's.
fn is_own(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|data| data.is_dir() && data.uid() == getuid().as_raw())
}

/// Opens the first candidate, which is made if it is not there.
pub(crate) fn make_directory() -> Result<(OwnedFd, PathBuf), DirectoryError> {
    let path = candidates().swap_remove(0);
    match mkdir(&path, Mode::RWXU) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => {}
        Err(error) => {
            let error = error.into();
            return Err(DirectoryError::System { path, error });
        }
    }
    let opened = open_directory(&path)?;
    Ok((opened, path))
}

/// Opens a directory that is this user's alone: no symbolic link is followed, and what others could
/// look into, or write, is closed to them.
fn open_directory(path: &Path) -> Result<OwnedFd, DirectoryError> {
    let system = |error: rustix::io::Errno| DirectoryError::System {
        path: path.to_owned(),
        error: error.into(),
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = open(path, flags, Mode::empty()).map_err(system)?;
    let stat = fstat(&directory).map_err(system)?;
    if stat.st_uid != getuid().as_raw() {
        return Err(DirectoryError::Foreign {
            path: path.to_owned(),
            owner: stat.st_uid,
        });
    }
    if Mode::from_raw_mode(stat.st_mode) != Mode::RWXU {
        fchmod(&directory, Mode::RWXU).map_err(system)?;
    }
    Ok(directory)
}

/// Shows `f` each regular file of the directory, if that is there.
fn look(path: &Path, mut f: impl FnMut(&OwnedFd, &str, &File)) -> Result<(), DirectoryError> {
    let directory = match open_directory(path) {
        Err(DirectoryError::System { error, .. }) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(());
        }
        opened => opened?,
    };
    let entries = rustix::fs::Dir::read_from(&directory);
    let entries = entries.map_err(|error| DirectoryError::System {
        path: path.to_owned(),
        error: error.into(),
    })?;
    for entry in entries.flatten() {
        let name = std::ffi::OsStr::from_bytes(entry.file_name().to_bytes());
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // What is gone meanwhile, or none of ours, is passed over.
        let Some(name) = name.to_str() else { continue };
        let Ok(file) = openat(&directory, name, flags, Mode::empty()) else {
            continue;
        };
        let regular = fstat(&file)
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
        if regular {
            f(&directory, name, &File::from(file));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::Snapshot;
    use crate::writer::Writer;

    /// A file of a loader that has ended: this process is its writer no more.
    fn left_by(directory: &Path, name: &str, make: impl Fn(&Path) -> Writer) -> PathBuf {
        let path = directory.join(name);
        drop(make(&path));
        path
    }

    #[test]
    fn what_others_put_in_the_second_place_hides_no_run() {
        let folder = format!("gpurpc-places-{}", std::process::id());
        let root = env::temp_dir().join(folder);
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(root.join("own")).unwrap();
        let own = root.join("own").join(new_name());
        let writer = Writer::create_at(&own, &Snapshot::default(), false).unwrap();
        std::os::unix::fs::symlink("own", root.join("link")).unwrap();
        fs::write(root.join("file"), "").unwrap();
        for trap in ["link", "file"] {
            let trap = root.join(trap);
            let runs = runs_in(&[root.join("own"), trap.clone()]).unwrap();
            assert_eq!(runs.len(), 1, "{}", trap.display());
            // As the preferred one it is told of.
            assert!(runs_in(&[trap]).is_err());
        }
        let path = root.join("another's");
        let foreign = || DirectoryError::Foreign {
            path: path.clone(),
            owner: 1,
        };
        assert!(unless_foreign::<()>(1, Err(foreign())).is_ok());
        assert!(unless_foreign::<()>(0, Err(foreign())).is_err());
        drop(writer);
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn what_dead_loaders_leave_is_removed_unless_somebody_wants_it() {
        let folder = format!("gpurpc-place-{}", std::process::id());
        let directory = env::temp_dir().join(folder);
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir(&directory).unwrap();
        let first = Snapshot::default();
        let name = |n: u8| format!("1-{n:016x}{SUFFIX}");
        let kept = left_by(&directory, &name(1), |path| {
            Writer::create_at(path, &first, true).unwrap()
        });
        let left_for = |n, reader| {
            left_by(&directory, &name(n), |path| {
                Writer::create_at_for(path, reader, &first).unwrap()
            })
        };
        let wanted = left_for(2, std::process::id());
        // No process has this number.
        let unwanted = left_for(3, i32::MAX as u32);
        let forgotten = left_for(4, std::process::id());
        let then = SystemTime::now() - 2 * MAKING;
        let file = File::options().write(true).open(&forgotten).unwrap();
        file.set_modified(then).unwrap();
        drop(file);
        let alive = directory.join(name(5));
        let writer = Writer::create_at(&alive, &first, false).unwrap();
        // A killed loader's: it was not to be kept, and nobody has the lock.
        let killed = directory.join(name(6));
        fs::copy(&alive, &killed).unwrap();
        let other = directory.join("somebody's");
        fs::write(&other, "else").unwrap();

        assert_eq!(clean_in(&directory).unwrap(), 3);
        for (path, there) in [
            (kept, true),
            (wanted, true),
            (unwanted, false),
            (forgotten, false),
            (alive, true),
            (killed, false),
            (other, true),
        ] {
            assert_eq!(path.exists(), there, "{}", path.display());
        }
        drop(writer);
        fs::remove_dir_all(&directory).unwrap();
    }
}
