//! `fopen` and `fclose`.

use std::path::PathBuf;
use std::sync::Arc;

use rpc_server::{Conversation, Failure, Flow, Messages, Table};
use rpc_types::Opcode;
use rpc_types::packet::PACKET_SIZE;

use super::Files;
use super::mode::Mode;
use super::slots::Slot;
use super::small::{EOF, answer};
use super::stream::Stream;
use crate::path::path;

pub(super) fn install(table: &mut Table, files: &Arc<Files>) {
    let to = Arc::clone(files);
    table.conversation(Opcode::OPEN_FILE, "open_file", move |conversation| {
        open(conversation, Arc::clone(&to))
    });
    let to = Arc::clone(files);
    table.conversation(Opcode::CLOSE_FILE, "close_file", move |conversation| {
        close(conversation, Arc::clone(&to))
    });
}

/// A path with its NUL, then a packet with the mode; the handle, or 0.
async fn open(mut conversation: Conversation, files: Arc<Files>) -> Result<Flow, Failure> {
    let paths = conversation.recv_n_lossy(u64::MAX).await?;
    let mut wanted = modes(&mut conversation, &paths).await?;
    let mut replies: Vec<_> = conversation.lanes().map(|lane| (lane, 0)).collect();
    // First what takes no longer than a disk does; then what waits for somebody.
    for waits in [false, true] {
        if wanted.is_empty() {
            break;
        }
        let (to, now) = (Arc::clone(&files), wanted);
        let work = move || open_all(&to, now, waits);
        let (opened, later) = if waits {
            conversation.waiting(work).await
        } else {
            conversation.blocking(work).await
        };
        wanted = later;
        for (lane, handle) in opened {
            if let Some((_, reply)) = replies.iter_mut().find(|(own, _)| *own == lane) {
                *reply = handle;
            }
        }
    }
    answer(&mut conversation, &replies).await
}

type Wanted = Vec<(u32, PathBuf, Mode)>;

/// What the lanes want to open whose path and mode are good.
async fn modes(conversation: &mut Conversation, paths: &Messages) -> Result<Wanted, Failure> {
    let mut wanted = Vec::new();
    conversation
        .recv_with(PACKET_SIZE, |lane, packet| {
            // A lost path is empty, and has no NUL.
            if let Some((path, mode)) = path(paths.of(lane)).zip(Mode::parse(packet.bytes())) {
                wanted.push((lane, path, mode));
            }
        })
        .await?;
    Ok(wanted)
}

/// Opens what can be opened: the handles, and what is left because it waits for somebody, unless
/// this thread `may_wait`.
fn open_all(files: &Files, wanted: Wanted, may_wait: bool) -> (Vec<(u32, u64)>, Wanted) {
    let (mut opened, mut left) = (Vec::new(), Vec::new());
    for (lane, path, mode) in wanted {
        if !may_wait && Mode::waits_for(&path) {
            left.push((lane, path, mode));
        } else if let Some(place) = files.slots.place()
            && let Ok(file) = mode.open(&path)
        {
            let stream = Stream::new(file, mode);
            opened.push((lane, files.slots.insert(stream, place)));
        }
    }
    (opened, left)
}

/// A handle; 0, or `EOF`. The handle is none from here on, also where text was lost.
async fn close(mut conversation: Conversation, files: Arc<Files>) -> Result<Flow, Failure> {
    let handles = conversation.recv::<u64>().await?;
    let mut replies = Vec::new();
    for (lane, handle) in handles.iter() {
        let reply = match files.slots.remove(*handle) {
            Some(slot) => close_one(&mut conversation, slot).await,
            None => EOF,
        };
        replies.push((lane, reply));
    }
    answer(&mut conversation, &replies).await
}

async fn close_one(conversation: &mut Conversation, slot: Arc<Slot>) -> u64 {
    let turn = slot.turn(conversation).await;
    let flush = turn.work(conversation, |stream| {
        let stream = stream.take();
        stream.is_some_and(|mut stream| stream.flush())
    });
    if flush.await { 0 } else { EOF }
}
