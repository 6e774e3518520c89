//! What the device program calls besides the built-in services.

use std::sync::{Arc, Mutex, PoisonError};

use bench_calls::{Discard, PACKETS, Sample, pattern};
use rpc_port::StreamProcedure;
use rpc_port::procedure::Empty;
use rpc_server::{Conversation, Failure, Flow, Table};
use rpc_types::packet::MAX_LANES;

/// Numbers that the device has reported.
#[derive(Clone, Debug, Default)]
pub(crate) struct Samples(Arc<Mutex<Vec<u64>>>);

impl Samples {
    fn push(&self, value: u64) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(value);
    }

    /// Those since this was called last.
    pub(crate) fn take(&self) -> Vec<u64> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Adds the handlers to `table`.
pub(crate) fn install(table: &mut Table, samples: Samples) {
    table.procedure::<Sample>(move |_, value| {
        samples.push(value);
        Ok(Empty)
    });
    // The packet goes back as it came.
    table.packets(PACKETS, "bench_packets", |_, _| Ok(()));
    table.conversation(Discard::OPCODE, Discard::NAME, discard);
}

async fn discard(mut conversation: Conversation) -> Result<Flow, Failure> {
    let messages = conversation.recv_n().await?;
    let mut lengths = [[0; 8]; MAX_LANES as usize];
    for (lane, message) in messages.iter() {
        if let Some(place) = wrong_word(message) {
            return Err(Failure::Handler(format!(
                "word {place} of the {} bytes from lane {lane} is wrong",
                message.len()
            )));
        }
        lengths[lane as usize] = (message.len() as u64).to_le_bytes();
    }
    drop(messages);
    conversation.send_n(|lane| &lengths[lane as usize]).await?;
    Ok(Flow::Continue)
}

/// Words between two that are looked at.
const STEP: usize = 509;

/// The first of some words of the message that is not as it was sent.
fn wrong_word(message: &[u8]) -> Option<usize> {
    let count = message.len() / 8;
    let looked_at = (0..count).step_by(STEP).chain(count.checked_sub(1));
    let right = |place: usize| message[place * 8..][..8] == pattern(place as u64).to_le_bytes();
    looked_at.into_iter().find(|&place| !right(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_messages_are_seen() {
        let mut message: Vec<u8> = (0..1000).flat_map(|i| pattern(i).to_le_bytes()).collect();
        assert_eq!(wrong_word(&message), None);
        assert_eq!(wrong_word(&[]), None);
        message[509 * 8 + 3] ^= 1;
        assert_eq!(wrong_word(&message), Some(509));
        message[509 * 8 + 3] ^= 1;
        message[7999] ^= 1;
        assert_eq!(wrong_word(&message), Some(999));
    }
}
