//! What the device program calls besides the built-in services.

use std::fs::File;
use std::io::PipeReader;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

use bench_calls::{Discard, PACKETS, Sample, pattern};
use rpc_libc::Libc;
use rpc_port::StreamProcedure;
use rpc_port::procedure::Empty;
use rpc_server::{Conversation, Failure, Flow, Output, Piece, Standard, Table};
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

/// Adds the handlers to `table`, and has the device read from `input`.
pub(crate) fn install(table: &mut Table, samples: Samples, input: PipeReader) {
    let output: Arc<dyn Output> = Arc::new(Standard);
    let input = File::from(OwnedFd::from(input));
    Libc::new().stdin(input).install(table, &output);
    table.procedure::<Sample>(move |_, value| {
        samples.push(value);
        Ok(Empty)
    });
    // The packet goes back as it came.
    table.packets(PACKETS, "bench_packets", |_, _| Ok(()));
    table.conversation(Discard::OPCODE, Discard::NAME, discard);
}

async fn discard(mut conversation: Conversation) -> Result<Flow, Failure> {
    // For each lane how much has come, and of how much.
    let mut lanes = [(0, 0); MAX_LANES as usize];
    let mut wrong = None;
    conversation
        .recv_pieces(|lane, piece| {
            let (come, length) = &mut lanes[lane as usize];
            if *come != piece.offset || !is_right(piece) {
                wrong.get_or_insert((lane, piece.offset));
            }
            *come = piece.offset + piece.bytes.len() as u64;
            *length = piece.length;
        })
        .await?;
    let short = |lane: &u32| {
        let (come, length) = lanes[*lane as usize];
        come != length
    };
    let short = conversation.lanes().find(short);
    if let Some((lane, at)) = wrong.or(short.map(|lane| (lane, lanes[lane as usize].0))) {
        return Err(Failure::Handler(format!(
            "the message from lane {lane} is wrong from byte {at} on"
        )));
    }
    let lengths = lanes.map(|(come, _)| come.to_le_bytes());
    conversation.send_n(|lane| &lengths[lane as usize]).await?;
    Ok(Flow::Continue)
}

/// Whether the first and the last whole word of a piece are as they were sent: as much as costs
/// nothing beside the copy.
fn is_right(piece: Piece<'_>) -> bool {
    let first = piece.offset.div_ceil(8);
    let end = (piece.offset + piece.bytes.len() as u64) / 8;
    let right = |word: u64| {
        let start = (word * 8 - piece.offset) as usize;
        piece.bytes[start..][..8] == pattern(word).to_le_bytes()
    };
    first >= end || right(first) && right(end - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_pieces_are_seen() {
        let mut message: Vec<u8> = (0..1000).flat_map(|i| pattern(i).to_le_bytes()).collect();
        let is_right = |message: &[u8], start: usize, end: usize| {
            is_right(Piece {
                offset: start as u64,
                length: 8000,
                bytes: &message[start..end],
            })
        };
        for (start, end) in [(0, 0), (0, 54), (54, 116), (61, 62), (62, 70), (0, 8000)] {
            assert!(is_right(&message, start, end), "{start} to {end}");
        }
        message[56] ^= 1;
        assert!(!is_right(&message, 54, 116) && is_right(&message, 57, 116));
        message[7999] ^= 1;
        assert!(!is_right(&message, 800, 8000) && is_right(&message, 800, 7999));
    }
}
