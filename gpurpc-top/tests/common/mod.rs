//! A made-up run, and frames as text.
#![allow(dead_code, unreachable_pub, reason = "each test takes what it needs")]

use std::time::Duration;

use gpurpc_top::palette::Palette;
use gpurpc_top::source::{Health, Look};
use gpurpc_top::state::{Settings, State, Watching};
use gpurpc_top::view::Dashboard;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use rpc_stats::{Event, OpcodeStats, PollerStats, PortState, PortStats, RunEnd, RunInfo, Snapshot};

pub const SECOND: u64 = 1_000_000_000;

fn opcode(number: Option<u32>, name: &str, calls: u64, base_ns: u64) -> OpcodeStats {
    let mut stats = OpcodeStats {
        opcode: number,
        name: name.to_owned(),
        calls,
        lanes: calls * 32,
        bytes_in: calls * 256,
        bytes_out: calls * 128,
        errors: if number.is_none() { calls } else { 0 },
        server_ns: calls * base_ns,
        ..OpcodeStats::default()
    };
    for i in 0..calls.min(500) {
        stats.latency.record(base_ns + base_ns * (i * i % 97) / 50);
        stats.wait.record(base_ns / 3 + i);
    }
    if calls > 100 {
        stats.latency.record(20);
        stats.latency.record(base_ns * 40);
    }
    stats
}

/// A run with `ports` ports after `tick` tenths of a second.
pub fn snapshot(ports: usize, tick: u64) -> Snapshot {
    let time_ns = 3 * SECOND + tick * SECOND / 10;
    let port = |n: usize| {
        let (state, since_ns) = match n % 16 {
            1 => (PortState::Waiting, time_ns - 3000),
            4 => (PortState::InHandler, time_ns - 5_000_000),
            6 => (PortState::MidExchange, time_ns - 40_000),
            9 if n < 64 => (PortState::Waiting, time_ns - 2 * SECOND),
            _ => (PortState::Idle, 0),
        };
        PortStats {
            state,
            since_ns,
            opcode: Some(if n.is_multiple_of(2) {
                0x6300_8000
            } else {
                0x7500_0001
            }),
            mask: 0xFFFF_FFFF >> (n % 32),
            calls: 1000 + n as u64,
            bytes_in: 8000,
            bytes_out: 4000,
            latency_ns: 1500,
        }
    };
    let event = |n: u64| Event {
        time_ns: time_ns - (20 - n) * 100_000,
        poller: (n % 2) as u32,
        port: (n % ports.max(1) as u64) as u32,
        opcode: if n.is_multiple_of(3) {
            0x7500_0001
        } else {
            0x6300_8000
        },
        mask: 0xFF,
        latency_ns: 1000 + n * 333,
        wait_ns: 200 * n,
        bytes_in: 64,
        bytes_out: 64,
        status: u32::from(n == 7) * 2,
        sampled: 1 + (n % 3) as u32,
    };
    Snapshot {
        run: RunInfo {
            pid: 4711,
            loader: "gpurpc-top".to_owned(),
            command: ["target/images/increment.so", "50000"]
                .map(str::to_owned)
                .to_vec(),
            device: "CPU device".to_owned(),
            layout: "line".to_owned(),
            lanes: 32,
            blocks: [8, 1, 1],
            threads: [64, 1, 1],
            started_unix_ms: 1_700_000_000_000,
            rank: None,
        },
        sequence: tick + 1,
        time_ns,
        end: None,
        opcodes: vec![
            opcode(Some(0x6300_0000), "noop", 0, 0),
            opcode(
                Some(0x6300_8000),
                "test_increment",
                1_234_000 + tick * 1000,
                1500,
            ),
            opcode(Some(0x6300_8002), "test_stream", 4321 + tick * 7, 24_000),
            opcode(Some(0x6300_0100), "print_part", 12, 8000),
            opcode(Some(0x7500_0001), "slow_handler", 40 + tick, 21_000_000),
            opcode(None, "unknown", 3, 700),
        ],
        ports: (0..ports).map(port).collect(),
        pollers: vec![PollerStats::default(); 2],
        events: (0..20).map(event).collect(),
        dropped_events: 12,
    }
}

/// The state of a program that was started and has published two of them, a second apart.
pub fn state(ports: usize) -> State {
    watched(Watching::Child, ports)
}

pub fn watched(watching: Watching, ports: usize) -> State {
    let mut state = State::new(Settings::default(), watching);
    for (tick, second) in [(0, 0), (10, 1)] {
        state.observe(Duration::from_secs(second), look(snapshot(ports, tick)));
    }
    state
}

pub fn look(snapshot: Snapshot) -> Look {
    Look {
        snapshot: Some(snapshot),
        health: Health::Alive,
    }
}

pub fn ended(mut snapshot: Snapshot, code: u8) -> Snapshot {
    snapshot.end = Some(RunEnd { code, cancelled: 0 });
    snapshot.sequence += 1;
    snapshot
}

/// The frame.
pub fn frame(state: &mut State, palette: Palette, width: u16, height: u16) -> Buffer {
    state.resize(width, height);
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    let dashboard = Dashboard { state, palette };
    terminal
        .draw(|frame| frame.render_widget(dashboard, frame.area()))
        .unwrap();
    terminal.backend().buffer().clone()
}

/// The text of a frame.
pub fn text(buffer: &Buffer) -> String {
    let mut text = String::new();
    for y in 0..buffer.area.height {
        let mut line = String::new();
        for x in 0..buffer.area.width {
            line.push_str(buffer[(x, y)].symbol());
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// The styles of a frame: for each line where which begins.
pub fn styles(buffer: &Buffer) -> String {
    use std::fmt::Write;
    let mut text = String::new();
    for y in 0..buffer.area.height {
        let mut last = None;
        let mut line = String::new();
        for x in 0..buffer.area.width {
            let cell = &buffer[(x, y)];
            let style = (cell.fg, cell.bg, cell.modifier);
            if last != Some(style) {
                let plain = cell.modifier.is_empty();
                let modifier = if plain {
                    String::new()
                } else {
                    format!(" {:?}", cell.modifier)
                };
                write!(line, " {x}:{}{modifier}", cell.fg).unwrap();
                last = Some(style);
            }
        }
        writeln!(text, "{y:>2}{line}").unwrap();
    }
    text
}
