//! A server's port without its layout, so that handlers do not depend on it.

use rpc_bitmap::{Device, Memory};
use rpc_port::server::ServerSlot;
use rpc_port::stream::{AllLengths, Cursor};
use rpc_port::transport::{Room, Words};
use rpc_port::{DynamicPort, Error, Process, Server, Sink, Transport};
use rpc_types::{Packet, Status};

/// The pieces of a server's [`DynamicPort`] that never block.
pub(crate) trait RawPort: Send + Sync {
    fn payload(&self) -> usize;
    fn poll_own(&mut self) -> Result<bool, Error>;
    fn begin_recv(&mut self) -> Result<(), Error>;
    fn end_recv(&mut self, bytes: usize, f: &mut dyn FnMut(u32, &Packet));
    fn end_send(&mut self, bytes: usize, f: &mut dyn FnMut(u32, &mut Packet));
    fn cursor(&self) -> Cursor;
    fn end_recv_part(
        &mut self,
        cursor: &Cursor,
        lengths: &mut AllLengths,
        sink: &mut dyn Sink,
    ) -> bool;
    fn end_send_part<'m>(
        &mut self,
        cursor: &Cursor,
        message: &dyn Fn(u32) -> &'m [u8],
        refer: &dyn Fn(u32) -> Option<[u64; 2]>,
    );
    /// Tells the client `status`, or gives the port back if that cannot be done yet.
    fn end(self: Box<Self>, status: Status) -> Result<(), Box<dyn RawPort>>;
}

impl<P> RawPort for DynamicPort<P>
where
    P: Process<Slot = ServerSlot, Lengths = AllLengths> + Send + Sync + 'static,
{
    fn payload(&self) -> usize {
        Self::payload(self)
    }

    fn poll_own(&mut self) -> Result<bool, Error> {
        Self::poll_own(self)
    }

    fn begin_recv(&mut self) -> Result<(), Error> {
        Self::begin_recv(self)
    }

    fn end_recv(&mut self, bytes: usize, f: &mut dyn FnMut(u32, &Packet)) {
        Self::end_recv(self, bytes, f);
    }

    fn end_send(&mut self, bytes: usize, f: &mut dyn FnMut(u32, &mut Packet)) {
        Self::end_send(self, bytes, f);
    }

    fn cursor(&self) -> Cursor {
        Self::cursor(self)
    }

    fn end_recv_part(
        &mut self,
        cursor: &Cursor,
        lengths: &mut AllLengths,
        sink: &mut dyn Sink,
    ) -> bool {
        Self::end_recv_part(self, cursor, lengths, sink)
    }

    fn end_send_part<'m>(
        &mut self,
        cursor: &Cursor,
        message: &dyn Fn(u32) -> &'m [u8],
        refer: &dyn Fn(u32) -> Option<[u64; 2]>,
    ) {
        Self::end_send_part::<true>(self, cursor, message, |_, lane| refer(lane));
    }

    fn end(self: Box<Self>, status: Status) -> Result<(), Box<dyn RawPort>> {
        Self::end(*self, status).map_err(|port| Box::new(port) as Box<dyn RawPort>)
    }
}

/// A port for a call that is answered at once: see the methods of the same names of
/// [`DynamicPort`].
pub(crate) trait Answer {
    fn has_words(&self) -> bool;
    fn answer_words(&mut self, bytes: usize, words: &Words);
    fn answer_packets(
        &mut self,
        received: usize,
        sent: usize,
        room: &mut Room,
        f: &mut dyn FnMut(u32, &mut Packet) -> bool,
    ) -> bool;
}

impl<T: Transport, L: Memory<Scope = Device>> Answer for DynamicPort<&Server<T, L>> {
    fn has_words(&self) -> bool {
        Self::has_words(self)
    }

    fn answer_words(&mut self, bytes: usize, words: &Words) {
        Self::answer_words(self, bytes, words);
    }

    fn answer_packets(
        &mut self,
        received: usize,
        sent: usize,
        room: &mut Room,
        f: &mut dyn FnMut(u32, &mut Packet) -> bool,
    ) -> bool {
        Self::answer_packets(self, received, sent, room, f)
    }
}

/// The lanes of `mask`, lowest first.
#[inline(always)]
pub(crate) fn lanes(mut mask: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let lane = mask.trailing_zeros();
        mask &= mask.wrapping_sub(1);
        (lane < u64::BITS).then_some(lane)
    })
}
