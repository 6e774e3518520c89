//! Text from the device, each call's together.

use std::collections::HashMap;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, TryLockError};

use rpc_types::stream::PrintPart;
use rpc_types::{Opcode, Status};

use crate::budget::{Budget, Reservation};
use crate::conversation::Conversation;
use crate::handler::{End, Failure, Flow};
use crate::messages::Messages;
use crate::output::{Output, Stream, write};
use crate::shared::lock;
use crate::table::Table;

/// What an incomplete message costs besides its text.
const OVERHEAD: u64 = 128;

pub(super) fn install(table: &mut Table, output: Arc<dyn Output>) {
    for (opcode, name, stream) in [
        (Opcode::WRITE_TO_STDOUT, "write_to_stdout", Stream::Stdout),
        (Opcode::WRITE_TO_STDERR, "write_to_stderr", Stream::Stderr),
    ] {
        let output = Arc::clone(&output);
        table.conversation(opcode, name, move |conversation| {
            whole(conversation, Arc::clone(&output), stream)
        });
    }
    let to = Arc::clone(&output);
    let wordless = Arc::new(AtomicBool::new(false));
    table.conversation(Opcode::PANIC, "panic", move |conversation| {
        panicked(conversation, Arc::clone(&to), Arc::clone(&wordless))
    });
    let parts = Arc::new(Mutex::new(HashMap::new()));
    let (shared, to) = (Arc::clone(&parts), Arc::clone(&output));
    table.conversation(Opcode::PRINT_PART, "print_part", move |conversation| {
        joined(conversation, Arc::clone(&shared), Arc::clone(&to))
    });
    table.at_drain(move || flush(&parts, &*output));
}

/// The messages of all lanes, one after the other.
fn concatenated(messages: &Messages) -> Vec<u8> {
    let mut text = Vec::with_capacity(messages.iter().map(|(_, message)| message.len()).sum());
    for (_, message) in messages.iter() {
        text.extend_from_slice(message);
    }
    text
}

async fn whole(
    mut conversation: Conversation,
    output: Arc<dyn Output>,
    stream: Stream,
) -> Result<Flow, Failure> {
    let messages = conversation.recv_n().await?;
    conversation
        .print(&output, stream, concatenated(&messages))
        .await?;
    conversation
        .send(|lane| messages.of(lane).len() as u64)
        .await?;
    Ok(Flow::Continue)
}

async fn panicked(
    mut conversation: Conversation,
    output: Arc<dyn Output>,
    wordless: Arc<AtomicBool>,
) -> Result<Flow, Failure> {
    let mut text = Vec::new();
    match conversation.recv_n().await {
        Ok(messages) => {
            for (_, message) in messages.iter().filter(|(_, message)| !message.is_empty()) {
                text.extend_from_slice(message);
                if !message.ends_with(b"\n") {
                    text.push(b'\n');
                }
            }
        }
        // Whatever the message is, the run ends. What comes of the message's rest looks like
        // further panics.
        Err(_) if wordless.swap(true, Relaxed) => {}
        Err(failure) => {
            text = format!("the device panicked, and its message did not come: {failure}\n").into();
        }
    }
    // The end is more important than its message.
    let _ = conversation.print(&output, Stream::Stderr, text).await;
    Ok(Flow::End(End::PANIC))
}

/// Messages of which parts have come, by their number and stream.
type Parts = Mutex<HashMap<(u32, Stream), Joined>>;

struct Joined {
    text: Vec<u8>,
    reservation: Reservation,
}

impl Joined {
    /// Appends `text` unless the message becomes too long or all of them too much.
    fn push(&mut self, text: &[u8], max: u64) -> bool {
        let fits = (self.text.len() + text.len()) as u64 <= max
            && self.reservation.grow(text.len() as u64)
            && self.text.try_reserve(text.len()).is_ok();
        if fits {
            self.text.extend_from_slice(text);
        }
        fits
    }
}

/// Joins a part with those before it: what is to be written now.
fn join(
    parts: &Parts,
    (budget, max): (&Arc<Budget>, u64),
    key: (u32, Stream),
    text: &[u8],
    last: bool,
) -> Option<(Vec<u8>, Vec<u8>)> {
    let mut parts = lock(parts);
    if last {
        let before = parts.remove(&key).map(|joined| joined.text);
        return Some((before.unwrap_or_default(), text.to_vec()));
    }
    if let Some(joined) = parts.get_mut(&key) {
        if joined.push(text, max) {
            return None;
        }
        // More than may be kept: what is there goes out, the message goes on.
        let before = mem::take(&mut joined.text);
        parts.remove(&key);
        return Some((before, text.to_vec()));
    }
    let mut joined = Joined {
        text: Vec::new(),
        reservation: budget.reserve(),
    };
    if joined.reservation.grow(OVERHEAD) && joined.push(text, max) {
        parts.insert(key, joined);
        return None;
    }
    Some((Vec::new(), text.to_vec()))
}

async fn joined(
    mut conversation: Conversation,
    parts: Arc<Parts>,
    output: Arc<dyn Output>,
) -> Result<Flow, Failure> {
    let messages = conversation.recv_n().await?;
    let head = size_of::<PrintPart>();
    if messages.iter().any(|(_, message)| message.len() < head) {
        return Err(Status::INVALID.into());
    }
    let mut now = [Vec::new(), Vec::new()];
    for (_, message) in messages.iter() {
        let (start, text) = message.split_at(head);
        let PrintPart { message, flags } = bytemuck::pod_read_unaligned(start);
        let error = flags & PrintPart::STDERR != 0;
        let stream = if error {
            Stream::Stderr
        } else {
            Stream::Stdout
        };
        let last = flags & PrintPart::LAST != 0;
        let limits = (
            &conversation.context().budget,
            conversation.context().max_message,
        );
        if let Some((before, text)) = join(&parts, limits, (message, stream), text, last) {
            let now = &mut now[stream as usize];
            now.extend_from_slice(&before);
            now.extend_from_slice(&text);
        }
    }
    let [out, err] = now;
    conversation.print(&output, Stream::Stdout, out).await?;
    conversation.print(&output, Stream::Stderr, err).await?;
    conversation
        .send(|lane| (messages.of(lane).len() - head) as u64)
        .await?;
    Ok(Flow::Continue)
}

/// Writes out the messages whose last part never came.
fn flush(parts: &Parts, output: &dyn Output) {
    let mut all = match parts.try_lock() {
        Ok(mut parts) => mem::take(&mut *parts),
        Err(TryLockError::Poisoned(parts)) => mem::take(&mut *parts.into_inner()),
        // A poller is still joining: it has been told to end, and has not.
        Err(TryLockError::WouldBlock) => return,
    };
    let mut keys: Vec<_> = all.keys().copied().collect();
    keys.sort_unstable_by_key(|&(message, stream)| (message, stream as u8));
    for key in keys {
        if let Some(joined) = all.remove(&key) {
            // Nobody is left to be told.
            let _ = write(output, key.1, &joined.text);
        }
    }
    output.flush();
}
