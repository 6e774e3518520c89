//! A server behind the client that an image carries.
//!
//! A program that serves an image by itself opens a [`Device`], loads the image, asks for its
//! [`Client`] and [serves](Client::serve) it with handlers of its own. Who only wants a loader with
//! more handlers takes [`program::main_serving`](crate::program::main_serving).

use std::io;
use std::sync::Arc;

use rpc_bitmap::{Raw, System, words_here};
use rpc_libc::{Libc, Policy};
use rpc_port::{Compact, First, Line, Llvm, Llvm22, Transport};
use rpc_server::{
    DeviceMemory, Options as ServerOptions, Output, Report, Service, Standard, Table, builtin,
};
use rpc_stats::{Observer, Source};
use rpc_types::image::{ABI_VERSION, CLIENT_SYMBOL, ClientDescriptor, MAGIC};
use rpc_types::{Geometry, LayoutKind};
use thiserror::Error;

use crate::cli::{MAX_IN_FLIGHT, Options, Poll};
use crate::device::{Device, DeviceError, DeviceInfo, Grid, Mailbox, SharedBuffer};
use crate::program::say;

mod llvm;

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
        "the image's RPC client has layout {0}, and this loader knows 1 (Compact), 2 (Line), 3 \
         (Llvm22) and 4 (Llvm)"
    )]
    Layout(u32),
    /// The image was made with an LLVM libc that this release does not know.
    #[error(
        "the image's {symbol} has {0} bytes, and this loader knows 552 (LLVM 20 to 22) and 2096 \
         (since April 2026): build the image with one of those",
        symbol = rpc_types::llvm::CLIENT_SYMBOL
    )]
    LlvmSize(u64),
    /// The image was made with an older LLVM libc, and does not say where its client is.
    #[error(
        "the image's {symbol} is null, so there is no RPC client to serve",
        symbol = rpc_types::llvm::CLIENT_POINTER_SYMBOL
    )]
    LlvmPointer,
    /// More ports are asked for than the layout has.
    #[error(
        "--ports {asked} is more than the {most} that layout {layout} of this image has",
        layout = .layout.name()
    )]
    Ports {
        /// Ports that were asked for.
        asked: u32,
        /// Which layout.
        layout: LayoutKind,
        /// The most it has.
        most: u32,
    },
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
    layout: LayoutKind,
    form: Form,
}

/// How an image declares its client.
#[derive(Clone, Copy, Debug)]
enum Form {
    /// As this release's images do.
    Ours(ClientDescriptor),
    /// As LLVM's libc does.
    Llvm(llvm::Place),
}

/// What a loader serves a client with.
pub(crate) struct Serving {
    pub(crate) ports: Option<u32>,
    /// Shared memory that was allocated ahead: taken if that is enough.
    pub(crate) ready: Option<SharedBuffer>,
    pub(crate) options: ServerOptions,
    pub(crate) policy: Policy,
    /// Whether there will be a recorder.
    pub(crate) observed: bool,
}

/// What serves a client.
pub(crate) struct Served {
    pub(crate) service: Service,
    pub(crate) source: Option<Source>,
    /// What the kernel is to get besides, see [`Region::mailbox`].
    pub(crate) mailbox: Option<Mailbox>,
}

impl Client {
    /// The client of the image that `device` has loaded; `None` if the image has none and so needs
    /// no server.
    ///
    /// # Errors
    /// When it is none that this release serves, or the device does not say.
    pub fn find(device: &dyn Device) -> Result<Option<Self>, ServeError> {
        let Some(bytes) = device.read_global(CLIENT_SYMBOL, size_of::<ClientDescriptor>())? else {
            let found = llvm::find(device)?;
            return Ok(found.map(|(layout, place)| Self {
                layout,
                form: Form::Llvm(place),
            }));
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
        let layout = LayoutKind::from_number(client.layout)
            // That one's clients have no descriptor.
            .filter(|layout| *layout != LayoutKind::First)
            .ok_or(ServeError::Layout(client.layout))?;
        if client.reserved != [0; 3] || client.flags & !ClientDescriptor::NEEDS_WORDS != 0 {
            return Err(ServeError::Reserved);
        }
        Ok(Self {
            layout,
            form: Form::Ours(client),
        })
    }

    /// The ports that the image wishes, 0 if it does not say.
    const fn wished(&self) -> u32 {
        match &self.form {
            Form::Ours(descriptor) => descriptor.wished_ports,
            Form::Llvm(_) => 0,
        }
    }

    /// How many ports it gets: as many as are asked for, else as the image wishes, else one for
    /// each warp of `device` that can be resident.
    pub fn ports(&self, device: &dyn Device, asked: Option<u32>) -> u32 {
        let warps = device.info().resident_warps;
        ports(asked, self.wished(), warps, self.layout)
    }

    /// As [`ports`](Self::ports), without those that no warp of `grid` would ever need.
    pub(crate) fn ports_for(&self, info: &DeviceInfo, grid: Grid, asked: Option<u32>) -> u32 {
        ports(asked, self.wished(), warps(info, grid), self.layout)
    }

    /// Completes the client and starts its server: the built-in services, then what `install` adds
    /// to them or puts in their place.
    ///
    /// To be called between `load` and the first launch, or again while no kernel runs: the
    /// service that was started last serves what is launched next. Each call takes new memory of
    /// the device, which only the device's end frees. In the layout [`First`](LayoutKind::First) the
    /// kernel is to get [`Region::mailbox`], so [`connect`](Self::connect) is for that.
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
        let serving = Serving::new(asked_ports, options, false);
        Ok(self.serve_over(device, serving, install)?.service)
    }

    /// As [`serve`](Self::serve), with what a [recorder](rpc_stats::Recorder) is started with.
    ///
    /// # Errors
    /// As [`serve`](Self::serve).
    pub fn serve_observed(
        &self,
        device: &Arc<dyn Device>,
        asked_ports: Option<u32>,
        options: ServerOptions,
        install: impl FnOnce(&mut Table),
    ) -> Result<(Service, Option<Source>), ServeError> {
        let serving = Serving::new(asked_ports, options, true);
        let served = self.serve_over(device, serving, install)?;
        Ok((served.service, served.source))
    }

    /// Completes the client for a server of one's own, such as one over
    /// [`rpc_port::Server`]: gives the memory that both sides reach. `bulk` as in
    /// [`rpc_server::Options::bulk`].
    ///
    /// # Errors
    /// When the device refuses memory or a copy.
    pub fn connect(
        &self,
        device: &dyn Device,
        asked_ports: Option<u32>,
        bulk: u64,
    ) -> Result<Region, ServeError> {
        self.connect_over(device, asked_ports, bulk, None)
    }

    fn connect_over(
        &self,
        device: &dyn Device,
        asked: Option<u32>,
        bulk: u64,
        ready: Option<SharedBuffer>,
    ) -> Result<Region, ServeError> {
        let layout = self.layout;
        if let Some(asked) = asked.filter(|&asked| asked > layout.max_ports()) {
            let most = layout.max_ports();
            return Err(ServeError::Ports {
                asked,
                layout,
                most,
            });
        }
        let lanes = device.info().lanes;
        let ports = self.ports(device, asked);
        let geometry =
            Geometry::new(layout, ports, lanes).ok_or(ServeError::Geometry { ports, lanes })?;
        if layout == LayoutKind::Compact {
            device.check_shared_atomics()?;
        }
        let shared = match ready {
            Some(ready) if ready.size >= geometry.shared_size() => ready,
            _ => device.allocate_shared(geometry.shared_size())?,
        };
        match self.form {
            Form::Ours(client) => complete(device, client, &geometry, bulk, shared.device)?,
            Form::Llvm(place) => llvm::complete(device, place, &geometry, shared.device)?,
        }
        Ok(Region { geometry, shared })
    }

    /// As [`serve`](Self::serve), with all there is to say.
    pub(crate) fn serve_over(
        &self,
        device: &Arc<dyn Device>,
        serving: Serving,
        install: impl FnOnce(&mut Table),
    ) -> Result<Served, ServeError> {
        let Serving {
            ports,
            ready,
            options,
            policy,
            observed,
        } = serving;
        let region = self.connect_over(&**device, ports, options.bulk, ready)?;
        let mut table = Table::new();
        let output: Arc<dyn Output> = Arc::new(Standard);
        builtin::install(&mut table, Arc::clone(&output));
        let libc = Libc::new().policy(policy);
        libc.slabs(region.geometry.layout.is_llvm())
            .install(&mut table, &output);
        install(&mut table);
        let geometry = region.geometry;
        let mailbox = region.mailbox();
        let memory = Arc::clone(device) as Arc<dyn DeviceMemory>;
        // SAFETY: the device lives as long as the service, which keeps it: it, and each probe of it,
        // holds the memory handle above until its threads have ended.
        let region = unsafe { region.memory() };
        let start = Start {
            table,
            memory,
            options,
            observed,
        };
        let (service, source) = match geometry.layout {
            LayoutKind::Line => start.over(Line::new(region, geometry)),
            LayoutKind::Compact => start.over(Compact::new(region, geometry)),
            LayoutKind::Llvm22 => start.over(Llvm22::new(region, geometry)),
            LayoutKind::Llvm => start.over(Llvm::new(region, geometry)),
            LayoutKind::First => start.over(First::new(region, geometry)),
        }
        .map_err(ServeError::Threads)?;
        Ok(Served {
            service,
            source,
            mailbox,
        })
    }
}

/// The memory that an image's client and its server both reach.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    geometry: Geometry,
    shared: SharedBuffer,
}

impl Region {
    /// What lies where.
    pub const fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// What the kernel is to get, in the layout [`First`](LayoutKind::First):
    /// [`Kernel::StartOver`](crate::device::Kernel::StartOver).
    pub fn mailbox(&self) -> Option<Mailbox> {
        let at = |offset: usize| self.shared.device + offset as u64;
        let geometry = &self.geometry;
        (geometry.layout == LayoutKind::First).then(|| Mailbox {
            inbox: at(geometry.replies()),
            outbox: at(geometry.requests()),
            buffer: at(geometry.packets()),
        })
    }

    /// The memory, for a [`Transport`].
    ///
    /// # Safety
    /// The device outlives it, and besides the device only one server reaches it.
    pub unsafe fn memory(&self) -> Raw<System> {
        // SAFETY: the buffer is page-aligned, has `shared_size` bytes and belongs to the device, which
        // the caller keeps.
        unsafe { Raw::new(self.shared.host.as_ptr(), self.geometry.shared_size()) }
    }
}

impl Serving {
    fn new(ports: Option<u32>, options: ServerOptions, observed: bool) -> Self {
        Self {
            ports,
            ready: None,
            options,
            policy: Policy::default(),
            observed,
        }
    }
}

/// Completes a descriptor of ours for a shared region at device address `shared`.
fn complete(
    device: &dyn Device,
    mut client: ClientDescriptor,
    geometry: &Geometry,
    bulk: u64,
    shared: u64,
) -> Result<(), ServeError> {
    client.ports = geometry.ports;
    client.lanes = geometry.lanes;
    client.bulk = u32::try_from(bulk).unwrap_or(0);
    client.shared = shared;
    if words_here() {
        client.flags |= ClientDescriptor::WORDS;
    } else if client.flags & ClientDescriptor::NEEDS_WORDS != 0 {
        return Err(ServeError::Words);
    }
    client.private = device.allocate_private(geometry.private_size())?;
    device.write_global(CLIENT_SYMBOL, bytemuck::bytes_of(&client))?;
    Ok(())
}

/// What a service is started with, whatever its layout.
struct Start {
    table: Table,
    memory: Arc<dyn DeviceMemory>,
    options: ServerOptions,
    observed: bool,
}

impl Start {
    /// Starts the service; one that is not observed has no code for it.
    fn over<T: Transport + Send + Sync + 'static>(
        self,
        transport: T,
    ) -> io::Result<(Service, Option<Source>)> {
        let Self {
            table,
            memory,
            options,
            observed,
        } = self;
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
}

/// How many ports: what the user says, else what the image wishes, else one for each warp.
fn ports(asked: Option<u32>, wished: u32, warps: u32, layout: LayoutKind) -> u32 {
    let own = if wished == 0 { warps } else { wished };
    asked.map_or_else(|| own.clamp(1, layout.max_ports()), |asked| asked.max(1))
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
    let ports = ports(asked, 0, warps(info, grid), LayoutKind::Line);
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
    use rpc_types::layout::MAX_PORTS;

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
        assert!(said(ClientDescriptor { layout: 5, ..good }).contains("layout 5"));
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
        let line = |asked, wished, warps| ports(asked, wished, warps, LayoutKind::Line);
        assert_eq!(line(Some(3), 5, 7), 3);
        assert_eq!(line(None, 5, 7), 5);
        assert_eq!(line(None, 0, 7), 7);
        assert_eq!(line(None, u32::MAX, 7), MAX_PORTS);
        assert_eq!(line(None, 0, u32::MAX), MAX_PORTS);
        assert_eq!(line(None, 0, 0), 1);
        assert_eq!(ports(None, 0, 8448, LayoutKind::Llvm22), 4095);
    }
}
