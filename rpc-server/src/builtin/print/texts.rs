//! Texts that are to be written together, as far as there is room.

use std::io;
use std::sync::Arc;

use crate::budget::Reservation;
use crate::conversation::Conversation;
use crate::output::{Output, Stream};

/// A text, and the room that it takes of what all messages share; none for what a message's own
/// reservation counts.
pub(super) struct Text {
    bytes: Vec<u8>,
    pub(super) room: Reservation,
}

impl Text {
    pub(super) const fn new(bytes: Vec<u8>, room: Reservation) -> Self {
        Self { bytes, room }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Appends `more` if there is room for it: whether there was.
    fn push(&mut self, more: &[u8]) -> bool {
        let fits = self.room.grow(more.len() as u64) && self.bytes.try_reserve(more.len()).is_ok();
        if fits {
            self.bytes.extend_from_slice(more);
        }
        fits
    }

    /// As [`push`](Self::push), unless the text becomes longer than `max`.
    pub(super) fn push_within(&mut self, more: &[u8], max: u64) -> bool {
        (self.bytes.len() + more.len()) as u64 <= max && self.push(more)
    }
}

/// What is to be written, in order: one text, or more where there is no room to join them.
#[derive(Default)]
pub(super) struct Texts(Vec<Text>);

impl Texts {
    /// Appends `text`, without a copy of what comes first.
    pub(super) fn put(&mut self, text: Text) {
        let empty = text.bytes.is_empty();
        if !empty && !self.0.last_mut().is_some_and(|last| last.push(&text.bytes)) {
            self.0.push(text);
        }
    }

    /// Writes all of it. Each text counts until it is written: whoever reads slowly is not sent more
    /// than there is room for.
    pub(super) async fn print(
        self,
        conversation: &mut Conversation,
        output: &Arc<dyn Output>,
        stream: Stream,
    ) -> io::Result<()> {
        for Text { bytes, room } in self.0 {
            conversation.print(output, stream, bytes).await?;
            drop(room);
        }
        Ok(())
    }
}
