//! What is to be seen of a service while it works.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use rpc_bitmap::{Device, Heap};
use rpc_port::server::GROUP;
use rpc_port::{Server, Transport};
use rpc_types::Opcode;

use crate::counters::{self, Counters};
use crate::poller::groups;
use crate::port::lanes;
use crate::shared::{PortState, Shared};

/// A transport's mailboxes, whatever its layout.
pub(crate) trait View: Send + Sync {
    fn request(&self, port: u32) -> Option<(Opcode, u64)>;
    /// The ports of a group that have a request, a bit each.
    fn waiting(&self, group: u32) -> u32;
    fn stop(&self);
    fn ports(&self) -> u32;
}

impl<T: Transport + Send + Sync> View for Server<T, Heap<Device>> {
    fn request(&self, port: u32) -> Option<(Opcode, u64)> {
        Self::request(self, port)
    }

    fn waiting(&self, group: u32) -> u32 {
        Self::waiting(self, group)
    }

    fn stop(&self) {
        self.transport().stop();
    }

    fn ports(&self) -> u32 {
        self.transport().geometry().total_ports()
    }
}

/// What is known of an exchange that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExchangeState {
    /// The request was posted and nobody has taken it.
    Waiting,
    /// Its handler works, or waits for something on the host.
    InHandler,
    /// The host waits for the device's next step.
    MidExchange,
}

/// An exchange that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenExchange {
    /// The port.
    pub port: u32,
    /// What was asked for.
    pub opcode: Opcode,
    /// Its name, if it has one.
    pub name: Option<&'static str>,
    /// How far it is.
    pub state: ExchangeState,
    /// The lanes that take part, a bit each.
    pub mask: u64,
    /// Another number than before: it has gone on.
    pub steps: u32,
}

impl OpenExchange {
    /// The lanes that take part, lowest first.
    pub fn lanes(&self) -> impl Iterator<Item = u32> + use<> {
        lanes(self.mask)
    }
}

impl fmt::Display for OpenExchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            ExchangeState::Waiting => "waits to be served",
            ExchangeState::InHandler => "is in its handler",
            ExchangeState::MidExchange => "waits for the device's next step",
        };
        write!(f, "port {} (", self.port)?;
        match self.name {
            Some(name) => f.write_str(name)?,
            None => write!(f, "opcode {:?}", self.opcode)?,
        }
        write!(f, ", lanes {:#x}) {state}", self.mask)
    }
}

/// What a poller thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PollerState {
    /// Looks at its ports, or rests between two looks.
    Looking,
    /// Is in the handler of a procedure.
    InHandler,
    /// Sleeps until another poller finds something for it.
    Parked,
}

/// A poller thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PollerView {
    /// What it does.
    pub state: PollerState,
    /// How often it has looked over its ports.
    pub scans: u64,
}

/// Sees a service from another thread, without a word to the pollers. It keeps the service's device
/// memory as the service does: to be dropped before the device is to go.
#[derive(Clone)]
pub struct Probe {
    pub(crate) shared: Arc<Shared>,
    pub(crate) device: Arc<dyn View>,
}

impl Probe {
    /// How many ports there are.
    pub fn ports(&self) -> u32 {
        self.device.ports()
    }

    /// The numbers so far.
    pub fn counters(&self) -> Counters {
        let controls = &self.shared.controls;
        let mut counters = counters::sum(&self.shared.table, controls.iter().map(|c| &c.counters));
        counters.scans = self.pollers().map(|poller| poller.scans).sum();
        counters
    }

    /// The poller threads.
    pub fn pollers(&self) -> impl Iterator<Item = PollerView> + '_ {
        self.shared.controls.iter().map(|control| PollerView {
            state: if control.current().is_some() {
                PollerState::InHandler
            } else if control.parked.load(Relaxed) {
                PollerState::Parked
            } else {
                PollerState::Looking
            },
            scans: control.scans.load(Relaxed),
        })
    }

    /// Shows `f` the exchanges that have not ended, by port.
    pub fn open_exchanges(&self, mut f: impl FnMut(OpenExchange)) {
        let controls = self.shared.controls.iter();
        let running: Vec<_> = controls.filter_map(|control| control.current()).collect();
        let ports = self.ports();
        for group in 0..groups(ports) {
            let waiting = self.device.waiting(group);
            let first = group * GROUP;
            for port in first..(first + GROUP).min(ports) {
                if let Some(exchange) = self.exchange(port, waiting >> (port - first) & 1, &running)
                {
                    f(exchange);
                }
            }
        }
    }

    fn exchange(
        &self,
        port: u32,
        waiting: u32,
        running: &[(u32, Opcode, u64)],
    ) -> Option<OpenExchange> {
        let (state, opcode, mask) = match self.shared.port(port) {
            (PortState::InHandler, opcode, mask) => (ExchangeState::InHandler, opcode, mask),
            (PortState::MidExchange, opcode, mask) => (ExchangeState::MidExchange, opcode, mask),
            (PortState::Free, ..) => {
                let current = running.iter().find(|(own, ..)| *own == port);
                if let Some(&(_, opcode, mask)) = current {
                    (ExchangeState::InHandler, opcode, mask)
                } else if waiting != 0 {
                    let (opcode, mask) = self.device.request(port)?;
                    (ExchangeState::Waiting, opcode, mask)
                } else {
                    return None;
                }
            }
        };
        Some(OpenExchange {
            port,
            opcode,
            name: self.shared.table.name(opcode),
            state,
            mask,
            steps: self.shared.steps(port),
        })
    }
}

impl fmt::Debug for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Probe")
            .field("ports", &self.ports())
            .finish_non_exhaustive()
    }
}
