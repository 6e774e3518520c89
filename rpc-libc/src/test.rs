//! What LLVM's own tests ask of a server.

use rpc_server::{Conversation, Failure, Flow, PerLane, Table};
use rpc_types::Opcode;

pub(crate) fn install(table: &mut Table) {
    table.conversation(Opcode::TEST_INTERFACE, "test_interface", interface);
    table.conversation(Opcode::TEST_STREAM, "test_stream", stream);
}

/// A message, then the same one back; an empty one if it was lost.
async fn stream(mut conversation: Conversation) -> Result<Flow, Failure> {
    let messages = conversation.recv_n_lossy(u64::MAX).await?;
    conversation.send_n(|lane| messages.of(lane)).await?;
    Ok(Flow::Continue)
}

/// A fixed order of sends (S) and receives (R), as the client sees them: S S R S R S S R R, then S or
/// R. The first send says which, by a word that is not 0 for S. All others carry a counter, which
/// whoever sends it has raised by one before: the client's sends carry 1, 3, 5 and 6, its receives
/// 2, 4, 7 and 8, and the last step 9.
///
/// The lanes of a call take their last step together: the lowest one says which.
async fn interface(mut conversation: Conversation) -> Result<Flow, Failure> {
    let ends = conversation.recv::<u64>().await?;
    let counters = conversation.recv().await?;
    raise(&mut conversation, &counters, 1).await?;
    let counters = conversation.recv().await?;
    raise(&mut conversation, &counters, 1).await?;
    conversation.recv::<u64>().await?;
    let counters = conversation.recv().await?;
    raise(&mut conversation, &counters, 1).await?;
    raise(&mut conversation, &counters, 2).await?;
    if ends.lowest().is_some_and(|end| *end != 0) {
        conversation.recv::<u64>().await?;
    } else {
        raise(&mut conversation, &counters, 3).await?;
    }
    Ok(Flow::Continue)
}

async fn raise(
    conversation: &mut Conversation,
    counters: &PerLane<u64>,
    by: u64,
) -> Result<(), Failure> {
    conversation
        .send(|lane| counters.get(lane).map_or(0, |n| n.wrapping_add(by)))
        .await
}
