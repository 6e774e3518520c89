//! A monitor's side of the file.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, open};

use crate::error::ReadError;
use crate::format::{self, HEAD, Slot, Wrong};
use crate::snapshot::Snapshot;
use crate::{lock, payload};

/// How often a file is looked at that changes under the reader's hands.
const TRIES: usize = 8;

/// Whether a loader is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liveness {
    /// It is; whether it works, the snapshots tell.
    Alive,
    /// It has ended, in whatever way.
    Dead,
}

/// Reads what a loader publishes. The loader does not notice.
#[derive(Debug)]
pub struct Reader {
    file: File,
    path: PathBuf,
    last: u64,
}

impl Reader {
    /// Opens a loader's file. What it says can be read even if it is removed meanwhile.
    ///
    /// # Errors
    /// When there is none, or it is none of this version.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ReadError> {
        let path = path.as_ref().to_owned();
        // A pipe would be waited for.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match open(&path, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(error) => {
                let error = error.into();
                return Err(ReadError::Open { path, error });
            }
        };
        if !file.metadata().is_ok_and(|data| data.is_file()) {
            return Err(ReadError::NotStatistics(path));
        }
        let last = 0;
        let reader = Self { file, path, last };
        reader.slots()?;
        Ok(reader)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The latest snapshot; `None` if the last one that was given is still that.
    ///
    /// # Errors
    /// When the file is destroyed.
    pub fn read(&mut self) -> Result<Option<Snapshot>, ReadError> {
        for attempt in 0..TRIES {
            if attempt > 0 {
                std::thread::yield_now();
            }
            let slots = self.slots()?;
            let Some(slot) = slots.iter().flatten().max_by_key(|slot| slot.sequence) else {
                continue;
            };
            if slot.sequence <= self.last {
                return Ok(None);
            }
            // Else it was overwritten: then there is a later one.
            if let Some(bytes) = self.payload(slot)? {
                let decoded = payload::decode(&bytes);
                let Ok(mut snapshot) = decoded else {
                    return Err(ReadError::Damaged(self.path.clone()));
                };
                self.last = slot.sequence;
                snapshot.sequence = slot.sequence;
                snapshot.time_ns = slot.time_ns;
                return Ok(Some(snapshot));
            }
        }
        Err(ReadError::Damaged(self.path.clone()))
    }

    /// Whether the loader whose file this is lives.
    pub fn liveness(&self) -> Liveness {
        match lock::is_taken(&self.file) {
            Ok(false) => Liveness::Dead,
            // Who cannot be asked for is not given up.
            Ok(true) | Err(_) => Liveness::Alive,
        }
    }

    /// The slots that are whole.
    fn slots(&self) -> Result<[Option<Slot>; 2], ReadError> {
        let mut head = [0; HEAD];
        if !self.read_at(&mut head, 0)? {
            return Err(ReadError::NotStatistics(self.path.clone()));
        }
        let [header, slots @ ..] = format::lines(&head);
        match format::check(&header) {
            Ok(_) => Ok(slots.each_ref().map(Slot::from_bytes)),
            Err(Wrong::Magic) => Err(ReadError::NotStatistics(self.path.clone())),
            Err(Wrong::Version(version)) => Err(ReadError::Version {
                path: self.path.clone(),
                version,
            }),
        }
    }

    /// What `slot` refers to, if that is whole.
    fn payload(&self, slot: &Slot) -> Result<Option<Vec<u8>>, ReadError> {
        // No memory for what is not there, whatever the slot says.
        let there = self
            .file
            .metadata()
            .map_err(|error| self.failed(error))?
            .len();
        if slot.offset > there || slot.length > there - slot.offset {
            return Ok(None);
        }
        let mut bytes = vec![0; slot.length as usize];
        let whole = self.read_at(&mut bytes, slot.offset)?;
        Ok((whole && crc32fast::hash(&bytes) == slot.check).then_some(bytes))
    }

    /// Fills `bytes`; `false` if the file ends before.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<bool, ReadError> {
        match self.file.read_exact_at(bytes, offset) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(self.failed(error)),
        }
    }

    fn failed(&self, error: io::Error) -> ReadError {
        let path = self.path.clone();
        ReadError::Read { path, error }
    }
}
