#![doc = include_str!("../README.md")]

use std::thread;
use std::time::{Duration, Instant};

use loader_core::device::DeviceError;
use loader_core::program::DeviceOptions;
use loader_cpu::{BuiltinImage, CpuDevice};
use rpc_device::procedure::{Echo, Increment};
use rpc_device::{
    Error, Opcode, Procedure, Program, Sink, call, entry, eprintln, exchange, grid, println,
};
use rpc_server::{Flow, Table};

/// How long the program runs, unless it is told to run on.
pub const LENGTH: Duration = Duration::from_secs(2);
/// The program's argument that makes it run until it is ended.
pub const WATCHED: &str = "watched";
/// Blocks and threads of a block that it is made for.
pub const GRID: [u32; 2] = [2, 4];
/// Between two lines of the first thread.
const LINE: Duration = Duration::from_millis(400);
/// Between two rounds: a run that is watched is not to take a core for itself.
const REST: Duration = Duration::from_millis(5);
/// How long the slow handler takes.
const SLOW: Duration = Duration::from_millis(40);
/// Between two calls of it, and between two of an opcode that nobody handles.
const RARE: Duration = Duration::from_millis(500);

/// What no host serves, to show what becomes of it.
struct Nobody;

impl Procedure for Nobody {
    const OPCODE: Opcode = Opcode::user(0x2A);
    const NAME: &'static str = "nobody";
    type Request = u32;
    type Reply = u32;
}

/// What the host takes its time for.
struct Slow;

impl Procedure for Slow {
    const OPCODE: Opcode = Opcode::user(1);
    const NAME: &'static str = "slow_handler";
    type Request = u64;
    type Reply = u64;
}

/// Adds the demo's own handlers to those that every program has.
pub fn install(table: &mut Table) {
    table.conversation(Slow::OPCODE, Slow::NAME, |mut conversation| async move {
        let numbers = conversation.recv::<u64>().await?;
        // Not in the poller, which has others to serve.
        conversation.blocking(|| thread::sleep(SLOW)).await;
        let doubled = |lane| numbers.get(lane).map_or(0, |n| n.wrapping_mul(2));
        conversation.send(doubled).await?;
        Ok(Flow::Continue)
    });
}

/// Counts the bytes that come back.
#[derive(Default)]
struct Count(usize);

impl Sink for Count {
    fn begin(&mut self, _lane: u32, _length: u64) -> bool {
        true
    }

    fn chunk(&mut self, _lane: u32, bytes: &[u8]) {
        self.0 += bytes.len();
    }
}

/// One round of calls; the number of wrong answers.
fn round(number: u64) -> Result<u64, Error> {
    let mut wrong = 0;
    // The traffic comes in waves.
    let calls = 20 + number % 200;
    for i in 0..calls {
        wrong += u64::from(call::<Increment>(&(number + i))? != number + i + 1);
    }
    let message = vec![number as u8; (number % 2000) as usize];
    let mut count = Count::default();
    exchange::<Echo>(&message, &mut count)?;
    Ok(wrong + u64::from(count.0 != message.len()))
}

/// Whether `every` has passed since `last`, which is then now.
fn is_due(last: &mut Instant, every: Duration) -> bool {
    let due = last.elapsed() >= every;
    if due {
        *last = Instant::now();
    }
    due
}

fn run(started: Instant, watched: bool) -> Result<u64, Error> {
    let index = grid::global_index();
    let first = index == 0;
    if first {
        if watched {
            println!("the demo runs on the CPU device until you quit");
        } else {
            println!("the demo runs for {} s on the CPU device", LENGTH.as_secs());
        }
        if let Err(error) = call::<Nobody>(&1) {
            eprintln!("a call of an unknown opcode fails: {error}");
        }
    }
    let (mut rounds, mut wrong) = (0, 0);
    let [mut said, mut slow] = [started; 2];
    while watched || started.elapsed() < LENGTH {
        wrong += round(rounds)?;
        rounds += 1;
        if first && is_due(&mut said, LINE) {
            println!(
                "{:.1} s: thread 0 has made {rounds} rounds of calls",
                started.elapsed().as_secs_f64()
            );
        }
        if index == 1 && is_due(&mut slow, RARE) {
            wrong += u64::from(call::<Slow>(&rounds)? != rounds * 2);
        }
        thread::sleep(REST);
    }
    Ok(wrong)
}

fn main(program: &Program) -> i32 {
    let watched = program
        .arg(1)
        .is_some_and(|argument| argument.to_string() == WATCHED);
    match run(Instant::now(), watched) {
        Ok(0) => 0,
        Ok(wrong) => {
            eprintln!("{wrong} answers were wrong");
            1
        }
        Err(error) => {
            eprintln!("a call failed: {error}");
            1
        }
    }
}

entry!(main);

/// The CPU device with this program.
///
/// # Errors
/// As [`CpuDevice::open`].
pub fn device(options: &DeviceOptions) -> Result<CpuDevice, DeviceError> {
    let image = BuiltinImage {
        client: Some(&raw mut rpc_device::client::__gpurpc_client),
        begin: Some(__gpurpc_begin),
        start: Some(__gpurpc_start),
        end: Some(__gpurpc_end),
    };
    // SAFETY: the kernels are those that `entry!` makes, which catch what unwinds, and the client
    // is the one that they use; it is a static, and accessed by nobody else.
    unsafe { CpuDevice::builtin(options, image) }
}
