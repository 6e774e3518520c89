//! The typestate.
//!
//! `Port<P, I, O>` knows at compile time the parity of its inbox and outbox. `I == O` is *owned*:
//! packets can be filled and taken, and [`post`](Port::post) hands the port over. `I != O` is
//! *lent*: all that can be done is to [`wait`](Port::wait). Each operation consumes the port and
//! gives it back in its next state; dropping it in any state gives it back to its process.
//!
//! Using a lent port does not compile:
//! ```compile_fail,E0599
//! # use rpc_port::{Port, Process};
//! fn fill_lent<P: Process>(port: Port<P, false, true>) {
//!     port.fill(8, |_, packet| packet.set(&1_u64));
//! }
//! ```
//! ```compile_fail,E0599
//! # use rpc_port::{Port, Process};
//! fn take_lent<P: Process>(port: Port<P, true, false>) {
//!     port.take(8, |_, _| ());
//! }
//! ```
//! nor does handing it over twice,
//! ```compile_fail,E0599
//! # use rpc_port::{Port, Process};
//! fn post_twice<P: Process>(port: Port<P, false, false>) {
//!     port.post().post();
//! }
//! ```
//! waiting for what one owns,
//! ```compile_fail,E0599
//! # use rpc_port::{Port, Process};
//! fn wait_owned<P: Process>(port: Port<P, true, true>) {
//!     let _ = port.wait();
//! }
//! ```
//! using a port after it was handed over,
//! ```compile_fail,E0382
//! # use rpc_port::{Port, Process};
//! fn use_after_post<P: Process>(port: Port<P, false, false>) {
//!     let lent = port.post();
//!     let _ = port.fill(8, |_, _| ());
//! }
//! ```
//! or taking one state for another:
//! ```compile_fail,E0308
//! # use rpc_port::{Port, Process};
//! fn wrong_parity<P: Process>(port: Port<P, false, false>) -> Port<P, true, false> {
//!     port.post()
//! }
//! ```

use rpc_types::{Opcode, Packet, Status};

use crate::dynamic::DynamicPort;
use crate::error::Error;
use crate::process::Process;
use crate::server::ServerSlot;

/// An open port of either side, without its state's parity.
#[derive(Debug)]
pub(crate) struct Held<P: Process> {
    pub(crate) process: P,
    pub(crate) slot: P::Slot,
    pub(crate) owned: bool,
}

impl<P: Process> Drop for Held<P> {
    #[inline(always)]
    fn drop(&mut self) {
        self.process.close(&mut self.slot, self.owned);
    }
}

/// A port that was just opened: owned, at either parity, since a call may end at either.
#[derive(Debug)]
#[must_use = "dropping a port closes it"]
pub enum Opened<P: Process> {
    /// Inbox and outbox are both clear.
    Even(Port<P, false, false>),
    /// Inbox and outbox are both set.
    Odd(Port<P, true, true>),
}

impl<P: Process> Opened<P> {
    #[inline(always)]
    pub(crate) fn new(process: P, slot: P::Slot, odd: bool) -> Self {
        let held = Held {
            process,
            slot,
            owned: true,
        };
        if odd {
            Self::Odd(Port { held })
        } else {
            Self::Even(Port { held })
        }
    }

    /// The port for use in loops.
    #[inline(always)]
    pub fn dynamic(self) -> DynamicPort<P> {
        match self {
            Self::Even(port) => port.dynamic(),
            Self::Odd(port) => port.dynamic(),
        }
    }

    /// The port's index.
    pub fn index(&self) -> u32 {
        match self {
            Self::Even(port) => port.index(),
            Self::Odd(port) => port.index(),
        }
    }
}

impl<P: Process<Slot = ServerSlot>> Opened<P> {
    /// What the call asks for.
    pub fn opcode(&self) -> Opcode {
        match self {
            Self::Even(port) => port.held.slot.opcode(),
            Self::Odd(port) => port.held.slot.opcode(),
        }
    }
}

/// An open port with its inbox at parity `I` and its outbox at parity `O`.
#[derive(Debug)]
#[must_use = "dropping a port closes it"]
pub struct Port<P: Process, const I: bool, const O: bool> {
    held: Held<P>,
}

impl<P: Process, const I: bool, const O: bool> Port<P, I, O> {
    /// The port's index.
    pub fn index(&self) -> u32 {
        self.held.process.index(&self.held.slot)
    }

    /// The lanes that take part.
    pub fn mask(&self) -> u64 {
        self.held.process.mask(&self.held.slot)
    }

    /// Gives the port back, as dropping it does.
    pub fn close(self) {}
}

/// What can be done at one parity. `I == O` and `{!O}` cannot be said of a const parameter yet.
macro_rules! states {
    ($($parity:literal => $other:literal),*) => {$(
        /// Owned.
        impl<P: Process> Port<P, $parity, $parity> {
            /// Sets the first `bytes` payload bytes of each lane's packet. Reads no shared memory.
            #[inline(always)]
            pub fn fill(mut self, bytes: usize, f: impl FnMut(u32, &mut Packet)) -> Self {
                self.held.process.fill(&mut self.held.slot, bytes, f);
                self
            }

            /// Reads the first `bytes` payload bytes of each lane's packet.
            #[inline(always)]
            pub fn take(mut self, bytes: usize, f: impl FnMut(u32, &Packet)) -> Self {
                self.held.process.take(&mut self.held.slot, bytes, f);
                self
            }

            /// Changes the first `bytes` payload bytes of each lane's packet.
            #[inline(always)]
            pub fn apply(mut self, bytes: usize, f: impl FnMut(u32, &mut Packet)) -> Self {
                self.held.process.apply(&mut self.held.slot, bytes, f);
                self
            }

            /// Hands the port over: the other side then owns the packets.
            #[inline(always)]
            pub fn post(mut self) -> Port<P, $parity, $other> {
                self.held.process.post(&mut self.held.slot, Status::SUCCESS);
                self.held.owned = false;
                Port { held: self.held }
            }

            /// The port for use in loops.
            #[inline(always)]
            pub fn dynamic(self) -> DynamicPort<P> {
                DynamicPort::new(self.held)
            }
        }

        /// Lent.
        impl<P: Process> Port<P, $other, $parity> {
            /// Waits until the other side hands the port back.
            ///
            /// # Errors
            /// A status other than success, or that nothing will come; the port is closed then.
            #[inline(always)]
            pub fn wait(mut self) -> Result<Port<P, $parity, $parity>, Error> {
                let status = self.held.process.wait(&mut self.held.slot)?;
                self.held.owned = true;
                if status.is_success() {
                    Ok(Port { held: self.held })
                } else {
                    Err(Error::Status(status))
                }
            }
        }
    )*};
}

states!(false => true, true => false);
