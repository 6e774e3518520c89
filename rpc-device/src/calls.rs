//! What a program asks of its host.

use rpc_port::procedure::Empty;
use rpc_port::{Error, Procedure, Sink, StreamProcedure};
use rpc_types::Opcode;

use crate::client::{client, unless_stopped};
use crate::target;

/// Ends the whole program: its exit status is the low 8 bits of `code`.
///
/// When lanes of a warp call this together, the lowest one's code counts; of several warps, the
/// first to arrive.
pub fn exit(code: i32) -> ! {
    // The status goes in the third hand-over, as the exchange of this opcode has it.
    let say = || -> Result<(), Error> {
        let client = client();
        let mut port = client.open(Opcode::EXIT)?.dynamic();
        port.send(0, |_, _| ())?;
        port.recv(0, |_, _| ())?;
        port.send(size_of::<i32>(), |_, packet| packet.set(&code))
    };
    // Whatever came of it, this thread is done.
    let _ = say();
    target::end_thread()
}

/// Calls `C` on the host and waits for the reply.
///
/// # Errors
/// What the host says instead of a reply. If the run is ending, the thread ends here.
#[inline(always)]
pub fn call<C: Procedure>(request: &C::Request) -> Result<C::Reply, Error> {
    unless_stopped(client().call::<C>(request))
}

/// Calls `C` on the host and goes on at once.
///
/// # Errors
/// None that the caller can do anything about.
#[inline(always)]
pub fn notify<C: Procedure<Reply = Empty>>(request: &C::Request) -> Result<(), Error> {
    unless_stopped(client().notify::<C>(request))
}

/// Calls `C` on the host with a message of any length and gives the answer to `sink`.
///
/// # Errors
/// What the host says instead of an answer. If the run is ending, the thread ends here.
#[inline(always)]
pub fn exchange<C: StreamProcedure>(message: &[u8], sink: &mut impl Sink) -> Result<(), Error> {
    unless_stopped(client().exchange::<C>(message, sink))
}
