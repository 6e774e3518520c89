//! What the child prints: drained at all times, whether or not anybody looks.

use std::fs::File;
use std::io::{self, Read};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use gpurpc_top::state::State;
use gpurpc_top::state::output::{KEPT, Stream};

/// Bytes that are read at once.
const CHUNK: usize = 64 << 10;

#[derive(Default)]
struct Queue {
    chunks: std::collections::VecDeque<(Stream, Vec<u8>)>,
    size: usize,
    lost: u64,
    open: usize,
}

impl Queue {
    fn push(&mut self, stream: Stream, bytes: &[u8]) {
        // Neighbours are one.
        match self.chunks.back_mut() {
            Some((same, last)) if *same == stream && last.len() < CHUNK => {
                last.extend_from_slice(bytes);
            }
            _ => self.chunks.push_back((stream, bytes.to_vec())),
        }
        self.size += bytes.len();
        while self.size > KEPT {
            let Some((_, old)) = self.chunks.pop_front() else {
                break;
            };
            self.size -= old.len();
            self.lost += old.len() as u64;
        }
    }
}

/// The child's outputs.
#[derive(Clone, Default)]
pub(crate) struct Pipes(Arc<Mutex<Queue>>);

impl Pipes {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads `pipe` to its end, on a thread of its own.
    pub(crate) fn drain(&self, stream: Stream, mut pipe: File) -> io::Result<()> {
        let pipes = self.clone();
        self.lock().open += 1;
        thread::Builder::new()
            .name("output".to_owned())
            .spawn(move || {
                let mut buffer = vec![0; CHUNK];
                loop {
                    match pipe.read(&mut buffer) {
                        Ok(0) => break,
                        Ok(n) => pipes.lock().push(stream, &buffer[..n]),
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                        Err(_) => break,
                    }
                }
                pipes.lock().open -= 1;
            })?;
        Ok(())
    }

    /// Hands over what has come; whether more may come.
    pub(crate) fn give(&self, state: &mut State) -> bool {
        let (chunks, lost, open) = {
            let mut queue = self.lock();
            queue.size = 0;
            let lost = std::mem::take(&mut queue.lost);
            (std::mem::take(&mut queue.chunks), lost, queue.open > 0)
        };
        if lost > 0 {
            state.lose_output(lost);
        }
        for (stream, bytes) in chunks {
            state.print(stream, &bytes);
        }
        open
    }
}
