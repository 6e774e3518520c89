//! Threads for work that may block.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::thread;

use crate::shared::lock;

/// Threads for work that a disk does: more would only queue there.
pub(crate) const DISK: (&str, usize) = ("pool", 4);
/// Threads for work that waits for somebody else: they sleep nearly all the time.
pub(crate) const OUTSIDE: (&str, usize) = ("wait", 64);
/// The thread that writes one of the program's streams of text: one, as its texts come one after the
/// other, and its own, as whoever waits somewhere else, for good maybe, is not to keep text back.
pub(crate) const TEXT: (&str, usize) = ("text", 1);

type Job = Box<dyn FnOnce() + Send>;

/// Threads up to a number, started when there is work for them.
pub(crate) struct Pool {
    state: Arc<(Mutex<State>, Condvar)>,
    /// What its threads are called, and how many there may be.
    kind: (&'static str, usize),
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    threads: usize,
    idle: usize,
    closed: bool,
}

/// A job's result, or who waits for it.
struct Promise<R> {
    result: Option<thread::Result<R>>,
    waker: Option<Waker>,
}

impl Pool {
    /// A pool without a thread.
    pub(crate) fn new(kind: (&'static str, usize)) -> Self {
        Self {
            state: Arc::default(),
            kind,
        }
    }

    /// The result of `f`, run on a thread of the pool; its panic, if it panics.
    pub(crate) async fn run<R: Send + 'static>(&self, f: impl FnOnce() -> R + Send + 'static) -> R {
        let promise = Arc::new(Mutex::new(Promise {
            result: None,
            waker: None,
        }));
        let kept = Arc::clone(&promise);
        self.submit(Box::new(move || {
            let result = catch_unwind(AssertUnwindSafe(f));
            let waker = {
                let mut promise = lock(&kept);
                promise.result = Some(result);
                promise.waker.take()
            };
            if let Some(waker) = waker {
                waker.wake();
            }
        }));
        poll_fn(move |context| {
            let mut promise = lock(&promise);
            match promise.result.take() {
                Some(Ok(value)) => Poll::Ready(value),
                Some(Err(panic)) => {
                    drop(promise);
                    resume_unwind(panic)
                }
                None => {
                    promise.waker = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// Whether something that was given to it is still to be done.
    pub(crate) fn is_busy(&self) -> bool {
        let guard = lock(&self.state.0);
        !guard.jobs.is_empty() || guard.threads > guard.idle
    }

    /// Runs `f` on a thread of the pool, for nobody who waits for its result; its panic stays there.
    pub(crate) fn start(&self, f: impl FnOnce() + Send + 'static) {
        self.submit(Box::new(move || {
            let _ = catch_unwind(AssertUnwindSafe(f));
        }));
    }

    fn submit(&self, job: Job) {
        let (state, changed) = &*self.state;
        let (kind, most) = self.kind;
        let mut guard = lock(state);
        guard.jobs.push_back(job);
        if guard.idle < guard.jobs.len() && guard.threads < most {
            let shared = Arc::clone(&self.state);
            let name = format!("gpurpc-{kind}-{}", guard.threads);
            if thread::Builder::new()
                .name(name)
                .spawn(move || work(&shared))
                .is_ok()
            {
                guard.threads += 1;
            } else if guard.threads == 0 {
                // No thread at all: better late than never.
                let job = guard.jobs.pop_back();
                drop(guard);
                if let Some(job) = job {
                    job();
                }
                return;
            }
        }
        drop(guard);
        changed.notify_one();
    }
}

impl Drop for Pool {
    /// Idle threads end; one that blocks ends after its job.
    fn drop(&mut self) {
        let (state, changed) = &*self.state;
        let mut guard = lock(state);
        guard.closed = true;
        guard.jobs.clear();
        drop(guard);
        changed.notify_all();
    }
}

fn work((state, changed): &(Mutex<State>, Condvar)) {
    let mut guard = lock(state);
    loop {
        if let Some(job) = guard.jobs.pop_front() {
            drop(guard);
            job();
            guard = lock(state);
        } else if guard.closed {
            return;
        } else {
            guard.idle += 1;
            guard = changed.wait(guard).unwrap_or_else(PoisonError::into_inner);
            guard.idle -= 1;
        }
    }
}
