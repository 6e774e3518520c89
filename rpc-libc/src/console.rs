//! The program's standard output and standard error, as streams of C.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rpc_server::{Conversation, Failure, Flow, Output, Stream, Table};
use rpc_types::Opcode;

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

    /// Writes `text` at once: whether that went well. The user is told if not.
    pub(crate) async fn write(
        &self,
        conversation: &mut Conversation,
        stream: Stream,
        text: Vec<u8>,
    ) -> bool {
        let result = conversation.print(&self.output, stream, text).await;
        let Err(error) = result else {
            return true;
        };
        self.error(stream).store(true, Relaxed);
        conversation.note(Failure::Io(error));
        false
    }
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

/// A message, then how much of it was written: all or nothing. What the lanes of a call write
/// stays together, lowest lane first.
async fn write(
    mut conversation: Conversation,
    console: Arc<Console>,
    (stream, newline): (Stream, bool),
) -> Result<Flow, Failure> {
    let messages = conversation.recv_n_lossy(u64::MAX).await?;
    let lost = |lane: u32| messages.lost() >> lane & 1 != 0;
    let mut text = Vec::new();
    for (lane, message) in messages.iter() {
        text.extend_from_slice(message);
        if newline && !lost(lane) {
            text.push(b'\n');
        }
    }
    let written = console.write(&mut conversation, stream, text).await;
    conversation
        .send(|lane| {
            if !written || lost(lane) {
                0
            } else {
                messages.of(lane).len() as u64 + u64::from(newline)
            }
        })
        .await?;
    Ok(Flow::Continue)
}
