//! A server behind the client that an image carries.
//!
//! A program that serves an image by itself opens a [`Device`], loads the image, asks for its
//! [`Client`] and [serves](Client::serve) it with handlers of its own. Who only wants a loader with
//! more handlers takes [`program::main_serving`](crate::program::main_serving).

use std::io;
use std::sync::Arc;

use rpc_bitmap::{Raw, System, words_here};
use rpc_port::{Compact, Line, Transport};
use rpc_server::{
    DeviceMemory, Options as ServerOptions, Report, Service, Standard, Table, builtin,
};
use rpc_stats::{Observer, Source};
use rpc_types::image::{ABI_VERSION, CLIENT_SYMBOL, ClientDescriptor, MAGIC};
use rpc_types::layout::MAX_PORTS;
use rpc_types::{Geometry, LayoutKind};
use thiserror::Error;

use crate::cli::{MAX_IN_FLIGHT, Options, Poll};
use crate::device::{Device, DeviceError, DeviceInfo, Grid, SharedBuffer};
use crate::program::say;

/// Messages of at least so many bytes travel by reference, both ways where they can: below, a copy
/// and its acknowledgement cost more than the packets do.
pub const BULK: u32 = 32 << 10;

/// Why an image's client cannot be served.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The client's descriptor does not start as one.
    #[error("the image's {CLIENT_SYMBOL} is not an RPC client of gpurpc")]
    Magic,
    /// The client is of another version.
    #[error(
        "the image's RPC client has ABI version {0}, and this loader serves version {ABI_VERSION}: \
         build the image with the rpc-device of this release, or take the loader of that one"
    )]
    Version(u32),
    /// The client's layout has no name here.
    #[error(
        "the image's RPC client has layout {0}, and this loader knows 1 (Compact) and 2 (Line)"
    )]
    Layout(u32),
    /// What must be zero is not.
    #[error("the image's RPC client has fields set that ABI version {ABI_VERSION} does not have")]
    Reserved,
    /// The host's processor lacks something that the image needs.
    #[error(
        "the image needs a host whose processor reads and writes 16 bytes in one access (x86-64 \
         with AVX), which this one does not: build the image with the feature `compact`"
    )]
    Words,
    /// A device that no layout has room for.
    #[error("no layout has room for {ports} ports of {lanes} lanes")]
    Geometry {
        /// Ports that were wanted.
        ports: u32,
        /// Lanes of the device's warps.
        lanes: u32,
    },
    /// The device refused memory or a copy.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The server's threads could not be started.
    #[error("the server could not be started: {0}")]
    Threads(io::Error),
}

/// The client that a loaded image carries, checked.
#[derive(Clone, Copy, Debug)]
pub struct Client {
    descriptor: ClientDescriptor,
    layout: LayoutKind,
}

impl Client {
    /// The client of the image that `device` has loaded; `None` if the image has none and so needs
    /// no server.
    ///
    /// # Errors
    /// When it is none that this release serves, or the device does not say.
    pub fn find(device: &dyn Device) -> Result<Option<Self>, ServeError> {
        let Some(bytes) = device.read_global(CLIENT_SYMBOL, size_of::<ClientDescriptor>())? else {
            return Ok(None);
        };
        let descriptor = bytemuck::try_pod_read_unaligned(&bytes).map_err(|_| ServeError::Magic)?;
        Self::check(descriptor).map(Some)
    }

    /// The layout that the image was built for.
    pub const fn layout(&self) -> LayoutKind {
        self.layout
    }

    fn check(client: ClientDescriptor) -> Result<Self, ServeError> {
        if client.magic != MAGIC {
            return Err(ServeError::Magic);
        }
        // Nothing behind the version means anything in another one.
        if client.version != ABI_VERSION {
            return Err(ServeError::Version(client.version));
        }
        let layout =
            LayoutKind::from_number(client.layout).ok_or(ServeError::Layout(client.layout))?;
        if client.reserved != [0; 3] || client.flags & !ClientDescriptor::NEEDS_WORDS != 0 {
            return Err(ServeError::Reserved);
        }
        Ok(Self {
            descriptor: client,
            layout,
        })
    }

    /// How many ports it gets: as many as are asked for, else as the image wishes, else one for
    /// each warp of `device` that can be resident.
    pub fn ports(&self, device: &dyn Device, asked: Option<u32>) -> u32 {
        let wished = self.descriptor.wished_ports;
        ports(asked, wished, device.info().resident_warps)
    }

    /// As [`ports`](Self::ports), without those that no warp of `grid` would ever need.
    pub(crate) fn ports_for(&self, info: &DeviceInfo, grid: Grid, asked: Option<u32>) -> u32 {
        ports(asked, self.descriptor.wished_ports, warps(info, grid))
    }

    /// Completes the client and starts its server: the built-in services, then what `install` adds
    /// to them or puts in their place.
    ///
    /// To be called between `load` and the first launch, or again while no kernel runs: the
    /// service that was started last serves what is launched next. Each call takes new memory of
    /// the device, which only the device's end frees.
    ///
    /// # Errors
    /// When the device refuses memory or a copy, or no thread can be started.
    pub fn serve(
        &self,
        device: &Arc<dyn Device>,
        asked_ports: Option<u32>,
        options: ServerOptions,
        install: impl FnOnce(&mut Table),
    ) -> Result<Service, ServeError> {
        let served = self.serve_over(device, asked_ports, None, options, install, false)?;
        Ok(served.0)
    }

    /// As [`serve`](Self::serve), over `ready` if that is as much memory as it takes, and `observed`
    /// for a recorder.
    pub(crate) fn serve_over(
        &self,
        device: &Arc<dyn Device>,
        asked_ports: Option<u32>,
        ready: Option<SharedBuffer>,
        options: ServerOptions,
        install: impl FnOnce(&mut Table),
        observed: bool,
    ) -> Result<(Service, Option<Source>), ServeError> {
        let (layout, mut client) = (self.layout, self.descriptor);
        let lanes = device.info().lanes;
        let ports = self.ports(&**device, asked_ports);
        let geometry =
            Geometry::new(layout, ports, lanes).ok_or(ServeError::Geometry { ports, lanes })?;
        if layout == LayoutKind::Compact {
            device.check_shared_atomics()?;
        }
        let shared = match ready {
            Some(ready) if ready.size >= geometry.shared_size() => ready,
            _ => device.allocate_shared(geometry.shared_size())?,
        };
        client.ports = ports;
        client.lanes = lanes;
        client.bulk = u32::try_from(options.bulk).unwrap_or(0);
        client.shared = shared.device;
        if words_here() {
            client.flags |= ClientDescriptor::WORDS;
        } else if client.flags & ClientDescriptor::NEEDS_WORDS != 0 {
            return Err(ServeError::Words);
        }
        client.private = device.allocate_private(geometry.private_size())?;
        device.write_global(CLIENT_SYMBOL, bytemuck::bytes_of(&client))?;
        let mut table = Table::new();
        builtin::install(&mut table, Arc::new(Standard));
        install(&mut table);
        // SAFETY: the buffer is page-aligned, has `shared_size` bytes, and lives as long as its
        // device, which the service keeps (it, and each probe of it, holds the memory handle below
        // until its threads have ended). Apart from the device, only the service reaches it.
        let region = unsafe { Raw::<System>::new(shared.host.as_ptr(), geometry.shared_size()) };
        let memory = Arc::clone(device) as Arc<dyn DeviceMemory>;
        match layout {
            LayoutKind::Line => start(
                Line::new(region, geometry),
                table,
                memory,
                options,
                observed,
            ),
            LayoutKind::Compact => start(
                Compact::new(region, geometry),
                table,
                memory,
                options,
                observed,
            ),
        }
        .map_err(ServeError::Threads)
    }
}

/// Starts the service; one that is not observed has no code for it.
fn start<T: Transport + Send + Sync + 'static>(
    transport: T,
    table: Table,
    memory: Arc<dyn DeviceMemory>,
    options: ServerOptions,
    observed: bool,
) -> io::Result<(Service, Option<Source>)> {
    if !observed {
        let service = Service::start(transport, table, memory, options, ())?;
        return Ok((service, None));
    }
    let ports = transport.geometry().total_ports();
    let (observer, events) = Observer::new(ports, options.pollers_for(ports));
    let observer = Arc::new(observer);
    let service = Service::start(transport, table, memory, options, Arc::clone(&observer))?;
    let source = Source {
        observer,
        events,
        probe: service.probe(),
    };
    Ok((service, Some(source)))
}

/// How many ports: what the user says, else what the image wishes, else one for each warp.
fn ports(asked: Option<u32>, wished: u32, warps: u32) -> u32 {
    let own = if wished == 0 { warps } else { wished };
    asked.unwrap_or(own).clamp(1, MAX_PORTS)
}

/// Ports for each warp of a grid: those whose last call nobody waited for are not free at once.
const PER_WARP: u32 = 8;
/// And at least so many: callers begin their search at different ports.
const LEAST: u32 = 256;

/// How many ports the warps of a grid make use of, at most as many as can be resident: memory for
/// more takes time to be page-locked.
fn warps(info: &DeviceInfo, grid: Grid) -> u32 {
    let count = |n: [u32; 3]| n.iter().fold(1_u32, |all, n| all.saturating_mul(*n));
    let block = count(grid.threads).div_ceil(info.lanes.max(1));
    let ports = count(grid.blocks)
        .saturating_mul(block)
        .saturating_mul(PER_WARP);
    ports.max(LEAST).min(info.resident_warps)
}

/// Shared memory for an image that has not been read yet: what the default layout takes, with the
/// ports that the user or the grid asks for. `None` if that cannot be had: then the image will
/// tell how much is really needed.
pub(crate) fn expected(
    device: &dyn Device,
    grid: Grid,
    asked: Option<u32>,
) -> Option<SharedBuffer> {
    let info = device.info();
    let ports = ports(asked, 0, warps(info, grid));
    let geometry = Geometry::new(LayoutKind::Line, ports, info.lanes)?;
    device.allocate_shared(geometry.shared_size()).ok()
}

/// How a loader's server works by its command line; what it reports stands behind `name`.
pub(crate) fn options(options: &Options, name: &'static str) -> ServerOptions {
    let mut server = ServerOptions {
        poll: options.poll.into(),
        max_message: options.max_message,
        max_in_flight: MAX_IN_FLIGHT,
        bulk: BULK.into(),
        report: Report::new(move |sentence| say(name, sentence)),
        ..ServerOptions::default()
    };
    if let Some(threads) = options.server_threads {
        server.pollers = threads as usize;
    }
    server
}

impl From<Poll> for rpc_server::Poll {
    fn from(poll: Poll) -> Self {
        match poll {
            Poll::Spin => Self::Spin,
            Poll::Adaptive => Self::Adaptive,
            Poll::Sleep => Self::Sleep,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_checked() {
        let good = ClientDescriptor::new(LayoutKind::Compact, 0);
        assert_eq!(Client::check(good).unwrap().layout(), LayoutKind::Compact);
        let said = |client| Client::check(client).unwrap_err().to_string();
        assert!(
            said(ClientDescriptor {
                magic: *b"gpurpd\0\0",
                ..good
            })
            .contains("not an RPC")
        );
        assert!(said(ClientDescriptor { version: 7, ..good }).contains("version 7"));
        assert!(said(ClientDescriptor { layout: 9, ..good }).contains("layout 9"));
        assert!(said(ClientDescriptor { flags: 4, ..good }).contains("fields"));
        assert!(
            said(ClientDescriptor {
                reserved: [0, 0, 1],
                ..good
            })
            .contains("fields")
        );
    }

    #[test]
    fn ports_by_user_image_and_device() {
        assert_eq!(ports(Some(3), 5, 7), 3);
        assert_eq!(ports(None, 5, 7), 5);
        assert_eq!(ports(None, 0, 7), 7);
        assert_eq!(ports(None, u32::MAX, 7), MAX_PORTS);
        assert_eq!(ports(None, 0, u32::MAX), MAX_PORTS);
        assert_eq!(ports(None, 0, 0), 1);
    }
}
