//! `fread` and `fgets`.

use std::sync::Arc;

use rpc_server::{Conversation, Failure, Flow, Reservation, Stream as Stdio, Table};
use rpc_types::Opcode;

use super::Files;
use super::operation::{Operation, each, refuse};
use super::stream::Stream;
use crate::console::Console;

pub(super) fn install(table: &mut Table, files: &Arc<Files>) {
    let to = Arc::clone(files);
    table.conversation(
        Opcode::READ_FROM_STREAM,
        "read_from_stream",
        move |conversation| bytes(conversation, Arc::clone(&to)),
    );
    let to = Arc::clone(files);
    table.conversation(Opcode::READ_FGETS, "read_fgets", move |conversation| {
        line(conversation, Arc::clone(&to))
    });
}

/// How much is wanted, and what it takes from the messages in flight until the lanes have it.
type Request = (u64, Reservation);
type Reply = (Vec<u8>, Option<Reservation>);

/// `fread`.
struct Bytes;

impl Operation for Bytes {
    type Request = Request;
    type Reply = Reply;

    fn is_quick(stream: &Stream, (size, _): &Request) -> bool {
        *size <= stream.held() && !stream.is_behind()
    }

    fn run(stream: &mut Stream, (size, mut room): Request) -> Reply {
        (stream.read(size, &mut room), Some(room))
    }

    fn console(console: &Console, stream: Stdio, (size, _): &Request) -> Reply {
        if *size > 0 {
            refuse(console, stream);
        }
        Self::failure()
    }

    fn failure() -> Reply {
        (Vec::new(), None)
    }
}

/// `fgets`; a null pointer is no byte, not even the NUL.
struct Line;

impl Operation for Line {
    type Request = Request;
    type Reply = Reply;

    fn is_quick(stream: &Stream, (count, _): &Request) -> bool {
        stream.holds_line(*count) && !stream.is_behind()
    }

    fn run(stream: &mut Stream, (count, mut room): Request) -> Reply {
        let line = stream.line(count, &mut room);
        (line.unwrap_or_default(), Some(room))
    }

    fn console(console: &Console, stream: Stdio, _: &Request) -> Reply {
        refuse(console, stream);
        Self::failure()
    }

    fn failure() -> Reply {
        (Vec::new(), None)
    }
}

async fn read<O: Operation<Request = Request, Reply = Reply>>(
    conversation: &mut Conversation,
    files: &Files,
    most: impl Fn(u64) -> u64,
) -> Result<Vec<(u32, Reply)>, Failure> {
    let words = conversation.recv::<[u64; 2]>().await?;
    let mut requests = Vec::new();
    for (lane, [size, stream]) in words.iter() {
        let request = (most(*size), conversation.reserve());
        requests.push((lane, files.target(*stream), request));
    }
    Ok(each::<O>(files, conversation, requests).await)
}

fn of(replies: &[(u32, Reply)], lane: u32) -> &[u8] {
    let own = replies.iter().find(|(own, _)| *own == lane);
    own.map_or(&[], |(_, (bytes, _))| bytes)
}

/// Size and stream; the bytes, then how many they are. No more than the longest message: who wants
/// more reads again.
async fn bytes(mut conversation: Conversation, files: Arc<Files>) -> Result<Flow, Failure> {
    let max = conversation.max_message();
    let replies = read::<Bytes>(&mut conversation, &files, |size| size.min(max)).await?;
    conversation.send_n(|lane| of(&replies, lane)).await?;
    conversation
        .send(|lane| of(&replies, lane).len() as u64)
        .await?;
    Ok(Flow::Continue)
}

/// Count and stream; the line with its NUL. The count is an `int`: less than 1 is nothing.
async fn line(mut conversation: Conversation, files: Arc<Files>) -> Result<Flow, Failure> {
    let max = conversation.max_message();
    let most = |count: u64| {
        if count as i64 <= 0 { 0 } else { count.min(max) }
    };
    let replies = read::<Line>(&mut conversation, &files, most).await?;
    conversation.send_n(|lane| of(&replies, lane)).await?;
    Ok(Flow::Continue)
}
