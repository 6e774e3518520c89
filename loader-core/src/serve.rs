//! A server behind the client that an image carries.
//!
//! A program that serves an image by itself opens a [`Device`], loads the image, asks for its
//! [`Client`] and [serves](Client::serve) it with handlers of its own. Who only wants a loader with
//! more handlers takes [`program::main_serving`](crate::program::main_serving).

use std::io;
use std::sync::Arc;

use rpc_bitmap::words_here;
use rpc_libc::{Libc, Policy};
use rpc_port::{Compact, First, Line, Llvm, Llvm22, Transport};
use rpc_server::{
    DeviceMemory, Options as ServerOptions, Output, Report, Service, Standard, Table, builtin,
};
use rpc_stats::{Observer, Source};
use rpc_types::image::{ABI_VERSION, CLIENT_SYMBOL, ClientDescriptor, MAGIC};
use rpc_types::{Geometry, LayoutKind};

use crate::cli::{MAX_IN_FLIGHT, Options, Poll};
use crate::device::{Device, DeviceInfo, Grid, Mailbox, SharedBuffer};
use crate::program::say;

mod error;
mod llvm;
mod ports;
mod region;

pub use error::ServeError;
pub(crate) use ports::expected;
use ports::{ports, warps};
pub use region::Region;

/// Messages of at least so many bytes travel by reference, both ways where they can: below, a copy
/// and its acknowledgement cost more than the packets do.
pub const BULK: u32 = 32 << 10;

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
        let geometry = Geometry::new(layout, ports, lanes).ok_or(ServeError::Geometry {
            layout,
            ports,
            lanes,
        })?;
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
    // LLVM's layouts carry no references, whoever the client is.
    client.bulk = match u32::try_from(bulk) {
        Ok(bulk) if !geometry.layout.is_llvm() => bulk,
        _ => 0,
    };
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
    fn sentences_say_what_to_do() {
        let geometry = ServeError::Geometry {
            layout: LayoutKind::Line,
            ports: 4,
            lanes: 65,
        };
        for (error, words) in [
            (ServeError::Magic, "build the image"),
            (ServeError::LlvmPointer, "build the image"),
            (ServeError::Reserved, "build the image"),
            (ServeError::Layout(9), "build the image"),
            (
                geometry,
                "layout Line of this image has no room for 4 ports of 65 lanes: give --ports",
            ),
        ] {
            let said = error.to_string();
            assert!(said.contains(words), "{said}");
        }
    }
}
