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
    trouble: Option<String>,
}

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
            trouble: None,
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
