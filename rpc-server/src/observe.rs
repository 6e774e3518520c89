//! What a monitor is told.

use rpc_types::{Opcode, Status};

/// A call, from its port's opening on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallInfo {
    /// The poller that serves it.
    pub poller: usize,
    /// The port it came by.
    pub port: u32,
    /// The port's place among those of its poller, from 0: what is kept by place, for each poller
    /// apart, lies beside nothing that another thread writes.
    pub place: u32,
    /// What it asks for: anything, for an unknown opcode.
    pub opcode: Opcode,
    /// Where its numbers are in [`Counters::opcodes`](crate::Counters::opcodes): all unknown
    /// opcodes share the last slot.
    pub slot: usize,
    /// The lanes that take part.
    pub mask: u64,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Payload of the active lanes that the host received.
    pub bytes_in: u64,
    /// Payload of the active lanes that the host sent.
    pub bytes_out: u64,
    /// What the client was told.
    pub status: Status,
}

/// Is told of everything that happens, by the poller thread to which it happens: so an
/// implementation is quick and never waits. `()` costs nothing.
pub trait Observe: Send + Sync + 'static {
    /// A request has come to the port at `place` of `poller` and will be taken soon.
    #[inline(always)]
    fn call_coming(&self, poller: usize, place: u32) {
        let _ = (poller, place);
    }

    /// A request was taken.
    #[inline(always)]
    fn call_begun(&self, call: &CallInfo) {
        let _ = call;
    }

    /// Its last reply was given, or it was given up.
    #[inline(always)]
    fn call_ended(&self, call: &CallInfo, outcome: &Outcome) {
        let _ = (call, outcome);
    }

    /// A poller is about to look over its ports.
    #[inline(always)]
    fn scan_begun(&self, poller: usize) {
        let _ = poller;
    }

    /// A poller goes to sleep until another one finds something for it: what passes until it looks
    /// again is no gap between two looks.
    #[inline(always)]
    fn parked(&self, poller: usize) {
        let _ = poller;
    }

    /// A poller has looked over its ports once; `busy` if it found something to do.
    #[inline(always)]
    fn scanned(&self, poller: usize, busy: bool) {
        let _ = (poller, busy);
    }
}

impl Observe for () {}

impl<O: Observe + ?Sized> Observe for std::sync::Arc<O> {
    #[inline(always)]
    fn call_coming(&self, poller: usize, place: u32) {
        O::call_coming(self, poller, place);
    }

    #[inline(always)]
    fn call_begun(&self, call: &CallInfo) {
        O::call_begun(self, call);
    }

    #[inline(always)]
    fn call_ended(&self, call: &CallInfo, outcome: &Outcome) {
        O::call_ended(self, call, outcome);
    }

    #[inline(always)]
    fn scan_begun(&self, poller: usize) {
        O::scan_begun(self, poller);
    }

    fn parked(&self, poller: usize) {
        O::parked(self, poller);
    }

    fn scanned(&self, poller: usize, busy: bool) {
        O::scanned(self, poller, busy);
    }
}
