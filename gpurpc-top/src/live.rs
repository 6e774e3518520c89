//! A loader's file as a source.

use std::path::PathBuf;

use rpc_stats::{Liveness, Reader, runs};

use crate::source::{Health, Look, Source};

/// Which file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// That of the loader with this process number, once it is there.
    Pid(u32),
    /// This one, once it is there.
    Path(PathBuf),
}

/// Reads what a loader publishes. It keeps the file open: what was published last can be read when
/// the loader has ended and the file is gone.
#[derive(Debug)]
pub struct Live {
    target: Target,
    reader: Option<Reader>,
    pid: Option<u32>,
    /// Whose snapshots are taken, if not anybody's.
    only: Option<u32>,
    trouble: Option<String>,
    /// Looks that found no file.
    missed: u32,
}

/// After so many looks, a file that is not there will not be.
const PATIENCE: u32 = 50;

impl Live {
    /// Of the file of `target`.
    pub fn new(target: Target) -> Self {
        let pid = match target {
            Target::Pid(pid) => Some(pid),
            Target::Path(_) => None,
        };
        Self {
            target,
            reader: None,
            pid,
            only: None,
            trouble: None,
            missed: 0,
        }
    }

    /// Of a file that has been opened.
    pub fn of(reader: Reader) -> Self {
        let target = Target::Path(reader.path().to_owned());
        Self {
            reader: Some(reader),
            ..Self::new(target)
        }
    }

    /// Waits for the file of this process: what lies at the path from an earlier run is not it.
    #[must_use]
    pub fn only(self, pid: u32) -> Self {
        Self {
            only: Some(pid),
            ..self
        }
    }

    /// Where the file is, if it has been found.
    pub fn path(&self) -> Option<&std::path::Path> {
        self.reader.as_ref().map(Reader::path)
    }

    fn open(&mut self) {
        let path = match &self.target {
            Target::Path(path) => path.exists().then(|| path.clone()),
            Target::Pid(pid) => match runs() {
                Ok(runs) => {
                    let run = runs.into_iter().find(|run| run.pid == *pid);
                    run.map(|run| run.path)
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
