//! A loader's side of the file.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, fstat, open, openat, renameat, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit, getuid};

use crate::error::WriteError;
use crate::format::{self, BODY, Fate, MOST, Slot};
use crate::snapshot::Snapshot;
use crate::{lock, payload, place};

/// Publishes snapshots of one run. The file goes when the writer does, unless it is kept.
#[derive(Debug)]
pub struct Writer {
    file: File,
    /// Where the file is, and its name there.
    directory: OwnedFd,
    name: PathBuf,
    path: PathBuf,
    keep: bool,
    /// The latest.
    slot: Slot,
    index: usize,
    /// What the latest slot refers to.
    payload: Vec<u8>,
    scratch: Vec<u8>,
}

impl Writer {
    /// Makes a file in the [directory](crate::directory) of this user's runs, with `first` in it.
    /// What dead loaders have left there is removed.
    ///
    /// # Errors
    /// When there is no place for it.
    pub fn create(first: &Snapshot, keep: bool) -> Result<Self, WriteError> {
        Self::make_new(first, fate(keep))
    }

    /// As [`create`](Self::create), but the file stays for process `reader`, which is to remove it
    /// when it has read what was published last. When that process is gone, too, the next loader
    /// removes it.
    ///
    /// # Errors
    /// When there is no place for it.
    pub fn create_for(reader: u32, first: &Snapshot) -> Result<Self, WriteError> {
        Self::make_new(first, Fate::KeptFor(reader))
    }

    fn make_new(first: &Snapshot, fate: Fate) -> Result<Self, WriteError> {
        let (directory, path) = place::make_directory()?;
        // Of no use to this run: it does not matter if it fails.
        let _ = place::clean();
        let name = place::new_name();
        Self::make(directory, &path, Path::new(&name), first, fate)
    }

    /// Makes the file at `path`, with `first` in it. A statistics file of this user's that no loader
    /// writes, or an empty file, is replaced; whoever has opened that keeps the old one.
    ///
    /// # Errors
    /// When something else is there, or it cannot be made.
    pub fn create_at(path: &Path, first: &Snapshot, keep: bool) -> Result<Self, WriteError> {
        Self::make_at(path, first, fate(keep))
    }

    /// Whether [`create_at`](Self::create_at) would find nothing at `path` that must stay. Changes
    /// nothing.
    ///
    /// # Errors
    /// When it would; [`WriteError::NotStatistics`] when that is something of somebody else's making.
    pub fn check(path: &Path) -> Result<(), WriteError> {
        Place::find(path).map(drop)
    }

    #[cfg(test)]
    pub(crate) fn create_at_for(
        path: &Path,
        reader: u32,
        first: &Snapshot,
    ) -> Result<Self, WriteError> {
        Self::make_at(path, first, Fate::KeptFor(reader))
    }

    fn make_at(path: &Path, first: &Snapshot, fate: Fate) -> Result<Self, WriteError> {
        let Place {
            directory,
            parent,
            name,
        } = Place::find(path)?;
        Self::make(directory, parent, name, first, fate)
    }

    fn make(
        directory: OwnedFd,
        parent: &Path,
        name: &Path,
        first: &Snapshot,
        fate: Fate,
    ) -> Result<Self, WriteError> {
        let path = parent.join(name);
        // Under its name it appears when it is locked and has something in it.
        let unfinished = PathBuf::from(place::unfinished(&place::new_name()));
        let flags = OFlags::RDWR
            | OFlags::CREATE
            | OFlags::EXCL
            | OFlags::NOFOLLOW
            | OFlags::NONBLOCK
            | OFlags::CLOEXEC;
        let file = match openat(&directory, &unfinished, flags, Mode::RUSR | Mode::WUSR) {
            Ok(file) => File::from(file),
            Err(error) => {
                let error = error.into();
                return Err(WriteError::Create { path, error });
            }
        };
        let mut writer = Self {
            file,
            directory,
            name: unfinished,
            path,
            keep: false,
            slot: Slot::default(),
            index: 1,
            payload: Vec::new(),
            scratch: Vec::new(),
        };
        // Whatever fails from here on, the file goes again.
        lock::take(&writer.file).map_err(|error| writer.failed(error))?;
        writer.write_at(&format::header(fate), 0)?;
        // So that both slots are there to be read.
        writer.write_at(&[0; 64], Slot::offset(1))?;
        writer.publish(first)?;
        renameat(&writer.directory, &writer.name, &writer.directory, name).map_err(|error| {
            WriteError::Create {
                path: writer.path.clone(),
                error: error.into(),
            }
        })?;
        name.clone_into(&mut writer.name);
        writer.keep = fate != Fate::Removed;
        Ok(writer)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes `snapshot` the latest and gives its sequence number, which is one more than that of
    /// the one before, whatever the snapshot says. One in which nothing but the time has changed
    /// costs 64 bytes.
    ///
    /// # Errors
    /// When it cannot be written; the one before stays.
    pub fn publish(&mut self, snapshot: &Snapshot) -> Result<u64, WriteError> {
        self.scratch.clear();
        payload::encode(snapshot, &mut self.scratch);
        let mut slot = Slot {
            sequence: self.slot.sequence + 1,
            time_ns: snapshot.time_ns,
            ..self.slot
        };
        let index = 1 - self.index;
        let changed = self.slot.sequence == 0 || self.scratch != self.payload;
        if changed {
            slot.length = self.scratch.len() as u64;
            slot.offset = place_of(
                slot.length,
                self.slot.offset..self.slot.offset + self.slot.length,
            );
            slot.check = crc32fast::hash(&self.scratch);
            if slot.length > MOST {
                return Err(WriteError::TooLarge {
                    path: self.path.clone(),
                    size: slot.length,
                    most: MOST,
                });
            }
            self.write_at(&self.scratch, slot.offset)?;
        }
        // After what it refers to. A reader of the slot before last finds that out by the checksum.
        self.write_at(&slot.to_bytes(), Slot::offset(index))?;
        (self.slot, self.index) = (slot, index);
        // Only now: had the slot not been written, the next one would take this for what it refers to.
        if changed {
            std::mem::swap(&mut self.scratch, &mut self.payload);
        }
        Ok(slot.sequence)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), WriteError> {
        let size = offset + bytes.len() as u64;
        // Beyond the limit there is a signal that ends the process.
        if let Some(most) = getrlimit(Resource::Fsize)
            .current
            .filter(|most| size > *most)
        {
            let path = self.path.clone();
            return Err(WriteError::TooLarge { path, size, most });
        }
        let written = self.file.write_all_at(bytes, offset);
        written.map_err(|error| self.failed(error))
    }

    fn failed(&self, error: io::Error) -> WriteError {
        WriteError::Write {
            path: self.path.clone(),
            error,
        }
    }
}

fn fate(keep: bool) -> Fate {
    if keep { Fate::Kept } else { Fate::Removed }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if self.keep {
            return;
        }
        // Another file may have its name by now.
        let own = fstat(&self.file);
        let named = statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW);
        if let (Ok(own), Ok(named)) = (own, named)
            && (own.st_dev, own.st_ino) == (named.st_dev, named.st_ino)
        {
            let _ = unlinkat(&self.directory, &self.name, AtFlags::empty());
        }
    }
}

/// Where `length` bytes are put that must leave `live` as it is.
fn place_of(length: u64, live: Range<u64>) -> u64 {
    if live.is_empty() || live.start - BODY >= length {
        BODY
    } else {
        live.end.next_multiple_of(64)
    }
}

/// Where a file may be made.
struct Place<'a> {
    directory: OwnedFd,
    parent: &'a Path,
    name: &'a Path,
}

impl<'a> Place<'a> {
    /// The place at `path`, unless something has it that must stay.
    fn find(path: &'a Path) -> Result<Self, WriteError> {
        let create = |error: io::Error| WriteError::Create {
            path: path.to_owned(),
            error,
        };
        let Some(name) = path.file_name().map(Path::new) else {
            // Such as `/` and `..`.
            return Err(if path.is_dir() {
                let (path, what) = (path.to_owned(), "a directory");
                WriteError::NotStatistics { path, what }
            } else {
                create(io::ErrorKind::IsADirectory.into())
            });
        };
        let parent = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = open(parent, flags, Mode::empty()).map_err(|error| create(error.into()))?;
        let path = || path.to_owned();
        match Occupant::of(directory.as_fd(), name) {
            None => Ok(Self {
                directory,
                parent,
                name,
            }),
            Some(Occupant::Taken(what)) => Err(WriteError::Occupied { path: path(), what }),
            Some(Occupant::Other(what)) => Err(WriteError::NotStatistics { path: path(), what }),
        }
    }
}

/// What must not be replaced.
enum Occupant {
    /// It may be statistics, of somebody who needs them.
    Taken(&'static str),
    /// It is something else.
    Other(&'static str),
}

impl Occupant {
    /// What is at `name`; `None` if that may be replaced.
    fn of(directory: BorrowedFd<'_>, name: &Path) -> Option<Self> {
        let stat = match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return None,
            // What it is, nobody knows.
            Err(_) => return Some(Self::Taken("not to be looked at")),
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {}
            FileType::Symlink => return Some(Self::Other("a symbolic link")),
            FileType::Directory => return Some(Self::Other("a directory")),
            _ => return Some(Self::Other("no regular file")),
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(directory, name, flags, Mode::empty()).map(File::from);
        if stat.st_size > 0 {
            let Ok(file) = &file else {
                return Some(Self::Other("a file that may not be read"));
            };
            let mut start = [0; format::MAGIC.len()];
            if file.read_exact_at(&mut start, 0).is_err() || start != format::MAGIC {
                return Some(Self::Other("no statistics file of gpurpc"));
            }
        }
        if stat.st_uid != getuid().as_raw() {
            return Some(Self::Taken("another user's file"));
        }
        // An empty one that cannot be opened is a file of ours all the same.
        let taken = file.is_ok_and(|file| lock::is_taken(&file).unwrap_or(false));
        taken.then_some(Self::Taken("the file of a loader that runs"))
    }
}

const _: () = assert!(BODY >= format::HEAD as u64);
