//! The services of every program: printing, ending, memory, tests.

use std::sync::Arc;

use rpc_port::procedure::{Empty, Free, Increment, Malloc, Noop};
use rpc_types::{Opcode, Status};

use crate::conversation::Conversation;
use crate::handler::{End, Failure, Flow};
use crate::output::Output;
use crate::table::Table;

mod print;

/// Registers every built-in service that `rpc-types` has an opcode for; text goes to `output`.
pub fn install(table: &mut Table, output: Arc<dyn Output>) {
    table.procedure::<Noop>(|_, _| Ok(Empty));
    table.procedure::<Increment>(|_, n| Ok(n.wrapping_add(1)));
    table.procedure::<Malloc>(|call, size| Ok(call.memory.allocate(size).unwrap_or(0)));
    table.procedure::<Free>(|call, address| {
        // As in C, freeing nothing is no error.
        if address == 0 || call.memory.free(address) {
            Ok(Empty)
        } else {
            Err(Status::INVALID)
        }
    });
    table.conversation(Opcode::TEST_STREAM, "test_stream", echo);
    table.conversation(Opcode::EXIT, "exit", exit);
    table.conversation(Opcode::ABORT, "abort", abort);
    print::install(table, output);
}

async fn echo(mut conversation: Conversation) -> Result<Flow, Failure> {
    let messages = conversation.recv_n().await?;
    conversation.send_n(|lane| messages.of(lane)).await?;
    Ok(Flow::Continue)
}

/// A request, its acknowledgement, then the code: the lowest lane's counts.
async fn exit(mut conversation: Conversation) -> Result<Flow, Failure> {
    conversation.recv_with(0, |_, _| ()).await?;
    conversation.send_with(0, |_, _| ()).await?;
    let codes = conversation.recv::<i32>().await?;
    Ok(Flow::End(End::exit(codes.lowest().copied().unwrap_or(0))))
}

/// What the client sends after its acknowledgement means nothing: the first request is enough. But it
/// waits for the acknowledgement before it ends.
async fn abort(mut conversation: Conversation) -> Result<Flow, Failure> {
    conversation.recv_with(0, |_, _| ()).await?;
    conversation.send_with(0, |_, _| ()).await?;
    Ok(Flow::End(End::ABORT))
}
