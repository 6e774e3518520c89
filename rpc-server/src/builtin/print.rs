//! Text from the device, each call's together.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, TryLockError};

use rpc_types::stream::PrintPart;
use rpc_types::{Opcode, Status};

use crate::budget::Budget;
use crate::conversation::Conversation;
use crate::handler::{End, Failure, Flow};
use crate::messages::{Messages, PerLane};
use crate::output::{Output, Stream, write};
use crate::shared::lock;
use crate::table::Table;

use texts::{Text, Texts};

mod texts;

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

async fn whole(
    mut conversation: Conversation,
    output: Arc<dyn Output>,
    stream: Stream,
) -> Result<Flow, Failure> {
    let mut messages = conversation.recv_n().await?;
    let lengths = lengths(&messages, 0);
    let mut texts = Texts::default();
    for (lane, _) in lengths.iter() {
        texts.put(Text::new(messages.take(lane), conversation.reserve()));
    }
    texts.print(&mut conversation, &output, stream).await?;
    conversation.send(|lane| lengths.of(lane)).await?;
    Ok(Flow::Continue)
}

async fn panicked(
    mut conversation: Conversation,
    output: Arc<dyn Output>,
    wordless: Arc<AtomicBool>,
) -> Result<Flow, Failure> {
    let mut texts = Texts::default();
    let received = conversation.recv_n().await;
    let mut put = |text| texts.put(Text::new(text, conversation.reserve()));
    // What is received counts until it is written.
    let _messages = match received {
        Ok(mut messages) => {
            for lane in conversation.lanes() {
                let message = messages.take(lane);
                let ends = message.is_empty() || message.ends_with(b"\n");
                put(message);
                if !ends {
                    put(b"\n".to_vec());
                }
            }
            Some(messages)
        }
        // Whatever the message is, the run ends. What comes of the message's rest looks like
        // further panics.
        Err(_) if wordless.swap(true, Relaxed) => None,
        Err(failure) => {
            let words = format!("the device panicked, and its message did not come: {failure}\n");
            put(words.into());
            None
        }
    };
    // The end is more important than its message.
    let _ = (texts.print(&mut conversation, &output, Stream::Stderr)).await;
    Ok(Flow::End(End::PANIC))
}

/// The length of each lane's text, which stands behind the first `head` bytes of its message.
fn lengths(messages: &Messages, head: usize) -> PerLane<u64> {
    let lengths = messages.iter();
    PerLane::new(
        lengths
            .map(|(lane, message)| (lane, message.len().saturating_sub(head) as u64))
            .collect(),
    )
}

/// Messages of which parts have come, by their number and stream.
type Parts = Mutex<HashMap<(u32, Stream), Text>>;

/// Joins a part with those before it: what is to be written now goes to `now`.
fn join(
    parts: &Parts,
    (budget, max): (&Arc<Budget>, u64),
    key: (u32, Stream),
    (text, last): (Vec<u8>, bool),
    now: &mut Texts,
) {
    let mut parts = lock(parts);
    let before = parts.entry(key);
    if !last {
        match before {
            Entry::Occupied(mut before) => {
                if before.get_mut().push_within(&text, max) {
                    return;
                }
                // More than may be kept: what is there goes out, the message goes on.
                now.put(before.remove());
            }
            Entry::Vacant(place) => {
                let mut first = Text::new(Vec::new(), budget.reserve());
                if first.room.grow(OVERHEAD) && first.push_within(&text, max) {
                    place.insert(first);
                    return;
                }
            }
        }
    } else if let Entry::Occupied(before) = before {
        now.put(before.remove());
    }
    now.put(Text::new(text, budget.reserve()));
}

async fn joined(
    mut conversation: Conversation,
    parts: Arc<Parts>,
    output: Arc<dyn Output>,
) -> Result<Flow, Failure> {
    let mut messages = conversation.recv_n().await?;
    let head = size_of::<PrintPart>();
    if messages.iter().any(|(_, message)| message.len() < head) {
        return Err(Status::INVALID.into());
    }
    let lengths = lengths(&messages, head);
    let mut now = [Texts::default(), Texts::default()];
    for (lane, _) in lengths.iter() {
        let mut text = messages.take(lane);
        let PrintPart { message, flags } = bytemuck::pod_read_unaligned(&text[..head]);
        text.drain(..head);
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
        let now = &mut now[stream as usize];
        join(&parts, limits, (message, stream), (text, last), now);
    }
    let [out, err] = now;
    out.print(&mut conversation, &output, Stream::Stdout)
        .await?;
    err.print(&mut conversation, &output, Stream::Stderr)
        .await?;
    conversation.send(|lane| lengths.of(lane)).await?;
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
            let _ = write(output, key.1, joined.bytes());
        }
    }
    output.flush();
}
