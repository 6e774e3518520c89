//! What one lane does with one stream, and how the lanes of a call come to their streams.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use rpc_server::{Conversation, Stream as Stdio};

use super::Files;
use super::slots::Slot;
use super::stream::Stream;
use crate::console::Console;

/// What a lane's stream word means.
#[derive(Clone, Debug)]
pub(super) enum Target {
    /// A file, or standard input.
    File(Arc<Slot>),
    /// A stream of text that is never kept back.
    Console(Stdio),
    /// No stream: `EBADF`.
    None,
}

/// Something to do with a stream.
pub(super) trait Operation: 'static {
    /// What a lane asks.
    type Request: Send + 'static;
    /// What it is told.
    type Reply: Send + 'static;

    /// Whether the file itself is not needed: then the poller does it.
    fn is_quick(stream: &Stream, request: &Self::Request) -> bool;
    /// Does it.
    fn run(stream: &mut Stream, request: Self::Request) -> Self::Reply;
    /// The opcode's failure value.
    fn failure() -> Self::Reply;
    /// Does it with standard output or standard error, of which most cannot be done.
    fn console(_: &Console, _: Stdio, _: &Self::Request) -> Self::Reply {
        Self::failure()
    }
}

/// Sets the error indicator, as what cannot be done with the stream does.
pub(super) fn refuse(console: &Console, stream: Stdio) {
    console.error(stream).store(true, Relaxed);
}

/// Does `O` for each lane, lowest first: each waits for its own stream alone, and no thread waits.
pub(super) async fn each<O: Operation>(
    files: &Files,
    conversation: &mut Conversation,
    requests: Vec<(u32, Target, O::Request)>,
) -> Vec<(u32, O::Reply)> {
    let mut replies = Vec::with_capacity(requests.len());
    let mut requests = requests.into_iter().peekable();
    while let Some((lane, target, request)) = requests.next() {
        match target {
            Target::None => replies.push((lane, O::failure())),
            Target::Console(to) => {
                replies.push((lane, O::console(&files.console, to, &request)));
            }
            Target::File(slot) => {
                // Lanes that have their stream in common take one turn together.
                let mut group = vec![(lane, request)];
                let same = |target: &Target| matches!(target, Target::File(other) if Arc::ptr_eq(other, &slot));
                while let Some((lane, _, request)) = requests.next_if(|(_, t, _)| same(t)) {
                    group.push((lane, request));
                }
                together::<O>(conversation, slot, group, &mut replies).await;
            }
        }
    }
    replies
}

/// Does `O` for lanes that have their stream in common.
async fn together<O: Operation>(
    conversation: &mut Conversation,
    slot: Arc<Slot>,
    group: Vec<(u32, O::Request)>,
    replies: &mut Vec<(u32, O::Reply)>,
) {
    let turn = slot.turn(conversation).await;
    let mut group = group.into_iter().peekable();
    turn.with(|stream| {
        while let Some((lane, request)) = group.next_if(|(_, request)| {
            let stream = stream.as_ref();
            stream.is_none_or(|stream| O::is_quick(stream, request))
        }) {
            replies.push((lane, run::<O>(stream, request)));
        }
    });
    if group.peek().is_none() {
        return;
    }
    let rest = turn.work(conversation, move |stream| {
        let run = |(lane, request)| (lane, run::<O>(stream, request));
        group.map(run).collect::<Vec<_>>()
    });
    replies.extend(rest.await);
}

/// Does `O`, unless the stream was closed while the call waited.
fn run<O: Operation>(stream: &mut Option<Stream>, request: O::Request) -> O::Reply {
    match stream {
        Some(stream) => O::run(stream, request),
        None => O::failure(),
    }
}
