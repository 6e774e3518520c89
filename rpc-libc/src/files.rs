//! Streams by handle, and what C's `<stdio.h>` does with them.
//!
//! A handle is a place in a table and how often the place was used: what is forged, or was closed,
//! is no stream. Each stream is one call's at a time, in the order of asking, and a call that waits
//! for its turn holds up no thread. What needs only a stream's buffers the poller does; what needs
//! the disk a thread of the pool; what waits for the other end of a pipe, or for standard input, a
//! thread that may wait.

use std::fmt;
use std::fs::File;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rpc_server::{Stream as Stdio, Table};

use crate::console::Console;

mod mode;
mod open;
mod operation;
mod read;
mod room;
mod slots;
mod small;
mod stream;
mod turn;
mod write;

use mode::Mode;
use operation::Target;
use slots::{Slot, Slots};
pub(crate) use small::answer;
use stream::Stream;
pub(crate) use turn::lock;

/// All streams of a device's program.
pub(crate) struct Files {
    slots: Slots,
    stdin: Arc<Slot>,
    console: Arc<Console>,
}

impl Files {
    /// No file but standard input, if there is one.
    pub(crate) fn new(console: Arc<Console>, stdin: Option<File>) -> Self {
        let stdin = stdin.map(|file| Stream::new(file, Mode::READ));
        Self {
            slots: Slots::default(),
            stdin: Slot::new(stdin, None),
            console,
        }
    }

    /// What a handle means where it comes without a tag.
    fn file(&self, handle: u64) -> Target {
        self.slots.get(handle).map_or(Target::None, Target::File)
    }

    /// What a stream word means: its low two bits are a tag.
    fn target(&self, word: u64) -> Target {
        match word & 3 {
            0 => self.file(word),
            1 => Target::File(Arc::clone(&self.stdin)),
            2 => Target::Console(Stdio::Stdout),
            _ => Target::Console(Stdio::Stderr),
        }
    }

    /// Writes out what waits in every stream, as the end of a program does, and leaves to others what
    /// of standard input was read ahead only. A stream that a thread still has is given a while,
    /// unless it waits for somebody.
    fn finish_all(&self) {
        let mut slots = self.slots.all();
        slots.push(Arc::clone(&self.stdin));
        slots.sort_by_key(|slot| slot.waits);
        for _ in 0..PATIENCE {
            slots.retain(|slot| !slot.try_finish());
            if slots.iter().all(|slot| slot.waits) {
                break;
            }
            thread::sleep(NAP);
        }
    }
}

/// How often, at the end, streams in use are looked at.
const PATIENCE: u32 = 100;
const NAP: Duration = Duration::from_millis(1);

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Files")
            .field("slots", &self.slots)
            .finish_non_exhaustive()
    }
}

pub(crate) fn install(table: &mut Table, files: &Arc<Files>) {
    open::install(table, files);
    read::install(table, files);
    write::install(table, files);
    small::install(table, files);
    let files = Arc::clone(files);
    table.at_drain(move || files.finish_all());
}
