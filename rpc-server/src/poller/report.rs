//! What a poller says of handlers.

use std::any::Any;

use rpc_port::Transport;
use rpc_types::Status;

use super::Poller;
use super::serve::failed;
use crate::handler::Failure;
use crate::observe::{CallInfo, Observe};

/// Kinds of faults that are reported once for each opcode.
mod fault {
    pub(super) const UNHANDLED: u8 = 0;
    pub(super) const PANIC: u8 = 1;
    pub(super) const FAILURE: u8 = 2;
    pub(super) const TOO_LONG: u8 = 3;
    pub(super) const UNTOLD: u8 = 4;
}

/// What a panic says.
fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

impl<T: Transport + Send + Sync + 'static, O: Observe> Poller<T, O> {
    pub(super) fn report_unhandled(&self, call: &CallInfo) {
        let CallInfo {
            port, opcode, mask, ..
        } = *call;
        self.shared.reports.once(opcode, fault::UNHANDLED, || {
            let then = if T::HAS_STATUS {
                "the device gets an error, and further calls of it are only counted"
            } else {
                "this image cannot be told, so the run ends"
            };
            format!("no handler for opcode {opcode:?} (port {port}, lanes {mask:#x}); {then}")
        });
    }

    pub(super) fn report_untold(&self, call: &CallInfo, status: Status) {
        let (port, mask, name) = (call.port, call.mask, self.name(call));
        self.shared.reports.once(call.opcode, fault::UNTOLD, || {
            format!(
                "a call of {name} failed (port {port}, lanes {mask:#x}): {status}; this image cannot \
                 be told, so the run ends"
            )
        });
    }

    pub(super) fn report_panic(&self, call: &CallInfo, panic: &(dyn Any + Send)) {
        let (port, mask, name) = (call.port, call.mask, self.name(call));
        self.shared.reports.once(call.opcode, fault::PANIC, || {
            let words = words(panic);
            format!("the handler of {name} panicked (port {port}, lanes {mask:#x}): {words}")
        });
    }

    pub(super) fn report_failure(&self, call: &CallInfo, failure: &Failure) {
        let (port, mask, name) = (call.port, call.mask, self.name(call));
        self.shared.reports.once(call.opcode, fault::FAILURE, || {
            format!("the handler of {name} failed (port {port}, lanes {mask:#x}): {failure}")
        });
    }

    /// A program that prints, say, does not look at what it gets back.
    pub(super) fn report_too_long(&self, call: &CallInfo) {
        let (port, mask, name) = (call.port, call.mask, self.name(call));
        let (max, all) = (
            self.shared.options.max_message,
            self.shared.options.max_in_flight,
        );
        self.shared.reports.once(call.opcode, fault::TOO_LONG, || {
            format!(
                "a message for {name} was refused as too long (port {port}, lanes {mask:#x}): \
                 the host takes at most {max} bytes, and of all in flight {all}; further ones are \
                 only counted"
            )
        });
    }

    /// Reports whatever went wrong, where that is not the client's own affair: its status.
    pub(super) fn report_any(&self, call: &CallInfo, failure: &Failure) -> Status {
        if matches!(
            failure,
            Failure::Io(_) | Failure::Handler(_) | Failure::Memory(_)
        ) {
            self.report_failure(call, failure);
        } else if failure.status() == Status::TOO_LONG {
            self.report_too_long(call);
        }
        failed(failure.status())
    }

    fn name(&self, call: &CallInfo) -> String {
        let opcode = call.opcode;
        match self.shared.table.name(opcode) {
            Some(name) => format!("{name} (opcode {opcode:?})"),
            None => format!("opcode {opcode:?}"),
        }
    }
}
