//! `fwrite`.

use std::sync::Arc;

use rpc_server::{Conversation, Failure, Flow, Messages, Table};
use rpc_types::Opcode;

use super::Files;
use super::operation::{Operation, each};
use super::small::answer;
use super::stream::Stream;
use crate::printf::{Streams, Written};

pub(super) fn install(table: &mut Table, files: &Arc<Files>) {
    let files = Arc::clone(files);
    table.conversation(
        Opcode::WRITE_TO_STREAM,
        "write_to_stream",
        move |conversation| write(conversation, Arc::clone(&files)),
    );
}

/// What a lane writes.
enum Text {
    /// What it has sent.
    Sent(Arc<Messages>, u32),
    /// Something that there was no room for.
    Lost,
}

struct Write;

impl Operation for Write {
    type Request = Text;
    type Reply = u64;

    fn is_quick(stream: &Stream, text: &Text) -> bool {
        match text {
            Text::Sent(messages, lane) => stream.has_room(messages.of(*lane).len()),
            Text::Lost => true,
        }
    }

    fn run(stream: &mut Stream, text: Text) -> u64 {
        match text {
            Text::Sent(messages, lane) => stream.write(messages.of(lane)),
            Text::Lost => {
                stream.error = true;
                0
            }
        }
    }

    fn failure() -> u64 {
        0
    }
}

/// `fprintf`, when its text is made: `None` where nothing can be written, not even an empty text.
struct Print;

impl Operation for Print {
    type Request = Vec<u8>;
    type Reply = Option<u64>;

    fn is_quick(stream: &Stream, text: &Vec<u8>) -> bool {
        stream.has_room(text.len())
    }

    fn run(stream: &mut Stream, text: Vec<u8>) -> Option<u64> {
        stream.begin_write().then(|| stream.write(&text))
    }

    fn failure() -> Option<u64> {
        None
    }
}

impl Streams for Files {
    fn write<'c>(
        &'c self,
        port: &'c mut Conversation,
        texts: Vec<(u32, u64, Vec<u8>)>,
    ) -> Written<'c> {
        let texts = texts.into_iter();
        let requests = texts.map(|(lane, file, text)| (lane, self.file(file), text));
        let requests = requests.collect();
        Box::pin(async move {
            let replies = each::<Print>(self, port, requests).await.into_iter();
            replies
                .filter_map(|(lane, written)| Some((lane, written?)))
                .collect()
        })
    }
}

/// A file, a message; then how much of it was written.
async fn write(mut conversation: Conversation, files: Arc<Files>) -> Result<Flow, Failure> {
    let handles = conversation.recv::<u64>().await?;
    let messages = Arc::new(conversation.recv_n_lossy(u64::MAX).await?);
    let requests = handles.iter().map(|(lane, handle)| {
        let text = if messages.lost() >> lane & 1 == 0 {
            Text::Sent(Arc::clone(&messages), lane)
        } else {
            Text::Lost
        };
        (lane, files.file(*handle), text)
    });
    let requests = requests.collect();
    let replies = each::<Write>(&files, &mut conversation, requests).await;
    answer(&mut conversation, &replies).await
}
