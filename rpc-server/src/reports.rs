//! What pollers report. A poller never waits, and whoever is told may: a reader of standard error, say.
//! So a thread that may wait says it.

use std::collections::HashSet;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Instant;

use rpc_types::Opcode;

use crate::options::Report;
use crate::output::Stream;
use crate::shared::{Context, lock};

/// Opcodes are the device's to choose: so many are reported.
const MOST_REPORTED: usize = 64;

/// The reports of a service. There are few: each kind of fault once for an opcode, of so many opcodes,
/// and the end of each poller.
pub(crate) struct Reports {
    report: Report,
    context: Arc<Context>,
    made: Mutex<HashSet<(u32, u8)>>,
    unsaid: Arc<Unsaid>,
}

/// How many sentences have not been said.
#[derive(Default)]
struct Unsaid {
    count: Mutex<usize>,
    fewer: Condvar,
}

/// A sentence that is to be said; dropped, it has been, or will not be.
struct Pending(Arc<Unsaid>);

impl Pending {
    fn new(unsaid: &Arc<Unsaid>) -> Self {
        *lock(&unsaid.count) += 1;
        Self(Arc::clone(unsaid))
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        *lock(&self.0.count) -= 1;
        self.0.fewer.notify_all();
    }
}

impl Reports {
    pub(crate) fn new(report: Report, context: Arc<Context>) -> Self {
        Self {
            report,
            context,
            made: Mutex::default(),
            unsaid: Arc::default(),
        }
    }

    /// Has `sentence` said, behind the text for standard error that waits for its reader: most reports
    /// go there.
    pub(crate) fn say(&self, sentence: String) {
        let (report, pending) = (self.report.clone(), Pending::new(&self.unsaid));
        self.context.text[Stream::Stderr as usize].start(move || {
            let _pending = pending;
            report.say(&sentence);
        });
    }

    /// Has a `kind` of fault said once for each opcode.
    pub(crate) fn once(&self, opcode: Opcode, kind: u8, sentence: impl FnOnce() -> String) {
        let mut made = lock(&self.made);
        if made.len() > MOST_REPORTED || !made.insert((opcode.0, kind)) {
            return;
        }
        let last = made.len() > MOST_REPORTED;
        drop(made);
        self.say(sentence());
        if last {
            self.say("no more faults of handlers are reported; the counters go on".to_owned());
        }
    }

    /// Waits until all is said or `limit` has come: whether all is said.
    pub(crate) fn wait(&self, limit: Instant) -> bool {
        let left = limit.saturating_duration_since(Instant::now());
        let count = lock(&self.unsaid.count);
        let waited = self
            .unsaid
            .fewer
            .wait_timeout_while(count, left, |count| *count > 0);
        *waited.unwrap_or_else(PoisonError::into_inner).0 == 0
    }
}
