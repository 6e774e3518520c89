#![doc = include_str!("../README.md")]

use std::time::{Duration, Instant};

use loader_core::device::DeviceError;
use loader_core::program::DeviceOptions;
use loader_cpu::{BuiltinImage, CpuDevice};
use rpc_device::procedure::{Echo, Increment};
use rpc_device::{
    Error, Opcode, Procedure, Program, Sink, call, entry, eprintln, exchange, grid, println,
};

/// How long the program runs.
pub const LENGTH: Duration = Duration::from_secs(2);
/// Blocks and threads of a block that it is made for.
pub const GRID: [u32; 2] = [2, 4];
/// Between two lines of the first thread.
const LINE: Duration = Duration::from_millis(400);

/// What no host serves, to show what becomes of it.
struct Nobody;

impl Procedure for Nobody {
    const OPCODE: Opcode = Opcode::user(0x2A);
    const NAME: &'static str = "nobody";
    type Request = u32;
    type Reply = u32;
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
    for i in 0..100 {
        wrong += u64::from(call::<Increment>(&(number + i))? != number + i + 1);
    }
    let message = vec![number as u8; (number % 2000) as usize];
    let mut count = Count::default();
    exchange::<Echo>(&message, &mut count)?;
    Ok(wrong + u64::from(count.0 != message.len()))
}

fn run(started: Instant) -> Result<u64, Error> {
    let first = grid::global_index() == 0;
    if first {
        println!("the demo runs for {} s on the CPU device", LENGTH.as_secs());
        if let Err(error) = call::<Nobody>(&1) {
            eprintln!("a call of an unknown opcode fails: {error}");
        }
    }
    let (mut rounds, mut wrong, mut said) = (0, 0, 0);
    while started.elapsed() < LENGTH {
        wrong += round(rounds)?;
        rounds += 1;
        let lines = started.elapsed().as_millis() / LINE.as_millis();
        if first && lines > said {
            said = lines;
            println!(
                "{:.1} s: thread 0 has made {rounds} rounds of 101 calls",
                started.elapsed().as_secs_f64()
            );
        }
    }
    Ok(wrong)
}

fn main(_program: &Program) -> i32 {
    match run(Instant::now()) {
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
