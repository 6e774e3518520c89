//! What joins a conversation to the poller that polls it.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::{Arc, Mutex};
use std::task::Wake;

use rpc_types::Status;

use crate::handler::Failure;
use crate::port::RawPort;
use crate::shared::{Control, lock};

/// An open port and what went over it.
pub(crate) struct Open {
    pub(crate) port: Box<dyn RawPort>,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
}

pub(crate) struct Exchange {
    /// The port, once the handler has let go of it.
    returned: Mutex<Option<Open>>,
    /// Someone else than the client has something for the conversation.
    woken: AtomicBool,
    /// Set in a poll that ends because the client has the packets.
    pub(crate) waits_for_client: AtomicBool,
    /// Set in a poll that ends because a copy runs, or to give way to other ports: the packets are
    /// this side's, so that each pass of the poller finds the port, and none of them is followed by
    /// a rest.
    pub(crate) waits_for_copy: AtomicBool,
    /// It waits for somebody outside, who may never come: the end of a run does not wait for it.
    pub(crate) waits_outside: AtomicBool,
    /// What went wrong, though the client is answered: the first failure that was noted.
    noted: Mutex<Option<Failure>>,
    /// The port has failed: nothing more will come.
    pub(crate) over: AtomicBool,
    /// The handler has ended, and its poller looks at `returned` no more unless it is woken. Of the
    /// poller's thread alone, hence relaxed.
    left: AtomicBool,
    control: Arc<Control>,
}

impl Exchange {
    pub(crate) fn new(control: &Arc<Control>) -> Arc<Self> {
        Arc::new(Self {
            returned: Mutex::new(None),
            woken: AtomicBool::new(false),
            waits_for_client: AtomicBool::new(false),
            waits_for_copy: AtomicBool::new(false),
            waits_outside: AtomicBool::new(false),
            noted: Mutex::new(None),
            over: AtomicBool::new(false),
            left: AtomicBool::new(false),
            control: Arc::clone(control),
        })
    }

    pub(crate) fn give_back(&self, open: Open) {
        *lock(&self.returned) = Some(open);
        // A handler may have moved its conversation elsewhere and ended long ago. On the poller's own
        // thread `left` is in program order with `last_returned`: if it is not set, that is still to
        // come, and finds the port. Another thread cannot know which comes first, and signals: the
        // poller finds the port when it is woken, if not before.
        if !self.control.is_current_thread() || self.left.load(Relaxed) {
            self.signal();
        }
    }

    pub(crate) fn note(&self, failure: Failure) {
        lock(&self.noted).get_or_insert(failure);
    }

    pub(crate) fn noted(&self) -> Option<Failure> {
        lock(&self.noted).take()
    }

    pub(crate) fn returned(&self) -> Option<Open> {
        lock(&self.returned).take()
    }

    /// As [`returned`](Self::returned), for the poller when the handler has ended: a port that comes
    /// back after this wakes it.
    pub(crate) fn last_returned(&self) -> Option<Open> {
        // Before the look: whatever this thread gives back after the look, an observer's doing for
        // one, finds it set.
        self.left.store(true, Relaxed);
        self.returned()
    }

    /// Before a poll: what it waits for after that, it says anew.
    pub(crate) fn begin_poll(&self) {
        self.waits_for_client.store(false, Relaxed);
        self.waits_for_copy.store(false, Relaxed);
    }

    /// Whether it goes on with what its poller sees by itself, and nobody wakes it.
    pub(crate) fn wants_to_be_polled(&self) -> bool {
        self.waits_for_client.load(Relaxed) || self.waits_for_copy.load(Relaxed)
    }

    pub(crate) fn take_woken(&self) -> bool {
        // Looked at for each waiting conversation: no exchange unless there is something.
        self.woken.load(Relaxed) && self.woken.swap(false, Acquire)
    }

    fn signal(&self) {
        // Release: pairs with the acquire of `take_woken`; what the waker has done is seen.
        self.woken.swap(true, AcqRel);
        self.control.wake_conversation();
    }
}

impl Drop for Exchange {
    /// A port that comes back when its poller has ended: the request is not its own answer.
    fn drop(&mut self) {
        if let Some(open) = self.returned() {
            drop(open.port.end(Status::CANCELLED));
        }
    }
}

impl Wake for Exchange {
    fn wake(self: Arc<Self>) {
        self.signal();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.signal();
    }
}
