//! What only a client does with its port.

use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};

use rpc_bitmap::{Device, Memory};
use rpc_types::Opcode;

use super::DynamicPort;
use crate::client::{Client, ClientSlot};
use crate::error::Error;
use crate::port::Held;
use crate::process::Process;
use crate::transport::Transport;
use crate::warp::Warp;

impl<T: Transport, P: Memory<Scope = Device>, W: Warp> DynamicPort<&Client<T, P, W>> {
    /// From now on the host sees, with each hand-over, what these lanes wrote to memory before it,
    /// and they see what the host wrote before it answered. Without this only messages of any length
    /// (`send_n`, `recv_n`) do so.
    #[inline(always)]
    pub fn order(&mut self) {
        self.held.process.order(&mut self.held.slot);
    }

    /// Nobody will look for the reply to what is sent next: the port will be closed.
    #[inline(always)]
    pub(crate) const fn leave_reply(&mut self) {
        self.held.slot.leave_reply();
    }

    /// Begins another conversation on this port.
    #[inline(always)]
    pub(crate) fn begin(&mut self, opcode: Opcode) -> Result<(), Error> {
        if !self.held.owned {
            // Of the last one's end nobody wants to know more; that the run ends comes again.
            match self.held.process.wait(&mut self.held.slot) {
                Ok(_) => self.held.owned = true,
                Err(error) => return self.fail(error),
            }
        }
        self.error = None;
        self.begun = false;
        self.fresh = false;
        self.held.slot.begin(opcode);
        Ok(())
    }
}

/// A port that is closed where it is, so that what is known of it can stay in registers: dropping one
/// is a function of its own, which gets its address.
pub(crate) struct InPlace<P: Process>(ManuallyDrop<DynamicPort<P>>);

impl<'c, T: Transport, P: Memory<Scope = Device>, W: Warp> InPlace<&'c Client<T, P, W>> {
    /// A port that was just opened.
    #[inline(always)]
    pub(crate) fn new(client: &'c Client<T, P, W>, slot: ClientSlot) -> Self {
        Self(ManuallyDrop::new(DynamicPort::open(client, slot)))
    }

    /// Gives the port back, once all its lanes are here.
    #[inline(always)]
    pub(crate) fn close(mut self) {
        let Held {
            process,
            slot,
            owned,
        } = &mut self.0.held;
        process.close_together(slot, *owned);
    }
}

impl<P: Process> Deref for InPlace<P> {
    type Target = DynamicPort<P>;

    #[inline(always)]
    fn deref(&self) -> &DynamicPort<P> {
        &self.0
    }
}

impl<P: Process> DerefMut for InPlace<P> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut DynamicPort<P> {
        &mut self.0
    }
}
