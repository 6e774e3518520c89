//! The client that the host has set up.

use rpc_bitmap::{Device, Raw, System};
use rpc_port::Transport;
use rpc_types::{ClientDescriptor, Geometry, LayoutKind};

pub use crate::target::Lanes;

use crate::target;

/// The layout of this image, chosen when it was built.
#[cfg(not(any(feature = "compact", feature = "llvm")))]
pub type Layout = rpc_port::Line<Raw<System>>;
/// The layout of this image, chosen when it was built.
#[cfg(feature = "compact")]
pub type Layout = rpc_port::Compact<Raw<System>>;
/// The layout of this image, chosen when it was built.
#[cfg(all(feature = "llvm", not(feature = "compact")))]
pub type Layout = rpc_port::Llvm<Raw<System>>;

/// The client of a GPU program.
pub type Client = rpc_port::Client<Layout, Raw<Device>, Lanes>;

const LAYOUT: LayoutKind = <Layout as Transport>::KIND;

/// What the host fills in before the first kernel. `mut`, so that the compiler takes nothing in it
/// for known.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static mut __gpurpc_client: ClientDescriptor = ClientDescriptor::new(LAYOUT, 0)
    .needs_words(target::WORDS && matches!(LAYOUT, LayoutKind::Line));

/// The client of this program.
///
/// Ends the thread if no host has set one up.
#[inline(always)]
pub fn client() -> Client {
    // SAFETY: the host writes the descriptor before any kernel of the image runs and nobody
    // writes it after that, so this copy races with nothing.
    let descriptor = unsafe { (&raw const __gpurpc_client).read() };
    if descriptor.shared == 0 {
        target::end_thread();
    }
    // As the host computed it; `Geometry::new` accepted it there.
    let geometry = Geometry {
        layout: LAYOUT,
        ports: descriptor.ports,
        lanes: target::LANES.unwrap_or(descriptor.lanes),
    };
    // SAFETY: the image ABI says that these are the addresses of two page-aligned regions of the
    // geometry's sizes that live as long as the image; only this client and the host's server
    // access the shared one, only this client the private one.
    let (shared, private) = unsafe {
        (
            Raw::new(descriptor.shared as *mut u8, geometry.shared_size()),
            Raw::new(descriptor.private as *mut u8, geometry.private_size()),
        )
    };
    let words = target::WORDS || descriptor.flags & ClientDescriptor::WORDS != 0;
    Client::new(layout(shared, geometry, words), private, target::warp()).with_bulk(descriptor.bulk)
}

/// The layout of this image, with words of 16 bytes if `words`.
#[inline(always)]
fn layout(shared: Raw<System>, geometry: Geometry, words: bool) -> Layout {
    #[cfg(not(any(feature = "compact", feature = "llvm")))]
    {
        Layout::with_words(shared, geometry, words)
    }
    #[cfg(any(feature = "compact", feature = "llvm"))]
    {
        let _ = words;
        Layout::new(shared, geometry)
    }
}

/// Takes the error out that ends the thread: the run is over and nobody will answer.
#[inline(always)]
pub(crate) fn unless_stopped<R>(result: Result<R, rpc_port::Error>) -> Result<R, rpc_port::Error> {
    if let Err(rpc_port::Error::Stopped) = result {
        target::end_thread();
    }
    result
}
