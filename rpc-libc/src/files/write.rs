//! `fwrite`.

use std::sync::Arc;

use rpc_server::{Conversation, Failure, Flow, Messages, Table};
use rpc_types::Opcode;

use super::Files;
use super::operation::{Operation, Target, each};
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
    /// What was made of that.
    Made(Vec<u8>),
}

impl Text {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Sent(messages, lane) => messages.of(*lane),
            Self::Made(text) => text,
        }
    }
}

struct Write;

impl Operation for Write {
    type Request = Text;
    type Reply = u64;

    fn is_quick(stream: &Stream, text: &Text) -> bool {
        stream.has_room(text.bytes().len())
    }

    fn run(stream: &mut Stream, text: Text) -> u64 {
        stream.write(text.bytes())
    }

    fn failure() -> u64 {
        0
    }
}

impl Streams for Files {
    fn write<'c>(
        &'c self,
        port: &'c mut Conversation,
        texts: Vec<(u32, u64, Vec<u8>)>,
    ) -> Written<'c> {
        let texts = texts.into_iter();
        let requests = texts.map(|(lane, file, text)| (lane, self.file(file), Text::Made(text)));
        // Where there is no file, not even nothing is written.
        let requests = requests.filter(|(_, file, _)| !matches!(file, Target::None));
        let requests = requests.collect();
        Box::pin(each::<Write>(self, port, requests))
    }
}

/// A file, a message; then how much of it was written.
async fn write(mut conversation: Conversation, files: Arc<Files>) -> Result<Flow, Failure> {
    let handles = conversation.recv::<u64>().await?;
    let messages = Arc::new(conversation.recv_n_lossy(u64::MAX).await?);
    let requests = handles.iter().map(|(lane, handle)| {
        let target = if messages.lost() >> lane & 1 == 0 {
            files.file(*handle)
        } else {
            Target::None
        };
        (lane, target, Text::Sent(Arc::clone(&messages), lane))
    });
    let requests = requests.collect();
    let replies = each::<Write>(&files, &mut conversation, requests).await;
    answer(&mut conversation, &replies).await
}
