//! What a handler that makes or prints text needs.

use std::io;
use std::sync::Arc;

use super::Conversation;
use crate::budget::Reservation;
use crate::output::{Output, Stream, write};

impl Conversation {
    /// Writes `text` at once, on a thread that may wait if it may have to.
    ///
    /// # Errors
    /// When not all of it could be written.
    pub async fn print(
        &mut self,
        output: &Arc<dyn Output>,
        stream: Stream,
        text: Vec<u8>,
    ) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        // Behind what is to be written before it, such as the report of what it complains about.
        let behind = || self.context.text[stream as usize].is_busy();
        if output.may_wait(stream, text.len()) || behind() {
            let output = Arc::clone(output);
            // Where nobody reads, files and the other stream go on.
            let context = Arc::clone(&self.context);
            let print = move || write(&*output, stream, &text);
            context.text[stream as usize].run(print).await
        } else {
            write(&**output, stream, &text)
        }
    }

    /// The longest message of a lane in bytes: see
    /// [`Options::max_message`](crate::Options::max_message).
    pub fn max_message(&self) -> u64 {
        self.context.max_message
    }

    /// An empty reservation from what all messages in flight share: for what a handler makes of
    /// them and keeps.
    pub fn reserve(&self) -> Reservation {
        self.context.budget.reserve()
    }
}
