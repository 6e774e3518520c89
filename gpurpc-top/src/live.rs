//! A loader's file as a source.

use std::fs::{File, metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rpc_stats::{Liveness, Reader, runs};

use crate::source::{Health, Look, Source};

/// Reads what a loader publishes. It keeps the file open: what was published last can be read when
/// the loader has ended and the file is gone.
#[derive(Debug)]
pub struct Live {
    /// Else one in the usual folder.
    path: Option<PathBuf>,
    reader: Option<Reader>,
    pid: Option<u32>,
    /// Whose snapshots are taken, if not anybody's.
    only: Option<u32>,
    /// Files of earlier runs in the usual folder. A process of one of them may have had the same
    /// number.
    earlier: Vec<PathBuf>,
    /// What lay at the path before: while it is open, no other file can be the same.
    replaced: Option<File>,
    trouble: Option<String>,
    /// Looks that found no file.
    missed: u32,
}

/// After so many looks, a file that is not there will not be.
const PATIENCE: u32 = 50;

impl Live {
    /// Of the file at this path, once it is there.
    pub fn new(path: PathBuf) -> Self {
        Self {
            path: Some(path),
            reader: None,
            pid: None,
            only: None,
            earlier: Vec::new(),
            replaced: None,
            trouble: None,
            missed: 0,
        }
    }

    /// Of a file that has been opened.
    pub fn of(reader: Reader) -> Self {
        let path = reader.path().to_owned();
        Self {
            reader: Some(reader),
            ..Self::new(path)
        }
    }

    /// Of a loader that is still to be started, and will write to this path, or to the usual folder:
    /// what is there by now is not its file. [`started`](Self::started) says who it is.
    pub fn of_next(path: Option<PathBuf>) -> Self {
        let mut live = Self::new(PathBuf::new());
        if let Some(path) = path.as_ref().filter(|path| path.is_file()) {
            live.replaced = File::open(path).ok();
        } else if path.is_none() {
            // Why they cannot be looked at is said when its own file cannot.
            let earlier = runs().unwrap_or_default();
            live.earlier = earlier.into_iter().map(|run| run.path).collect();
        }
        live.path = path;
        live
    }

    /// The loader is this process.
    #[must_use]
    pub fn started(self, pid: u32) -> Self {
        Self {
            pid: Some(pid),
            only: Some(pid),
            ..self
        }
    }

    /// Where the file is, if it has been found.
    pub fn path(&self) -> Option<&Path> {
        self.reader.as_ref().map(Reader::path)
    }

    /// Whether what is at `path` is what was there before.
    fn lay_there(&self, path: &Path) -> bool {
        let before = self.replaced.as_ref().and_then(|file| file.metadata().ok());
        let (Some(before), Ok(now)) = (before, metadata(path)) else {
            return false;
        };
        (before.dev(), before.ino()) == (now.dev(), now.ino())
    }

    fn open(&mut self) {
        let path = match &self.path {
            Some(path) => (path.exists() && !self.lay_there(path)).then(|| path.clone()),
            None => match runs() {
                Ok(runs) => {
                    let own = runs.into_iter().filter(|run| Some(run.pid) == self.only);
                    own.map(|run| run.path)
                        .find(|path| !self.earlier.contains(path))
                }
                Err(error) => {
                    self.trouble = Some(error.to_string());
                    None
                }
            },
        };
        if let Some(path) = path {
            match Reader::open(path) {
                Ok(reader) => {
                    self.reader = Some(reader);
                    self.trouble = None;
                }
                Err(error) => self.trouble = Some(error.to_string()),
            }
        }
    }
}

impl Source for Live {
    fn look(&mut self) -> Look {
        if self.reader.is_none() {
            self.open();
        }
        let Some(reader) = &mut self.reader else {
            self.missed = self.missed.saturating_add(1);
            if self.missed > PATIENCE && self.trouble.is_none() {
                let why = "the loader publishes none; what it prints may say why";
                self.trouble = Some(why.to_owned());
            }
            let health = self.trouble.clone().map_or(Health::Starting, Health::Blind);
            return Look {
                snapshot: None,
                health,
            };
        };
        // In this order: what a loader has published before it ended is not missed.
        let liveness = reader.liveness();
        let read = reader.read();
        let (snapshot, trouble) = match read {
            Ok(snapshot) => (snapshot, None),
            Err(error) => (None, Some(error.to_string())),
        };
        let other = |pid| self.only.is_some_and(|only| only != pid);
        if snapshot
            .as_ref()
            .is_some_and(|snapshot| other(snapshot.run.pid))
        {
            self.reader = None;
            return Look::default();
        }
        if let Some(snapshot) = &snapshot {
            self.pid = Some(snapshot.run.pid);
        }
        let health = match (liveness, trouble) {
            (Liveness::Dead, _) => Health::Gone,
            (Liveness::Alive, Some(why)) => Health::Blind(why),
            (Liveness::Alive, None) if self.pid.is_some_and(is_stopped) => Health::Stopped,
            (Liveness::Alive, None) => Health::Alive,
        };
        Look { snapshot, health }
    }
}

/// Whether a signal has stopped the process, as far as the system tells.
fn is_stopped(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(')').next().map(str::trim_start);
    state.is_some_and(|state| state.starts_with(['T', 't']))
}
