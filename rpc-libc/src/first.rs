//! What LLVM's first patch for RPC asks of a server: text for standard error, and the end.

use std::sync::Arc;

use rpc_server::{Conversation, End, Failure, Flow, Stream, Table};
use rpc_types::packet::PACKET_SIZE;
use rpc_types::{Opcode, Packet};

use crate::console::Console;

/// Bytes of the opcode in front of what a packet carries.
const OPCODE: usize = 8;

pub(crate) fn install(table: &mut Table, console: &Arc<Console>) {
    let console = Arc::clone(console);
    table.conversation(Opcode::FIRST_PRINT, "first_print", move |conversation| {
        print(conversation, Arc::clone(&console))
    });
    // Answered, and what the client does then is its own business: it may not go on at all.
    table.packets(Opcode::FIRST_EXIT, "first_exit", |call, packet| {
        call.end_run(End::exit(packet.words[1] as i32));
        Ok(())
    });
}

/// A piece of a text, with its NUL if it is the last one: what comes behind that was not written. The
/// client has no use for an answer but that there is one, and acknowledges it.
async fn print(mut conversation: Conversation, console: Arc<Console>) -> Result<Flow, Failure> {
    let mut text = Vec::new();
    let take = |_, packet: &Packet| {
        let piece = &packet.bytes()[OPCODE..];
        text.extend(piece.iter().take_while(|byte| **byte != 0));
    };
    conversation.recv_with(PACKET_SIZE, take).await?;
    console
        .write(&mut conversation, Stream::Stderr, Some(text))
        .await;
    conversation.send_with(0, |_, _| ()).await?;
    conversation.recv_with(0, |_, _| ()).await?;
    Ok(Flow::Continue)
}
