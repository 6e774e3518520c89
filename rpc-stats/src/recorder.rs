//! The thread that publishes.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rpc_server::Probe;

use crate::collect::Collector;
use crate::observer::{Events, Observer};
use crate::snapshot::{RunEnd, RunInfo, Snapshot};
use crate::writer::Writer;

/// Between two snapshots while there are calls.
const BUSY: Duration = Duration::from_millis(60);
/// And while there are none: a monitor is to know in time that the loader lives.
const IDLE: Duration = Duration::from_millis(250);
/// How long there have been none by then.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long a recorder that is dropped is waited for: a file system may not answer.
const LIMIT: Duration = Duration::from_millis(500);

/// What is recorded: a service, with the observer that it was started with.
#[derive(Debug)]
pub struct Source {
    /// What the pollers tell.
    pub observer: Arc<Observer>,
    /// The other ends of its rings.
    pub events: Events,
    /// What is to be seen of them.
    pub probe: Probe,
}

/// Publishes what happens until it is finished, some 16 times a second, 4 times while nothing does.
/// Dropping it ends it without a last word.
#[derive(Debug)]
pub struct Recorder {
    /// Taken away, it ends the thread.
    end: Option<Sender<RunEnd>>,
    done: Receiver<()>,
    thread: Option<JoinHandle<()>>,
}

impl Recorder {
    /// Publishes by `writer`; without a source, that the loader lives. `report` is told, at most
    /// once, why nothing more is published; it may be called by the recorder's thread.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(
        writer: Writer,
        run: RunInfo,
        source: Option<Source>,
        report: impl Fn(&dyn std::error::Error) + Send + 'static,
    ) -> io::Result<Self> {
        let (end, ends) = channel();
        let (finished, done) = channel();
        let mut snapshot = Snapshot {
            run,
            ..Snapshot::default()
        };
        let started = Instant::now();
        let collector = source.map(|source| {
            let Source {
                observer,
                events,
                probe,
            } = source;
            Collector::new(observer, events, probe, &mut snapshot)
        });
        let thread = thread::Builder::new()
            .name("gpurpc-stats".into())
            .spawn(move || {
                let recording = Recording {
                    writer,
                    snapshot,
                    collector,
                    started,
                };
                if let Err(error) = recording.run(&ends) {
                    report(&error);
                }
                let _ = finished.send(());
            })?;
        Ok(Self {
            end: Some(end),
            done,
            thread: Some(thread),
        })
    }

    /// Publishes how the run ended, after everything that has happened until now, and removes the
    /// file unless that is kept. `false` if that took longer than `limit`: then the thread still
    /// has what the service has.
    pub fn finish(mut self, end: RunEnd, limit: Duration) -> bool {
        if let Some(to) = &self.end {
            // Nobody listens if nothing can be published.
            let _ = to.send(end);
        }
        self.join(limit)
    }

    fn join(&mut self, limit: Duration) -> bool {
        self.end = None;
        let Some(thread) = self.thread.take() else {
            return true;
        };
        let left = self.done.recv_timeout(limit);
        let ended = left != Err(RecvTimeoutError::Timeout);
        if ended {
            // It has nothing left to do but to end.
            let _ = thread.join();
        }
        ended
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.join(LIMIT);
    }
}

/// What the thread has.
struct Recording {
    writer: Writer,
    snapshot: Snapshot,
    collector: Option<Collector>,
    started: Instant,
}

impl Recording {
    fn run(mut self, ends: &Receiver<RunEnd>) -> Result<(), crate::WriteError> {
        let mut quiet_since = None;
        loop {
            let changed = match &mut self.collector {
                Some(collector) => collector.collect(&mut self.snapshot),
                None => self.pass_time(),
            };
            let now = Instant::now();
            if changed {
                quiet_since = None;
            }
            let quiet = now - *quiet_since.get_or_insert(now);
            self.writer.publish(&self.snapshot)?;
            let tick = if quiet < PATIENCE { BUSY } else { IDLE };
            match ends.recv_timeout(tick) {
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
                Ok(end) => {
                    if let Some(collector) = &mut self.collector {
                        collector.finish(&mut self.snapshot);
                    } else {
                        self.pass_time();
                    }
                    self.snapshot.end = Some(end);
                    self.writer.publish(&self.snapshot)?;
                    return Ok(());
                }
            }
        }
    }

    fn pass_time(&mut self) -> bool {
        self.snapshot.time_ns = self.started.elapsed().as_nanos() as u64;
        false
    }
}
