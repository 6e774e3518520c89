//! Tables, JSON and CSV, once or at intervals.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use gpurpc_top::format::{CSV_HEADING, Record, Recorder, csv};
use gpurpc_top::table::table;
use gpurpc_top::units::clock;
use rpc_stats::Snapshot;
use thiserror::Error;

use crate::cli::{Format, Show};

/// Why records could not be written.
#[derive(Debug, Error)]
pub(crate) enum RecordError {
    #[error("{} cannot be written: {error}", path.display())]
    File { path: PathBuf, error: io::Error },
    #[error("standard output cannot be written: {0}")]
    Stdout(io::Error),
}

enum Out {
    File(PathBuf, File),
    Stdout,
    Stderr,
}

/// Writes the state of a run as the command line says.
pub(crate) struct Records {
    show: Show,
    out: Out,
    recorder: Recorder,
    latest: Option<Snapshot>,
    written: u64,
    /// Nobody reads what is written any more.
    closed: bool,
    next: Instant,
}

impl Records {
    /// Opens what is written to. `shared`: the program's output is on standard output, too, and
    /// tables go to standard error.
    pub(crate) fn new(show: &Show, shared: bool) -> Result<Self, RecordError> {
        let out = match &show.output {
            Some(path) => match File::create(path) {
                Ok(file) => Out::File(path.clone(), file),
                Err(error) => {
                    let path = path.clone();
                    return Err(RecordError::File { path, error });
                }
            },
            None if shared && show.format == Format::Table => Out::Stderr,
            None => Out::Stdout,
        };
        Ok(Self {
            show: show.clone(),
            out,
            recorder: Recorder::new(show.settings()),
            latest: None,
            written: 0,
            closed: false,
            next: Instant::now() + show.delay,
        })
    }

    /// Whether records are on standard output, so that nothing else must be.
    pub(crate) fn take_stdout(show: &Show) -> bool {
        show.format != Format::Table && show.output.is_none()
    }

    /// Takes what was found.
    pub(crate) fn observe(&mut self, snapshot: Snapshot) {
        self.recorder.observe(snapshot.clone());
        self.latest = Some(snapshot);
    }

    /// What was found last.
    pub(crate) fn latest(&self) -> Option<&Snapshot> {
        self.latest.as_ref()
    }

    /// Whether as many records were written as were asked for, or as anybody reads.
    pub(crate) fn is_enough(&self) -> bool {
        self.closed || self.show.count.is_some_and(|most| self.written >= most)
    }

    /// How long until the next record is due, at most `most`.
    pub(crate) fn pause(&self, most: Duration) -> Duration {
        let until = self.next.saturating_duration_since(Instant::now());
        if self.show.batch {
            until.min(most)
        } else {
            most
        }
    }

    /// Writes a record if one is due.
    pub(crate) fn tick(&mut self) -> Result<(), RecordError> {
        let due = self.show.batch && Instant::now() >= self.next;
        if !due || self.is_enough() || self.latest.is_none() {
            return Ok(());
        }
        // What was missed is left out.
        let now = Instant::now();
        self.next += self.show.delay;
        if self.next <= now {
            self.next = now + self.show.delay;
        }
        self.write()
    }

    /// Writes the last record and what belongs behind it.
    pub(crate) fn finish(&mut self) -> Result<(), RecordError> {
        if !self.is_enough() {
            self.write()?;
        }
        self.close()
    }

    /// Writes what belongs behind the last record.
    pub(crate) fn close(&mut self) -> Result<(), RecordError> {
        if self.show.batch && self.show.format == Format::Json {
            let end = if self.written == 0 { "[]\n" } else { "\n]\n" };
            self.put(end.as_bytes())?;
        }
        Ok(())
    }

    fn write(&mut self) -> Result<(), RecordError> {
        let first = self.written == 0;
        self.written += 1;
        let mut text = Vec::new();
        let latest = self.latest.clone().unwrap_or_default();
        if self.show.format == Format::Table {
            if self.show.batch {
                let seconds = latest.time_ns / 1_000_000_000;
                let gap = if first { "" } else { "\n" };
                text.extend_from_slice(format!("{gap}after {}\n", clock(seconds)).as_bytes());
            }
            text.extend_from_slice(table(&latest.opcodes).as_bytes());
        } else {
            let record = self.recorder.record();
            self.encode(&record, first, &mut text);
        }
        self.put(&text)
    }

    fn encode(&self, record: &Record, first: bool, text: &mut Vec<u8>) {
        // Writing to memory does not fail, nor does a record of plain numbers and texts.
        let _ = match self.show.format {
            Format::Csv => {
                if first {
                    text.extend_from_slice(CSV_HEADING.as_bytes());
                }
                csv(record, text)
            }
            Format::Json if self.show.batch => {
                let before: &[u8] = if first { b"[\n" } else { b",\n" };
                text.extend_from_slice(before);
                serde_json::to_writer(&mut *text, record).map_err(io::Error::from)
            }
            Format::Json => {
                let written = serde_json::to_writer_pretty(&mut *text, record);
                text.push(b'\n');
                written.map_err(io::Error::from)
            }
            Format::Jsonl | Format::Table => {
                let written = serde_json::to_writer(&mut *text, record);
                text.push(b'\n');
                written.map_err(io::Error::from)
            }
        };
    }

    fn put(&mut self, text: &[u8]) -> Result<(), RecordError> {
        match &mut self.out {
            Out::File(path, file) => file.write_all(text).map_err(|error| RecordError::File {
                path: path.clone(),
                error,
            }),
            Out::Stdout => {
                let mut out = io::stdout().lock();
                // At once: whoever reads it wants it now, and what fails is said.
                match out.write_all(text).and_then(|()| out.flush()) {
                    // A reader that has gone away wants no more.
                    Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                        self.closed = true;
                        Ok(())
                    }
                    result => result.map_err(RecordError::Stdout),
                }
            }
            Out::Stderr => {
                // Nobody reads it where standard error is closed.
                let _ = io::stderr().write_all(text);
                Ok(())
            }
        }
    }
}
