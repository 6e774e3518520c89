//! The exchange, which is that of LLVM's libc.
//!
//! | from | what |
//! |---|---|
//! | device | the handle of the stream, in a packet; only where there is one |
//! | device | the format and its 0, as a message |
//! | host | how many bytes of arguments it asks for |
//! | device | the arguments, as a message |
//! | host | 0, and the device's address of a string, or 0 |
//! | device | unless all lanes got 0: the string and its 0, as a message, an empty one where it was 0; and again |
//! | host | the result, and 0 |
//!
//! Lanes have formats of their own: one that has got all its strings, or has failed, goes on with
//! the others and is asked for nothing.

use std::pin::Pin;
use std::sync::Arc;

use rpc_server::{
    Conversation, Failure, Flow, Messages, Output, PerLane, Reservation, Stream, Table,
};
use rpc_types::Opcode;

use super::Error;
use super::arguments::{Form, block_size};
use super::draft::Draft;
use crate::console::{self, Console, QUICK, bytes};

/// Of each lane, lowest first, how many bytes were written.
pub type Written<'c> = Pin<Box<dyn Future<Output = Vec<(u32, u64)>> + Send + 'c>>;

/// Where the text goes that a device prints to streams which it has opened.
pub trait Streams: Send + Sync {
    /// Writes texts, with the lane of each, lowest first, and the handle of its stream: what the
    /// device has sent, any number. A text may be empty. What is written only in part is a failure of
    /// its lane, and so is a lane that the result leaves out: its stream cannot be written, or is none.
    fn write<'c>(
        &'c self,
        port: &'c mut Conversation,
        texts: Vec<(u32, u64, Vec<u8>)>,
    ) -> Written<'c>;
}

/// No streams: every handle is a wrong one.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoStreams;

impl Streams for NoStreams {
    fn write<'c>(&'c self, _: &'c mut Conversation, _: Vec<(u32, u64, Vec<u8>)>) -> Written<'c> {
        Box::pin(async { Vec::new() })
    }
}

/// Registers `printf` in all its forms: the standard streams' text goes to `output`, that of others
/// to `streams`.
pub fn install_with(table: &mut Table, output: &Arc<dyn Output>, streams: &Arc<dyn Streams>) {
    install(table, &Arc::new(Console::new(Arc::clone(output))), streams);
}

/// As [`install_with`], where the console is that of other services as well.
pub(crate) fn install(table: &mut Table, console: &Arc<Console>, streams: &Arc<dyn Streams>) {
    for (form, opcodes) in [
        (
            Form::Natural,
            [
                Opcode::PRINTF_TO_STDOUT,
                Opcode::PRINTF_TO_STDERR,
                Opcode::PRINTF_TO_STREAM,
            ],
        ),
        (
            Form::Packed,
            [
                Opcode::PRINTF_TO_STDOUT_PACKED,
                Opcode::PRINTF_TO_STDERR_PACKED,
                Opcode::PRINTF_TO_STREAM_PACKED,
            ],
        ),
    ] {
        let to = [
            To::Console(Arc::clone(console), Stream::Stdout),
            To::Console(Arc::clone(console), Stream::Stderr),
            To::Streams(Arc::clone(streams)),
        ];
        for (opcode, to) in opcodes.into_iter().zip(to) {
            let name = opcode.name().unwrap_or("printf");
            table.conversation(opcode, name, move |conversation| {
                printf(conversation, form, to.clone())
            });
        }
    }
}

#[derive(Clone)]
enum To {
    Console(Arc<Console>, Stream),
    Streams(Arc<dyn Streams>),
}

/// What C's functions return when they fail.
const FAILED: i64 = -1;

/// What there is of each lane that takes part, lowest first.
type Lanes<T> = Vec<(u32, Result<T, Error>)>;
type Drafts = Lanes<Draft<Reservation>>;

/// What `lane` has, if nothing went wrong there.
fn of<T>(lanes: &Lanes<T>, lane: u32) -> Option<&T> {
    let place = lanes.binary_search_by_key(&lane, |(lane, _)| *lane).ok()?;
    lanes[place].1.as_ref().ok()
}

/// Whatever goes wrong in a lane is told by its result only, so that every step is taken with all
/// lanes in any case.
async fn printf(mut port: Conversation, form: Form, to: To) -> Result<Flow, Failure> {
    let handles = match &to {
        To::Console(..) => None,
        To::Streams(_) => Some(port.recv::<u64>().await?),
    };
    let formats = port.recv_n_lossy(u64::MAX).await?;
    let mut slow = bytes(&formats) > QUICK;
    let (formats, sizes) = run(&mut port, slow, (formats, form), measure).await;
    port.send(|lane| of(&sizes, lane).map_or(0, |size| *size as u64))
        .await?;
    let blocks = port.recv_n_lossy(u64::MAX).await?;
    slow |= bytes(&blocks) > QUICK;
    let asked = Asked {
        form,
        formats,
        sizes,
        blocks,
    };

    let mut drafts = draft(&mut port, &mut slow, asked).await;
    while drafts
        .iter()
        .any(|(_, draft)| wanted(draft.as_ref().ok()) != 0)
    {
        port.send(|lane| [0, wanted(of(&drafts, lane))]).await?;
        let strings = port.recv_n_lossy(u64::MAX).await?;
        slow |= bytes(&strings) > QUICK;
        drafts = run(&mut port, slow, (drafts, strings), supply).await;
    }
    let texts = run(&mut port, slow, drafts, finish).await;

    let results = match to {
        To::Console(console, stream) => print(&mut port, slow, (&console, stream), texts).await,
        To::Streams(streams) => store(&mut port, &*streams, handles.as_ref(), texts).await,
    };
    port.send(|lane| [of(&results, lane).copied().unwrap_or(FAILED), 0])
        .await?;
    Ok(Flow::Continue)
}

/// Runs `f`, by a thread that nobody waits for if it is slow.
async fn run<S, R>(port: &mut Conversation, slow: bool, state: S, f: fn(S) -> R) -> R
where
    S: Send + 'static,
    R: Send + 'static,
{
    if slow {
        port.blocking(move || f(state)).await
    } else {
        f(state)
    }
}

/// What `lane` has sent, without its NUL.
fn c_string(messages: &Messages, lane: u32) -> Result<&[u8], Error> {
    whole(messages, lane)?
        .split(|&byte| byte == 0)
        .next()
        .filter(|string| string.len() < messages.of(lane).len())
        .ok_or(Error::Unterminated)
}

/// What `lane` has sent, unless it was too much.
fn whole(messages: &Messages, lane: u32) -> Result<&[u8], Error> {
    if messages.lost() >> lane & 1 != 0 {
        return Err(Error::TooLong);
    }
    Ok(messages.of(lane))
}

/// The sizes of the blocks that the formats ask for.
fn measure((formats, form): (Messages, Form)) -> (Messages, Lanes<usize>) {
    let size = |lane| Ok(block_size(c_string(&formats, lane)?, form));
    let sizes = formats.iter().map(|(lane, _)| (lane, size(lane))).collect();
    (formats, sizes)
}

/// What the lanes want to be printed.
struct Asked {
    form: Form,
    formats: Messages,
    sizes: Lanes<usize>,
    blocks: Messages,
}

impl Asked {
    /// Texts of at most `limit` bytes each.
    fn draft(&self, limit: u64, rooms: Vec<Reservation>) -> Drafts {
        let draft = |((lane, size), room): (&(u32, Result<usize, Error>), Reservation)| {
            let draft = || {
                (*size)?;
                let format = c_string(&self.formats, *lane)?;
                let block = whole(&self.blocks, *lane)?;
                Draft::new(format, block, self.form, (limit, room))
            };
            (*lane, draft())
        };
        self.sizes.iter().zip(rooms).map(draft).collect()
    }
}

async fn draft(port: &mut Conversation, slow: &mut bool, asked: Asked) -> Drafts {
    let limit = port.max_message();
    let rooms = |port: &Conversation| port.lanes().map(|_| port.reserve()).collect();
    if !*slow {
        let quick = QUICK / u64::from(port.mask().count_ones().max(1));
        let mut drafts = asked.draft(quick.min(limit), rooms(port));
        *slow = drafts
            .iter()
            .any(|(_, draft)| matches!(draft, Err(Error::TooLong)));
        if !*slow {
            for (_, draft) in &mut drafts {
                if let Ok(draft) = draft {
                    draft.set_limit(limit);
                }
            }
            return drafts;
        }
    }
    let rooms = rooms(port);
    port.blocking(move || asked.draft(limit, rooms)).await
}

/// The device's address of the string that is to come next, 0 if none is.
fn wanted(draft: Option<&Draft<Reservation>>) -> u64 {
    draft.and_then(Draft::wanted).unwrap_or(0)
}

fn supply((mut drafts, strings): (Drafts, Messages)) -> Drafts {
    for (lane, result) in &mut drafts {
        if let Ok(draft) = result
            && draft.wanted().is_some()
        {
            let supplied = c_string(&strings, *lane).and_then(|string| draft.supply(string));
            if let Err(error) = supplied {
                *result = Err(error);
            }
        }
    }
    drafts
}

/// A text, and what is reserved for it.
type Text = (Vec<u8>, Reservation);

fn finish(drafts: Drafts) -> Lanes<Text> {
    let finish = |(lane, draft): (u32, Result<Draft<_>, _>)| (lane, draft.and_then(Draft::finish));
    drafts.into_iter().map(finish).collect()
}

/// Writes all texts at once, one after the other; gives the lanes' results.
async fn print(
    port: &mut Conversation,
    slow: bool,
    (console, stream): (&Console, Stream),
    texts: Lanes<Text>,
) -> Lanes<i64> {
    let room = port.reserve();
    let (text, mut results) = run(port, slow, (texts, room), join).await;
    let (text, _room) = text.unzip();
    if !console.write(port, stream, text).await {
        for (_, result) in &mut results {
            if result.as_ref().is_ok_and(|printed| *printed > 0) {
                *result = Ok(FAILED);
            }
        }
    }
    results
}

/// All texts one after the other, if there is `room` for them; and each one's length.
fn join((texts, mut room): (Lanes<Text>, Reservation)) -> (Option<Text>, Lanes<i64>) {
    let (mut all, mut results) = (Vec::new(), Vec::new());
    for (lane, text) in texts {
        let result = text.map(|text| {
            let length = text.0.len() as i64;
            if length > 0 {
                all.push(text);
            }
            length
        });
        results.push((lane, result));
    }
    // One alone needs no copy.
    let text = if all.len() == 1 {
        all.pop()
    } else {
        let parts: Vec<_> = all.iter().map(|(text, _)| &text[..]).collect();
        console::join(&parts, &mut room).map(|text| (text, room))
    };
    (text, results)
}

/// Writes each text to its stream; gives the lanes' results.
async fn store(
    port: &mut Conversation,
    streams: &dyn Streams,
    handles: Option<&PerLane<u64>>,
    texts: Lanes<Text>,
) -> Lanes<i64> {
    let (mut all, mut results, mut rooms) = (Vec::new(), Vec::new(), Vec::new());
    for (lane, text) in texts {
        let handle = handles.and_then(|handles| handles.get(lane));
        let result = text.map(|(text, room)| {
            rooms.push(room);
            let length = text.len() as i64;
            all.push((lane, handle.copied().unwrap_or(0), text));
            length
        });
        results.push((lane, result));
    }
    let written = streams.write(port, all).await;
    for (lane, result) in &mut results {
        let written = written.iter().find(|(own, _)| own == lane);
        if let Ok(length) = result
            && written.is_none_or(|(_, written)| *written != *length as u64)
        {
            *length = FAILED;
        }
    }
    results
}
