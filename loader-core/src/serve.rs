//! A server behind the client that an image carries.

use std::io;
use std::sync::Arc;

use rpc_bitmap::{Raw, System};
use rpc_port::{Compact, Line, Transport};
use rpc_server::{Options as ServerOptions, Report, Service, Standard, Table, builtin};
use rpc_types::image::{ABI_VERSION, CLIENT_SYMBOL, ClientDescriptor, MAGIC};
use rpc_types::layout::MAX_PORTS;
use rpc_types::{Geometry, LayoutKind};
use thiserror::Error;

use crate::cli::{MAX_IN_FLIGHT, Options, Poll};
use crate::device::{Device, DeviceError};
use crate::program::say;

/// Messages of at least so many bytes travel by reference, both ways where they can: below, a copy
/// and its acknowledgement cost more than the packets do.
const BULK: u32 = 32 << 10;

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

/// The client's descriptor, if the image has a client; checked.
pub(crate) fn client(
    device: &dyn Device,
) -> Result<Option<(ClientDescriptor, LayoutKind)>, ServeError> {
    let Some(bytes) = device.read_global(CLIENT_SYMBOL, size_of::<ClientDescriptor>())? else {
        return Ok(None);
    };
    check(bytemuck::try_pod_read_unaligned(&bytes).map_err(|_| ServeError::Magic)?).map(Some)
}

fn check(client: ClientDescriptor) -> Result<(ClientDescriptor, LayoutKind), ServeError> {
    if client.magic != MAGIC {
        return Err(ServeError::Magic);
    }
    // Nothing behind the version means anything in another one.
    if client.version != ABI_VERSION {
        return Err(ServeError::Version(client.version));
    }
    let layout = LayoutKind::from_number(client.layout).ok_or(ServeError::Layout(client.layout))?;
    if client.reserved2 != [0; 2] {
        return Err(ServeError::Reserved);
    }
    Ok((client, layout))
}

/// How many ports: what the user says, else what the image wishes, else one for each warp.
fn ports(asked: Option<u32>, wished: u32, warps: u32) -> u32 {
    let own = if wished == 0 { warps } else { wished };
    asked.unwrap_or(own).clamp(1, MAX_PORTS)
}

/// Completes the client and starts its server.
pub(crate) fn connect(
    device: &Arc<dyn Device>,
    (mut client, layout): (ClientDescriptor, LayoutKind),
    options: &Options,
    name: &'static str,
) -> Result<Service, ServeError> {
    let info = device.info();
    let ports = ports(options.ports, client.wished_ports, info.resident_warps);
    let lanes = info.lanes;
    let geometry =
        Geometry::new(layout, ports, lanes).ok_or(ServeError::Geometry { ports, lanes })?;
    if layout == LayoutKind::Compact {
        device.check_shared_atomics()?;
    }
    let shared = device.allocate_shared(geometry.shared_size())?;
    client.ports = ports;
    client.lanes = lanes;
    client.bulk = BULK;
    client.shared = shared.device;
    client.private = device.allocate_private(geometry.private_size())?;
    device.write_global(CLIENT_SYMBOL, bytemuck::bytes_of(&client))?;
    // SAFETY: the buffer is page-aligned, has `shared_size` bytes, and lives as long as its
    // device, which the service keeps (it holds the memory handle below until its threads have
    // ended). Apart from the device, only the service reaches it.
    let region = unsafe { Raw::<System>::new(shared.host.as_ptr(), geometry.shared_size()) };
    match layout {
        LayoutKind::Line => serve(Line::new(region, geometry), device, options, name),
        LayoutKind::Compact => serve(Compact::new(region, geometry), device, options, name),
    }
    .map_err(ServeError::Threads)
}

fn serve<T: Transport + Send + Sync + 'static>(
    transport: T,
    device: &Arc<dyn Device>,
    options: &Options,
    name: &'static str,
) -> io::Result<Service> {
    let mut table = Table::new();
    builtin::install(&mut table, Arc::new(Standard));
    let mut server = ServerOptions {
        poll: match options.poll {
            Poll::Spin => rpc_server::Poll::Spin,
            Poll::Adaptive => rpc_server::Poll::Adaptive,
            Poll::Sleep => rpc_server::Poll::Sleep,
        },
        max_message: options.max_message,
        max_in_flight: MAX_IN_FLIGHT,
        bulk: BULK.into(),
        report: Report::new(move |sentence| say(name, sentence)),
        ..ServerOptions::default()
    };
    if let Some(threads) = options.server_threads {
        server.pollers = threads as usize;
    }
    let memory = Arc::clone(device);
    Service::start(transport, table, memory, server, ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_checked() {
        let good = ClientDescriptor::new(LayoutKind::Compact, 0);
        assert_eq!(check(good).unwrap().1, LayoutKind::Compact);
        let said = |client| check(client).unwrap_err().to_string();
        assert!(
            said(ClientDescriptor {
                magic: *b"gpurpd\0\0",
                ..good
            })
            .contains("not an RPC")
        );
        assert!(said(ClientDescriptor { version: 7, ..good }).contains("version 7"));
        assert!(said(ClientDescriptor { layout: 9, ..good }).contains("layout 9"));
        assert!(
            said(ClientDescriptor {
                reserved2: [0, 1],
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
