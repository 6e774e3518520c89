//! What one flag costs there and back between a GPU thread and a CPU thread: the floor that calls
//! are compared to.
//!
//! Both flags lie in pinned host memory, in pages of their own, and each side only polls one and
//! writes the other. Nothing is ordered and nothing is carried. `pingpong [ROUNDS] [DEVICE]`.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use loader_core::device::{Device, DeviceError, Grid, Kernel};
use loader_nv::{CudaDevice, Options};

/// `_start(rounds, ping, pong, _)`: waits for each number in `ping` and repeats it in `pong`.
const PTX: &str = "
.version 6.0
.target sm_70
.address_size 64
.visible .entry _start(.param .u32 rounds, .param .u64 ping, .param .u64 pong, .param .u64 unused)
{
    .reg .pred %p;
    .reg .b32 %n, %seen, %last;
    .reg .b64 %ping, %pong;
    ld.param.u32 %last, [rounds];
    ld.param.u64 %ping, [ping];
    ld.param.u64 %pong, [pong];
    mov.b32 %n, 1;
WAIT:
    ld.relaxed.sys.u32 %seen, [%ping];
    setp.ne.u32 %p, %seen, %n;
    @%p bra WAIT;
    st.relaxed.sys.u32 [%pong], %n;
    add.u32 %n, %n, 1;
    setp.le.u32 %p, %n, %last;
    @%p bra WAIT;
    ret;
}
";

const PAGE: usize = 4096;
/// Most rounds before those that are measured.
const WARM_UP: u32 = 1000;
const REPETITIONS: usize = 5;

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u32>());
    let (Ok(rounds), Ok(device)) = (
        arguments.next().unwrap_or(Ok(100_000)),
        arguments.next().unwrap_or(Ok(0)),
    ) else {
        eprintln!("pingpong: usage: pingpong [ROUNDS] [DEVICE]");
        std::process::exit(125);
    };
    let rounds = rounds.clamp(1, 100_000_000);
    match measure(rounds, device) {
        Ok(mut times) => {
            times.sort_by(f64::total_cmp);
            println!(
                "pingpong: median {:.3} us ({:.3}..{:.3}) of {rounds}",
                times[times.len() / 2],
                times[0],
                times[times.len() - 1],
            );
        }
        Err(reason) => {
            eprintln!("pingpong: {reason}");
            std::process::exit(125);
        }
    }
}

/// Microseconds a round, for each repetition.
fn measure(rounds: u32, device: u32) -> Result<Vec<f64>, DeviceError> {
    loader_nv::prepare_environment()?;
    let device = CudaDevice::open(&Options {
        device,
        stack_size: None,
        jit_level: None,
    })?;
    device.load(PTX.as_bytes())?;
    let flags = device.allocate_shared(2 * PAGE)?;
    // SAFETY: two flags at the start of two pages of memory that lives as long as `device`,
    // aligned and zeroed; host and device access them as 32-bit atoms only.
    let (ping, pong) = unsafe { (flag(flags.host), flag(flags.host.add(PAGE))) };
    let warm_up = WARM_UP.min(rounds);
    let mut times = Vec::new();
    for _ in 0..REPETITIONS {
        ping.store(0, Ordering::Relaxed);
        pong.store(0, Ordering::Relaxed);
        let last = warm_up + rounds;
        let kernel = Kernel::Start {
            argc: last as i32,
            argv: flags.device,
            envp: flags.device + PAGE as u64,
            ret: 0,
        };
        device.launch(&kernel, Grid::ONE)?;
        play(&device, ping, pong, 1..=warm_up)?;
        let begun = Instant::now();
        play(&device, ping, pong, warm_up + 1..=last)?;
        times.push(begun.elapsed().as_secs_f64() * 1e6 / f64::from(rounds));
        while !device.finished()? {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    Ok(times)
}

/// # Safety
/// `address` is aligned and stays valid for the whole program's use of it, as an atom only.
unsafe fn flag<'a>(address: NonNull<u8>) -> &'a AtomicU32 {
    // SAFETY: the caller's promise.
    unsafe { AtomicU32::from_ptr(address.as_ptr().cast()) }
}

fn play(
    device: &CudaDevice,
    ping: &AtomicU32,
    pong: &AtomicU32,
    numbers: std::ops::RangeInclusive<u32>,
) -> Result<(), DeviceError> {
    for number in numbers {
        ping.store(number, Ordering::Relaxed);
        let mut polls = 0_u64;
        while pong.load(Ordering::Relaxed) != number {
            std::hint::spin_loop();
            polls += 1;
            // Seldom enough to cost nothing: a kernel that died answers no more.
            if polls.is_multiple_of(1 << 20)
                && device.finished()?
                && pong.load(Ordering::Relaxed) != number
            {
                return Err(DeviceError::Fault(format!(
                    "it ended before round {number}"
                )));
            }
        }
    }
    Ok(())
}
