//! What a poller does with a port that has a request.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, Waker};

use rpc_port::Transport;
use rpc_types::{Opcode, Status};

use super::{GROUP, Poller};
use crate::conversation::Conversation;
use crate::exchange::{Exchange, Open};
use crate::handler::{Call, End, Failure, Flow};
use crate::observe::{CallInfo, Observe, Outcome};
use crate::port::RawPort;
use crate::shared::PortState;
use crate::table::{Kind, Talk};

/// A call in several steps.
pub(super) struct Active {
    call: CallInfo,
    exchange: Arc<Exchange>,
    waker: Waker,
    step: Step,
}

enum Step {
    /// The handler has not returned.
    Running(Talk),
    /// The handler has ended; its port comes back with, which wakes its conversation, or has to be
    /// told, a status.
    Ending(Status, Option<Box<dyn RawPort>>),
}

/// How a handler ended.
type Talked = std::thread::Result<Result<Flow, Failure>>;

impl<T: Transport + Send + Sync + 'static, O: Observe> Poller<T, O> {
    /// Serves a port whose packets the server owns; `place` is its place among this poller's.
    pub(super) fn serve(&mut self, port: u32, place: u32) -> bool {
        match &self.active[place as usize] {
            None => self.open(port, place),
            Some(active) => {
                // A handler that waits for something else has the packets all the while.
                let wanted = match &active.step {
                    Step::Running(_) => active.exchange.wants_to_be_polled(),
                    Step::Ending(_, port) => port.is_some(),
                };
                if wanted {
                    self.resume(place);
                }
                wanted
            }
        }
    }

    fn open(&mut self, port: u32, place: u32) -> bool {
        // No other thread opens this poller's ports.
        let Some(mut dynamic) = self.server.try_open_alone(port, &mut self.room) else {
            return false;
        };
        let (opcode, mask) = (dynamic.opcode(), dynamic.mask());
        let poller = self.index as usize;
        let slot = self.shared.table.slot(opcode);
        let call = CallInfo {
            poller,
            port,
            place,
            opcode,
            slot,
            mask,
        };
        let lanes = u64::from(mask.count_ones());
        self.control.counters.begun(slot, lanes);
        let shared = &self.shared;
        let entry = shared.table.entries.get(slot);
        // Whatever panics here is not the handler: the client must not take its own request for
        // an answer.
        let told = catch_unwind(AssertUnwindSafe(|| {
            self.observe.call_begun(&call);
            if entry.is_none() && mask != 0 {
                self.report_unhandled(&call);
            }
        }));
        if let Err(panic) = told {
            drop(dynamic.end(Status::SERVER_ERROR));
            resume_unwind(panic);
        }
        let (mut bytes, mut panic) = ([0; 2], None);
        let result = match entry.map(|entry| &entry.kind) {
            // A call that nobody makes.
            _ if mask == 0 => Err(Status::INVALID),
            None => Err(Status::UNHANDLED),
            Some(Kind::Procedure { run, bytes: sizes }) => {
                bytes = sizes.map(|bytes| bytes.min(T::KIND.payload()));
                let memory = &*shared.context.memory;
                let ending = &shared.ending;
                let call = Call {
                    port,
                    opcode,
                    mask,
                    lane: 0,
                    memory,
                    ending,
                };
                self.control.enter(port, opcode, mask);
                let room = &mut *self.room;
                let result = catch_unwind(AssertUnwindSafe(|| run(call, &mut dynamic, room)));
                self.control.leave();
                result.unwrap_or_else(|words| {
                    panic = Some(words);
                    Err(Status::SERVER_ERROR)
                })
            }
            Some(Kind::Conversation(start)) => {
                let exchange = Exchange::new(&self.control);
                let conversation = Conversation::new(
                    Box::new(dynamic.shared(&self.server)),
                    Arc::clone(&exchange),
                    Arc::clone(&shared.context),
                    (port, opcode, mask),
                );
                let started = catch_unwind(AssertUnwindSafe(|| start(conversation)));
                self.begin(place, call, exchange, started);
                return true;
            }
        };
        let [bytes_in, bytes_out] = bytes.map(|bytes| lanes * bytes as u64);
        let mut outcome = Outcome {
            bytes_in,
            bytes_out,
            status: Status::SUCCESS,
        };
        if let Err(status) = result {
            outcome.status = failed(status);
            outcome.bytes_out = 0;
            self.end_if_untold(&call, outcome.status);
            // A procedure that failed has handed nothing over: the packets are here.
            drop(dynamic.end(outcome.status));
        }
        if let Some(panic) = panic {
            self.report_panic(&call, &*panic);
        }
        self.count_end(&call, &outcome);
        true
    }

    /// The first step of a conversation whose handler has made a future, or has panicked.
    fn begin(
        &mut self,
        place: u32,
        call: CallInfo,
        exchange: Arc<Exchange>,
        started: std::thread::Result<Talk>,
    ) {
        let waker = Waker::from(Arc::clone(&exchange));
        let (step, panic) = match started {
            Ok(talk) => (Step::Running(talk), None),
            Err(panic) => (Step::Ending(Status::SERVER_ERROR, None), Some(panic)),
        };
        self.active[place as usize] = Some(Box::new(Active {
            call,
            exchange,
            waker,
            step,
        }));
        self.actives += 1;
        match panic {
            None => self.resume(place),
            Some(panic) => self.talked(place, Err(panic)),
        }
    }

    #[inline]
    fn count_end(&self, call: &CallInfo, outcome: &Outcome) {
        let error = !outcome.status.is_success();
        self.control
            .counters
            .ended(call.slot, outcome.bytes_in, outcome.bytes_out, error);
        self.observe.call_ended(call, outcome);
    }

    /// Lets the conversation at `place` go on.
    fn resume(&mut self, place: u32) {
        let Some(active) = self.active[place as usize].as_mut() else {
            return;
        };
        let CallInfo {
            port, opcode, mask, ..
        } = active.call;
        match &mut active.step {
            Step::Running(talk) => {
                active.exchange.begin_poll();
                self.shared
                    .set_port(port, PortState::InHandler, opcode, mask);
                let mut context = Context::from_waker(&active.waker);
                match catch_unwind(AssertUnwindSafe(|| talk.as_mut().poll(&mut context))) {
                    Ok(Poll::Pending) if active.exchange.over.load(Relaxed) => {
                        // Its client is gone, whatever the handler makes of it.
                        let error = Failure::Port(rpc_port::Error::Abandoned);
                        self.talked(place, Ok(Err(error)));
                    }
                    Ok(Poll::Pending) => {
                        if active.exchange.waits_for_client.load(Relaxed) {
                            self.shared
                                .set_port(port, PortState::MidExchange, opcode, mask);
                        }
                    }
                    Ok(Poll::Ready(result)) => self.talked(place, Ok(result)),
                    Err(panic) => self.talked(place, Err(panic)),
                }
            }
            Step::Ending(status, port) => {
                let status = *status;
                if let Some(port) = port.take() {
                    self.end(place, status, port);
                } else if let Some(open) = active.exchange.returned() {
                    self.end(place, status, open.port);
                }
            }
        }
    }

    /// Lets those go on that somebody else than their client has woken.
    pub(super) fn resume_woken(&mut self) -> bool {
        let mut busy = false;
        for place in 0..self.active.len() {
            if self.active[place]
                .as_ref()
                .is_some_and(|active| active.exchange.take_woken())
            {
                self.resume(place as u32);
                busy = true;
            }
        }
        busy
    }

    /// The handler at `place` has ended.
    fn talked(&mut self, place: u32, result: Talked) {
        let Some(active) = self.active[place as usize].as_mut() else {
            return;
        };
        let call = active.call;
        let exchange = Arc::clone(&active.exchange);
        // What the handler still holds goes first: its port comes back by that.
        let step = std::mem::replace(&mut active.step, Step::Ending(Status::SUCCESS, None));
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(step)));
        let status = match dropped.and(result) {
            Ok(Ok(flow)) => {
                if let Flow::End(end) = flow {
                    self.shared.ending.set(end);
                }
                Status::SUCCESS
            }
            Ok(Err(failure)) => self.report_any(&call, &failure),
            Err(panic) => {
                self.report_panic(&call, &*panic);
                Status::SERVER_ERROR
            }
        };
        self.end_if_untold(&call, status);
        // Answered, in its opcode's own words: it failed all the same.
        let noted = exchange.noted().filter(|_| status.is_success());
        let counted = noted.map_or(status, |failure| self.report_any(&call, &failure));
        let open = exchange.last_returned();
        let (bytes_in, bytes_out) = open
            .as_ref()
            .map_or((0, 0), |open| (open.bytes_in, open.bytes_out));
        self.count_end(
            &call,
            &Outcome {
                bytes_in,
                bytes_out,
                status: counted,
            },
        );
        match open {
            Some(Open { port, .. }) => self.end(place, status, port),
            None => self.set_ending(place, status, None),
        }
    }

    /// Where the device cannot be told that its call failed, the run ends.
    fn end_if_untold(&self, call: &CallInfo, status: Status) {
        let failed = !status.is_success() && status != Status::CANCELLED;
        // Nobody makes a call without lanes.
        if !T::HAS_STATUS && failed && call.mask != 0 {
            if self.shared.table.entries.get(call.slot).is_some() {
                self.report_untold(call, status);
            }
            self.shared.ending.set(End::UNTOLD);
        }
    }

    fn set_ending(&mut self, place: u32, status: Status, port: Option<Box<dyn RawPort>>) {
        if let Some(active) = self.active[place as usize].as_mut() {
            let CallInfo {
                port: index,
                opcode,
                mask,
                ..
            } = active.call;
            active.step = Step::Ending(status, port);
            self.shared
                .set_port(index, PortState::MidExchange, opcode, mask);
        }
    }

    /// Tells the client how its call ended, now or when it hands over the port.
    fn end(&mut self, place: u32, status: Status, port: Box<dyn RawPort>) {
        if status.is_success() {
            drop(port);
        } else if let Err(port) = port.end(status) {
            return self.set_ending(place, status, Some(port));
        }
        self.free(place);
    }

    fn free(&mut self, place: u32) {
        if let Some(active) = self.active[place as usize].take() {
            self.actives -= 1;
            self.shared
                .set_port(active.call.port, PortState::Free, Opcode(0), 0);
        }
    }

    /// Whether a conversation waits for its client or somebody else outside, or for the host;
    /// handlers that have ended do not count.
    pub(super) fn waiting_for(&self) -> (bool, bool) {
        let mut waits = (false, false);
        if self.actives > 0 {
            for active in self.active.iter().flatten() {
                if matches!(active.step, Step::Running(_)) {
                    let exchange = &active.exchange;
                    let other = exchange.waits_for_client.load(Relaxed)
                        || exchange.waits_outside.load(Relaxed);
                    waits.0 |= other;
                    waits.1 |= !other;
                }
            }
        }
        waits
    }

    /// Gives up every conversation: how many had not ended.
    pub(super) fn cancel_all(&mut self) -> u64 {
        let mut cancelled = 0;
        for place in 0..self.active.len() {
            let Some(active) = &self.active[place] else {
                continue;
            };
            if matches!(active.step, Step::Running(_)) {
                cancelled += 1;
                let error = Failure::Status(Status::CANCELLED);
                self.talked(place as u32, Ok(Err(error)));
            } else {
                // Its port may have come back since the last look.
                self.resume(place as u32);
            }
            // A port that cannot be told is dropped.
            self.free(place as u32);
        }
        cancelled
    }

    /// Opens and serves what every port of this poller has.
    pub(super) fn serve_all(&mut self) -> bool {
        let mut busy = false;
        for group in 0..self.groups {
            busy |= self.visit(group);
        }
        busy
    }

    /// As [`serve_all`](Self::serve_all), without new calls.
    pub(super) fn resume_all(&mut self) -> bool {
        let mut busy = self.control.take_conversation() && self.resume_woken();
        for place in 0..self.active.len() as u32 {
            if let Some(active) = &self.active[place as usize] {
                let port = active.call.port;
                debug_assert_eq!(port % GROUP, place % GROUP);
                busy |= self.server.is_waiting(port) && self.serve(port, place);
            }
        }
        busy
    }
}

/// A failure that calls itself a success is one all the same.
pub(super) const fn failed(status: Status) -> Status {
    if status.is_success() {
        Status::SERVER_ERROR
    } else {
        status
    }
}
