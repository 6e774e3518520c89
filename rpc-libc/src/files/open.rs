//! `fopen` and `fclose`.

use std::path::{Path, PathBuf};
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
    let wanted = modes(&mut conversation, &paths).await?;
    let mut replies: Vec<_> = conversation.lanes().map(|lane| (lane, 0)).collect();
    if wanted.is_empty() {
        return answer(&mut conversation, &replies).await;
    }
    // First what takes no longer than a disk does.
    let to = Arc::clone(&files);
    let at_once = conversation.blocking(move || open_at_once(&to, wanted));
    let (mut opened, later) = at_once.await;
    // Then what waits for somebody, who may be another lane of this call: each has its thread.
    let works = later.into_iter().map(|(lane, path, mode)| {
        let to = Arc::clone(&files);
        move || (lane, open_one(&to, &path, mode))
    });
    let works = works.collect();
    opened.extend(conversation.waiting_all(works).await);
    for (lane, handle) in opened {
        if let Some((_, reply)) = replies.iter_mut().find(|(own, _)| *own == lane) {
            *reply = handle;
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

/// Opens what waits for nobody: the handles, and what is left.
fn open_at_once(files: &Files, wanted: Wanted) -> (Vec<(u32, u64)>, Wanted) {
    let (later, now): (Wanted, Wanted) =
        (wanted.into_iter()).partition(|(_, path, _)| Mode::waits_for(path));
    let open = |(lane, path, mode): (u32, PathBuf, Mode)| (lane, open_one(files, &path, mode));
    (now.into_iter().map(open).collect(), later)
}

/// A handle, or 0.
fn open_one(files: &Files, path: &Path, mode: Mode) -> u64 {
    if let Some(place) = files.slots.place()
        && let Ok(file) = mode.open(path)
    {
        files.slots.insert(Stream::new(file, mode), place)
    } else {
        0
    }
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
        stream.is_some_and(Stream::close)
    });
    if flush.await { 0 } else { EOF }
}
