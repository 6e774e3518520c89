//! The program's standard output and standard error, as streams of C.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rpc_server::{Conversation, Failure, Flow, Messages, Output, Reservation, Stream, Table};
use rpc_types::{Opcode, Status};

use crate::files::answer;

/// What a poller does at once, in bytes of texts, or of what they are made of; more is left to a
/// thread that nobody waits for.
pub(crate) const QUICK: u64 = 32 << 10;

/// Where the device's text goes, and whether that has failed.
pub(crate) struct Console {
    pub(crate) output: Arc<dyn Output>,
    failed: [AtomicBool; 2],
}

impl Console {
    pub(crate) fn new(output: Arc<dyn Output>) -> Self {
        Self {
            output,
            failed: [const { AtomicBool::new(false) }; 2],
        }
    }

    /// `ferror` of the stream. Relaxed: an indicator, nothing is published by it.
    pub(crate) fn error(&self, stream: Stream) -> &AtomicBool {
        &self.failed[stream as usize]
    }

    /// Writes `text` at once, where there was room for it: whether that went well. The user is told
    /// if not.
    pub(crate) async fn write(
        &self,
        conversation: &mut Conversation,
        stream: Stream,
        text: Option<Vec<u8>>,
    ) -> bool {
        let result = match text {
            Some(text) => conversation
                .print(&self.output, stream, text)
                .await
                .map_err(Failure::Io),
            None => Err(Status::TOO_LONG.into()),
        };
        let Err(failure) = result else {
            return true;
        };
        self.error(stream).store(true, Relaxed);
        conversation.note(failure);
        false
    }
}

/// `parts` one after the other, if there is `room` for them.
pub(crate) fn join(parts: &[&[u8]], room: &mut Reservation) -> Option<Vec<u8>> {
    let length = parts.iter().map(|part| part.len()).sum();
    let mut text = Vec::new();
    if !room.grow(length as u64) || text.try_reserve_exact(length).is_err() {
        return None;
    }
    for part in parts {
        text.extend_from_slice(part);
    }
    Some(text)
}

pub(crate) fn install(table: &mut Table, console: &Arc<Console>) {
    for (opcode, name, stream, newline) in [
        (
            Opcode::WRITE_TO_STDOUT,
            "write_to_stdout",
            Stream::Stdout,
            false,
        ),
        (
            Opcode::WRITE_TO_STDERR,
            "write_to_stderr",
            Stream::Stderr,
            false,
        ),
        (
            Opcode::WRITE_TO_STDOUT_NEWLINE,
            "write_to_stdout_newline",
            Stream::Stdout,
            true,
        ),
    ] {
        let console = Arc::clone(console);
        table.conversation(opcode, name, move |conversation| {
            write(conversation, Arc::clone(&console), (stream, newline))
        });
    }
}

/// Bytes of all lanes.
pub(crate) fn bytes(messages: &Messages) -> u64 {
    let length = |(_, message): (u32, &Vec<u8>)| message.len() as u64;
    messages.iter().map(length).sum()
}

type Held = (Messages, Reservation);

/// One text of what the lanes have sent, if there is room for it, and how much of it is each lane's.
fn gather(
    (mut messages, mut room): Held,
    newline: bool,
) -> (Held, Option<Vec<u8>>, Vec<(u32, u64)>) {
    let (mut parts, mut lengths): (Vec<&[u8]>, Vec<_>) = (Vec::new(), Vec::new());
    for (lane, message) in messages.iter() {
        let lost = messages.lost() >> lane & 1 != 0;
        let end: &[u8] = if newline && !lost { b"\n" } else { b"" };
        parts.extend([&message[..], end]);
        lengths.push((lane, (message.len() + end.len()) as u64));
    }
    let text = match (&parts[..], &lengths[..]) {
        // The usual case, which needs no copy.
        ([_, b""], [(lane, _)]) => Some(messages.take(*lane)),
        _ => join(&parts, &mut room),
    };
    ((messages, room), text, lengths)
}

/// A message, then how much of it was written: all or nothing. What the lanes of a call write
/// stays together, lowest lane first.
async fn write(
    mut conversation: Conversation,
    console: Arc<Console>,
    (stream, newline): (Stream, bool),
) -> Result<Flow, Failure> {
    let messages = conversation.recv_n_lossy(u64::MAX).await?;
    if messages.lost() != 0 {
        console.error(stream).store(true, Relaxed);
    }
    let room = conversation.reserve();
    let copied = newline || conversation.mask().count_ones() > 1;
    // What messages and text take is in use until the text is written.
    let (_held, text, mut replies) = if copied && bytes(&messages) > QUICK {
        conversation
            .blocking(move || gather((messages, room), newline))
            .await
    } else {
        gather((messages, room), newline)
    };
    if !console.write(&mut conversation, stream, text).await {
        for (_, reply) in &mut replies {
            *reply = 0;
        }
    }
    answer(&mut conversation, &replies).await
}
