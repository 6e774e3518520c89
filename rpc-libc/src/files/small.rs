//! What takes no more than a packet and gives no more than a word.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use rpc_server::{Conversation, Failure, Flow, Stream as Stdio, Table};
use rpc_types::Opcode;

use super::Files;
use super::operation::{Operation, Target, each};
use super::stream::{Stream, Whence};
use crate::console::Console;

/// C's `EOF`, and what else is told of a failure.
pub(super) const EOF: u64 = u64::MAX;

/// A request's words: the stream word and what else there is.
type Words = [u64; 3];

pub(super) fn install(table: &mut Table, files: &Arc<Files>) {
    word::<AtEnd>(table, files, (Opcode::FEOF, "feof"), 0);
    word::<HasFailed>(table, files, (Opcode::FERROR, "ferror"), 0);
    word::<Clear>(table, files, (Opcode::CLEARERR, "clearerr"), 0);
    word::<Seek>(table, files, (Opcode::FSEEK, "fseek"), 0);
    word::<Tell>(table, files, (Opcode::FTELL, "ftell"), 0);
    word::<Unget>(table, files, (Opcode::UNGETC, "ungetc"), 1);
    let files = Arc::clone(files);
    table.conversation(Opcode::FFLUSH, "fflush", move |conversation| {
        flush(conversation, Arc::clone(&files))
    });
}

/// Serves an opcode of words; the stream word is number `stream`.
fn word<O: Operation<Request = Words, Reply = u64>>(
    table: &mut Table,
    files: &Arc<Files>,
    (opcode, name): (Opcode, &'static str),
    stream: usize,
) {
    let files = Arc::clone(files);
    table.conversation(opcode, name, move |mut conversation| {
        let files = Arc::clone(&files);
        async move {
            let words = conversation.recv::<Words>().await?;
            let requests = words.iter().map(|(lane, words)| {
                let target = files.target(words[stream]);
                (lane, target, *words)
            });
            let requests = requests.collect();
            let replies = each::<O>(&files, &mut conversation, requests).await;
            answer(&mut conversation, &replies).await
        }
    });
}

/// Tells each lane its word.
pub(crate) async fn answer(
    conversation: &mut Conversation,
    replies: &[(u32, u64)],
) -> Result<Flow, Failure> {
    let mut replies = replies.iter();
    // Lanes come in order.
    conversation
        .send(|_| replies.next().map_or(0, |(_, reply)| *reply))
        .await?;
    Ok(Flow::Continue)
}

/// `feof`. Of no stream: it is at its end, so that who reads up to there stops.
struct AtEnd;

impl Operation for AtEnd {
    type Request = Words;
    type Reply = u64;

    fn is_quick(_: &Stream, _: &Words) -> bool {
        true
    }

    fn run(stream: &mut Stream, _: Words) -> u64 {
        stream.eof.into()
    }

    fn console(_: &Console, _: Stdio, _: &Words) -> u64 {
        0
    }

    fn failure() -> u64 {
        1
    }
}

/// `ferror`.
struct HasFailed;

impl Operation for HasFailed {
    type Request = Words;
    type Reply = u64;

    fn is_quick(_: &Stream, _: &Words) -> bool {
        true
    }

    fn run(stream: &mut Stream, _: Words) -> u64 {
        stream.error.into()
    }

    fn console(console: &Console, stream: Stdio, _: &Words) -> u64 {
        console.error(stream).load(Relaxed).into()
    }

    fn failure() -> u64 {
        1
    }
}

/// `clearerr`, which has no result.
struct Clear;

impl Operation for Clear {
    type Request = Words;
    type Reply = u64;

    fn is_quick(_: &Stream, _: &Words) -> bool {
        true
    }

    fn run(stream: &mut Stream, _: Words) -> u64 {
        stream.clear();
        0
    }

    fn console(console: &Console, stream: Stdio, _: &Words) -> u64 {
        console.error(stream).store(false, Relaxed);
        0
    }

    fn failure() -> u64 {
        0
    }
}

/// `fseek`.
struct Seek;

impl Operation for Seek {
    type Request = Words;
    type Reply = u64;

    fn is_quick(_: &Stream, _: &Words) -> bool {
        false
    }

    fn run(stream: &mut Stream, [_, offset, whence]: Words) -> u64 {
        let whence = match whence {
            0 => Whence::Start,
            1 => Whence::Current,
            2 => Whence::End,
            _ => return EOF,
        };
        if stream.seek(offset as i64, whence) {
            0
        } else {
            EOF
        }
    }

    fn failure() -> u64 {
        EOF
    }
}

/// `ftell`.
struct Tell;

impl Operation for Tell {
    type Request = Words;
    type Reply = u64;

    fn is_quick(_: &Stream, _: &Words) -> bool {
        false
    }

    fn run(stream: &mut Stream, _: Words) -> u64 {
        stream.tell().unwrap_or(EOF)
    }

    fn failure() -> u64 {
        EOF
    }
}

/// `ungetc`.
struct Unget;

impl Operation for Unget {
    type Request = Words;
    type Reply = u64;

    fn is_quick(stream: &Stream, _: &Words) -> bool {
        !stream.is_behind()
    }

    fn run(stream: &mut Stream, [character, ..]: Words) -> u64 {
        // An `int`; `EOF` is no character.
        if character as u32 != u32::MAX && stream.unget(character as u8) {
            (character as u8).into()
        } else {
            EOF
        }
    }

    fn failure() -> u64 {
        EOF
    }
}

/// `fflush` of one stream. The console's own is [`flush`]'s affair.
struct Flush;

impl Operation for Flush {
    type Request = ();
    type Reply = u64;

    fn is_quick(stream: &Stream, (): &()) -> bool {
        !stream.is_behind()
    }

    fn run(stream: &mut Stream, (): ()) -> u64 {
        if stream.flush() { 0 } else { EOF }
    }

    fn console(_: &Console, _: Stdio, (): &()) -> u64 {
        0
    }

    fn failure() -> u64 {
        EOF
    }
}

/// `fflush` of one stream among all: one that was closed meanwhile was flushed by that.
struct FlushAny;

impl Operation for FlushAny {
    type Request = ();
    type Reply = u64;

    fn is_quick(stream: &Stream, request: &()) -> bool {
        Flush::is_quick(stream, request)
    }

    fn run(stream: &mut Stream, request: ()) -> u64 {
        Flush::run(stream, request)
    }

    fn failure() -> u64 {
        0
    }
}

/// `fflush`: of all streams where the word is 0, as C's null pointer.
async fn flush(mut conversation: Conversation, files: Arc<Files>) -> Result<Flow, Failure> {
    let words = conversation.recv::<u64>().await?;
    let console = |word: &u64| *word == 0 || matches!(files.target(*word), Target::Console(_));
    if words.iter().any(|(_, word)| console(word)) {
        let output = Arc::clone(&files.console.output);
        conversation.blocking(move || output.flush()).await;
    }
    let mut replies = Vec::new();
    for (lane, word) in words.iter() {
        let flushed = if *word == 0 {
            let slots = files.slots.all().into_iter();
            let requests = slots.map(|slot| (lane, Target::File(slot), ())).collect();
            each::<FlushAny>(&files, &mut conversation, requests).await
        } else {
            let request = vec![(lane, files.target(*word), ())];
            each::<Flush>(&files, &mut conversation, request).await
        };
        let failed = flushed.iter().any(|(_, reply)| *reply != 0);
        replies.push((lane, if failed { EOF } else { 0 }));
    }
    answer(&mut conversation, &replies).await
}
