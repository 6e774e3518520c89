//! A snapshot as bytes. Its sequence number and its time are not among them: those of the slot
//! count, so that the same bytes serve for as long as nothing happens.

use crate::codec::{Decoder, Encoder, Nonsense};
use crate::histogram::{BUCKETS, Histogram};
use crate::snapshot::{
    Event, OpcodeStats, PollerState, PollerStats, PortState, PortStats, RunEnd, RunInfo, Snapshot,
};

/// Ports that a layout has room for.
const MOST_PORTS: usize = 1 << 16;
/// More handlers than there are opcodes.
const MOST_OPCODES: usize = 1 << 15;
const MOST_POLLERS: usize = 1 << 10;
const MOST_EVENTS: usize = 1 << 16;
const MOST_WORDS: usize = 1 << 16;

/// Appends `snapshot` to `bytes`.
pub(crate) fn encode(snapshot: &Snapshot, bytes: &mut Vec<u8>) {
    let mut to = Encoder(bytes);
    run(&snapshot.run, &mut to);
    match &snapshot.end {
        None => to.number(0_u8),
        Some(end) => {
            to.number(1_u8);
            to.number(end.code);
            to.number(end.cancelled);
        }
    }
    to.number(snapshot.dropped_events);
    to.count(snapshot.opcodes.len());
    for opcode in &snapshot.opcodes {
        to.option(opcode.opcode);
        to.text(&opcode.name);
        for number in numbers(opcode) {
            to.number(number);
        }
        histogram(&opcode.latency, &mut to);
        histogram(&opcode.wait, &mut to);
    }
    ports(&snapshot.ports, &mut to);
    to.count(snapshot.pollers.len());
    for poller in &snapshot.pollers {
        to.number(poller.state as u8);
        to.number(poller.scans);
        to.number(poller.calls);
        to.number(poller.longest_gap_ns);
        to.number(poller.dropped_events);
    }
    to.count(snapshot.events.len());
    for event in &snapshot.events {
        event_to(event, &mut to);
    }
}

fn run(run: &RunInfo, to: &mut Encoder<'_>) {
    to.number(run.pid);
    to.text(&run.loader);
    to.count(run.command.len());
    for word in &run.command {
        to.text(word);
    }
    to.text(&run.device);
    to.text(&run.layout);
    to.number(run.lanes);
    for number in run.blocks.into_iter().chain(run.threads) {
        to.number(number);
    }
    to.number(run.started_unix_ms);
    to.option(run.rank);
}

fn numbers(opcode: &OpcodeStats) -> [u64; 6] {
    let OpcodeStats {
        calls,
        lanes,
        bytes_in,
        bytes_out,
        errors,
        server_ns,
        ..
    } = *opcode;
    [calls, lanes, bytes_in, bytes_out, errors, server_ns]
}

fn histogram(histogram: &Histogram, to: &mut Encoder<'_>) {
    to.number(histogram.below());
    to.number(histogram.above());
    to.number(histogram.max_ns());
    to.count(histogram.filled().count());
    let mut next = 0;
    for (index, count) in histogram.filled() {
        to.count(index - next);
        to.number(count);
        next = index + 1;
    }
}

/// How many there are, then those that were ever in use, each behind the number of ports passed
/// over.
fn ports(ports: &[PortStats], to: &mut Encoder<'_>) {
    to.count(ports.len());
    let used = || {
        let numbered = ports.iter().enumerate();
        numbered.filter(|(_, port)| **port != PortStats::default())
    };
    to.count(used().count());
    let mut next = 0;
    for (index, port) in used() {
        to.count(index - next);
        to.number(port.state as u8);
        to.number(port.since_ns);
        to.option(port.opcode);
        to.number(port.mask);
        to.number(port.calls);
        to.number(port.bytes_in);
        to.number(port.bytes_out);
        to.number(port.latency_ns);
        next = index + 1;
    }
}

fn event_to(event: &Event, to: &mut Encoder<'_>) {
    to.number(event.time_ns);
    to.number(event.poller);
    to.number(event.port);
    to.number(event.opcode);
    to.number(event.mask);
    to.number(event.latency_ns);
    to.number(event.wait_ns);
    to.number(event.bytes_in);
    to.number(event.bytes_out);
    to.number(event.status);
    to.number(event.sampled);
}

/// The snapshot that `bytes` are, without sequence and time.
pub(crate) fn decode(bytes: &[u8]) -> Result<Snapshot, Nonsense> {
    let mut from = Decoder(bytes);
    let run = read_run(&mut from)?;
    let end = match from.number()? {
        0 => None,
        1 => Some(RunEnd {
            code: from.small()?,
            cancelled: from.number()?,
        }),
        _ => return Err(Nonsense),
    };
    let dropped_events = from.number()?;
    let snapshot = Snapshot {
        run,
        sequence: 0,
        time_ns: 0,
        end,
        opcodes: list(&mut from, MOST_OPCODES, read_opcode)?,
        ports: read_ports(&mut from)?,
        pollers: list(&mut from, MOST_POLLERS, read_poller)?,
        events: list(&mut from, MOST_EVENTS, read_event)?,
        dropped_events,
    };
    if from.0.is_empty() {
        Ok(snapshot)
    } else {
        Err(Nonsense)
    }
}

/// Things that take at least one byte each: a wrong count finds its end before it takes memory.
fn list<T>(
    from: &mut Decoder<'_>,
    most: usize,
    read: impl Fn(&mut Decoder<'_>) -> Result<T, Nonsense>,
) -> Result<Vec<T>, Nonsense> {
    let count = from.count(most)?;
    let mut things = Vec::new();
    for _ in 0..count {
        things.push(read(from)?);
    }
    Ok(things)
}

fn read_run(from: &mut Decoder<'_>) -> Result<RunInfo, Nonsense> {
    Ok(RunInfo {
        pid: from.small()?,
        loader: from.text()?,
        command: list(from, MOST_WORDS, read_text)?,
        device: from.text()?,
        layout: from.text()?,
        lanes: from.small()?,
        blocks: [from.small()?, from.small()?, from.small()?],
        threads: [from.small()?, from.small()?, from.small()?],
        started_unix_ms: from.number()?,
        rank: from.option()?,
    })
}

fn read_text(from: &mut Decoder<'_>) -> Result<String, Nonsense> {
    from.text()
}

fn read_opcode(from: &mut Decoder<'_>) -> Result<OpcodeStats, Nonsense> {
    Ok(OpcodeStats {
        opcode: from.option()?,
        name: from.text()?,
        calls: from.number()?,
        lanes: from.number()?,
        bytes_in: from.number()?,
        bytes_out: from.number()?,
        errors: from.number()?,
        server_ns: from.number()?,
        latency: read_histogram(from)?,
        wait: read_histogram(from)?,
    })
}

fn read_histogram(from: &mut Decoder<'_>) -> Result<Histogram, Nonsense> {
    let outside = (from.number()?, from.number()?, from.number()?);
    let mut next: usize = 0;
    let filled = list(from, BUCKETS, |from| {
        Ok((from.small::<usize>()?, from.number()?))
    })?;
    let mut numbered = Vec::with_capacity(filled.len());
    for (gap, count) in filled {
        let index = next.checked_add(gap).ok_or(Nonsense)?;
        next = index.checked_add(1).ok_or(Nonsense)?;
        numbered.push((index, count));
    }
    Histogram::from_parts(outside, &numbered).ok_or(Nonsense)
}

fn read_ports(from: &mut Decoder<'_>) -> Result<Vec<PortStats>, Nonsense> {
    let total: usize = from.small()?;
    if total > MOST_PORTS {
        return Err(Nonsense);
    }
    let used = from.count(total)?;
    let mut ports = vec![PortStats::default(); total];
    let mut next: usize = 0;
    for _ in 0..used {
        let index = next.checked_add(from.small()?).ok_or(Nonsense)?;
        let port = ports.get_mut(index).ok_or(Nonsense)?;
        *port = PortStats {
            state: match from.number()? {
                0 => PortState::Idle,
                1 => PortState::Waiting,
                2 => PortState::InHandler,
                3 => PortState::MidExchange,
                _ => return Err(Nonsense),
            },
            since_ns: from.number()?,
            opcode: from.option()?,
            mask: from.number()?,
            calls: from.number()?,
            bytes_in: from.number()?,
            bytes_out: from.number()?,
            latency_ns: from.number()?,
        };
        next = index + 1;
    }
    Ok(ports)
}

fn read_poller(from: &mut Decoder<'_>) -> Result<PollerStats, Nonsense> {
    Ok(PollerStats {
        state: match from.number()? {
            0 => PollerState::Looking,
            1 => PollerState::InHandler,
            2 => PollerState::Parked,
            _ => return Err(Nonsense),
        },
        scans: from.number()?,
        calls: from.number()?,
        longest_gap_ns: from.number()?,
        dropped_events: from.number()?,
    })
}

fn read_event(from: &mut Decoder<'_>) -> Result<Event, Nonsense> {
    Ok(Event {
        time_ns: from.number()?,
        poller: from.small()?,
        port: from.small()?,
        opcode: from.small()?,
        mask: from.number()?,
        latency_ns: from.number()?,
        wait_ns: from.number()?,
        bytes_in: from.number()?,
        bytes_out: from.number()?,
        status: from.small()?,
        sampled: from.small()?,
    })
}
