//! One definition of a call for both sides, so that they cannot disagree.

use bytemuck::{Pod, Zeroable};
use rpc_bitmap::{Device, Memory};
use rpc_types::Opcode;

use crate::client::Client;
use crate::dynamic::{DynamicPort, InPlace};
use crate::error::Error;
use crate::stream::Sink;
use crate::transport::Transport;
use crate::warp::Warp;

/// A call with one typed request and one typed reply, each at most 62 bytes and each lane its own.
///
/// ```
/// use rpc_port::Procedure;
/// use rpc_types::Opcode;
///
/// /// Asks the host for the square root of a number.
/// struct SquareRoot;
///
/// impl Procedure for SquareRoot {
///     const OPCODE: Opcode = Opcode::user(1);
///     const NAME: &'static str = "square_root";
///     type Request = f64;
///     type Reply = f64;
/// }
/// ```
pub trait Procedure {
    /// What the call asks for.
    const OPCODE: Opcode;
    /// The name people see.
    const NAME: &'static str;
    /// What the device sends.
    type Request: Pod;
    /// What the host answers.
    type Reply: Pod;
    /// Whether the host sees, beside the request, what the caller wrote to memory before the call,
    /// and the caller what the host wrote before it answered: for calls that pass addresses. It
    /// costs two fences.
    const ORDERS_MEMORY: bool = false;
}

/// A call with one message of any length in each direction, each lane its own.
pub trait StreamProcedure {
    /// What the call asks for.
    const OPCODE: Opcode;
    /// The name people see.
    const NAME: &'static str;
}

/// No bytes at all, as a request or a reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Empty;

impl<T: Transport, P: Memory<Scope = Device>, W: Warp> Client<T, P, W> {
    /// Calls `C` and waits for the reply.
    ///
    /// # Errors
    /// What the server says instead of a reply, or that the run is ending.
    #[inline(always)]
    pub fn call<C: Procedure>(&self, request: &C::Request) -> Result<C::Reply, Error> {
        let slot = self.open_constant(C::OPCODE)?;
        let mut port = InPlace::new(self, slot);
        let result = port.call::<C>(request);
        port.close();
        result
    }

    /// Calls `C` and does not wait: there is no reply, nor word of an error.
    ///
    /// # Errors
    /// That the run is ending.
    #[inline(always)]
    pub fn notify<C: Procedure<Reply = Empty>>(&self, request: &C::Request) -> Result<(), Error> {
        let slot = self.open_constant(C::OPCODE)?;
        let mut port = InPlace::new(self, slot);
        let result = port.notify::<C>(request);
        port.close();
        result
    }

    /// Opens a port for calls of the lanes that are here together, to be kept between calls.
    ///
    /// It saves what opening costs. Nobody else can use a port meanwhile: a program in which more
    /// warps keep one than there are ports waits for ever.
    ///
    /// # Errors
    /// [`Error::Stopped`] when the host ends the run meanwhile.
    #[inline(always)]
    pub fn keep(&self) -> Result<Kept<'_, T, P, W>, Error> {
        let port = self.open(Opcode::NOOP)?.dynamic();
        Ok(Kept { port })
    }

    /// Calls `C` with a message and gives the answer to `sink`.
    ///
    /// # Errors
    /// What the server says instead of an answer, or that the run is ending.
    #[inline(always)]
    pub fn exchange<C: StreamProcedure>(
        &self,
        message: &[u8],
        sink: &mut impl Sink,
    ) -> Result<(), Error> {
        let slot = self.open_constant(C::OPCODE)?;
        let mut port = InPlace::new(self, slot);
        // A function, not a closure: the compiler may make a call of one of those, and then what is
        // known of the port goes through local memory.
        let result = port.exchange(message, sink);
        port.close();
        result
    }
}

impl<T: Transport, P: Memory<Scope = Device>, W: Warp> DynamicPort<&Client<T, P, W>> {
    #[inline(always)]
    fn call<C: Procedure>(&mut self, request: &C::Request) -> Result<C::Reply, Error> {
        if C::ORDERS_MEMORY {
            self.order();
        }
        let mut reply = C::Reply::zeroed();
        self.send_and_recv(
            size_of::<C::Request>(),
            |_, packet| packet.set(request),
            size_of::<C::Reply>(),
            |_, packet| reply = packet.get(),
        )?;
        Ok(reply)
    }

    #[inline(always)]
    fn notify<C: Procedure>(&mut self, request: &C::Request) -> Result<(), Error> {
        if C::ORDERS_MEMORY {
            self.order();
        }
        self.leave_reply();
        self.send(size_of::<C::Request>(), |_, packet| packet.set(request))
    }

    #[inline(always)]
    fn exchange(&mut self, message: &[u8], sink: &mut impl Sink) -> Result<(), Error> {
        self.send_n(|_| message)?;
        self.recv_n(sink)
    }
}

/// A port that the lanes of a mask keep between their calls. All of them make each call together.
///
/// Dropping it gives the port back.
#[derive(Debug)]
#[must_use = "dropping it gives the port back"]
pub struct Kept<'c, T: Transport, P: Memory<Scope = Device>, W: Warp> {
    port: DynamicPort<&'c Client<T, P, W>>,
}

impl<T: Transport, P: Memory<Scope = Device>, W: Warp> Kept<'_, T, P, W> {
    /// The lanes that keep it.
    pub fn mask(&self) -> u64 {
        self.port.mask()
    }

    /// Calls `C` and waits for the reply.
    ///
    /// # Errors
    /// What the server says instead of a reply, or that the run is ending.
    #[inline(always)]
    pub fn call<C: Procedure>(&mut self, request: &C::Request) -> Result<C::Reply, Error> {
        self.port.begin(C::OPCODE)?;
        self.port.call::<C>(request)
    }

    /// Calls `C` with a message and gives the answer to `sink`.
    ///
    /// # Errors
    /// What the server says instead of an answer, or that the run is ending.
    #[inline(always)]
    pub fn exchange<C: StreamProcedure>(
        &mut self,
        message: &[u8],
        sink: &mut impl Sink,
    ) -> Result<(), Error> {
        self.port.begin(C::OPCODE)?;
        self.port.exchange(message, sink)
    }
}

/// Adds one: the call that benchmarks and tests make.
#[derive(Clone, Copy, Debug)]
pub struct Increment;

impl Procedure for Increment {
    const OPCODE: Opcode = Opcode::TEST_INCREMENT;
    const NAME: &'static str = "test_increment";
    type Request = u64;
    type Reply = u64;
}

/// Does nothing, without a reply.
#[derive(Clone, Copy, Debug)]
pub struct Noop;

impl Procedure for Noop {
    const OPCODE: Opcode = Opcode::NOOP;
    const NAME: &'static str = "noop";
    type Request = Empty;
    type Reply = Empty;
}

/// Allocates device memory: a size in bytes -> a device address, 0 on failure.
#[derive(Clone, Copy, Debug)]
pub struct Malloc;

impl Procedure for Malloc {
    const OPCODE: Opcode = Opcode::MALLOC;
    const NAME: &'static str = "malloc";
    type Request = u64;
    type Reply = u64;
    // What another thread wrote before it freed the memory comes before what this one writes.
    const ORDERS_MEMORY: bool = true;
}

/// Frees what [`Malloc`] gave, without a reply; 0 is nothing to free.
#[derive(Clone, Copy, Debug)]
pub struct Free;

impl Procedure for Free {
    const OPCODE: Opcode = Opcode::FREE;
    const NAME: &'static str = "free";
    type Request = u64;
    type Reply = Empty;
    const ORDERS_MEMORY: bool = true;
}

/// Sends the message back as it came.
#[derive(Clone, Copy, Debug)]
pub struct Echo;

impl StreamProcedure for Echo {
    const OPCODE: Opcode = Opcode::TEST_STREAM;
    const NAME: &'static str = "test_stream";
}
