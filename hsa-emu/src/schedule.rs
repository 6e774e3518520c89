//! Runs the waves of a kernel on worker threads.
//!
//! A wave runs for a quantum and goes to the end of the line. It goes early if it sleeps or fails an
//! atomic operation, since then others can help it along. When all that are left only wait, the worker
//! gives its core away, for longer and longer, so that the host's threads get to answer.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread;
use std::time::Duration;

use crate::fault::{Cause, Fault};
use crate::kernel::Launch;
use crate::memory::Space;
use crate::options::Options;
use crate::random::Random;
use crate::time;
use crate::wave::{Pause, Wave};

/// A run of fewer instructions than this that ends in a wait was only a look at what is waited for.
const GLANCE: u64 = 400;
/// Looks of all waves before the worker sleeps rather than yields.
const YIELDS: u32 = 200;
/// The shortest and longest sleep of a worker.
const SLEEPS: [Duration; 2] = [Duration::from_micros(20), Duration::from_micros(500)];

struct State {
    ready: VecDeque<Box<Wave>>,
    /// Workgroups not yet begun.
    next_group: u64,
    /// Waves that exist.
    resident: u32,
    /// Looks in a row that found nothing.
    glances: u32,
    fault: Option<Box<Fault>>,
    random: Option<Random>,
}

/// One kernel at work.
struct Schedule<'a> {
    launch: &'a Launch,
    space: &'a RwLock<Space>,
    options: &'a Options,
    stop: &'a AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
}

/// What a worker does next.
enum Next {
    Run(Box<Wave>, u32),
    Begin(u64),
    Leave,
}

/// Runs a kernel to its end, a fault, or until `stop` is set.
///
/// # Errors
/// The fault.
pub(crate) fn run(
    launch: &Launch,
    space: &RwLock<Space>,
    options: &Options,
    stop: &AtomicBool,
) -> Result<(), Box<Fault>> {
    let schedule = Schedule {
        launch,
        space,
        options,
        stop,
        state: Mutex::new(State {
            ready: VecDeque::new(),
            next_group: 0,
            resident: 0,
            glances: 0,
            fault: None,
            random: options.seed.map(Random::new),
        }),
        changed: Condvar::new(),
    };
    let waves = launch.groups().saturating_mul(launch.waves().into());
    let workers = match options.seed {
        Some(_) => 1,
        None => options
            .workers
            .min(usize::try_from(waves).unwrap_or(usize::MAX)),
    };
    thread::scope(|scope| {
        for _ in 1..workers {
            let work = || schedule.work();
            // One worker less is no failure.
            let _ = thread::Builder::new()
                .name("hsa-emu wave".into())
                .spawn_scoped(scope, work);
        }
        schedule.work();
    });
    let mut state = schedule
        .state
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    for wave in &state.ready {
        wave.group.clear();
    }
    state.fault.take().map_or(Ok(()), Err)
}

impl Schedule<'_> {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        loop {
            match self.next() {
                Next::Run(wave, quantum) => self.advance(wave, quantum),
                Next::Begin(index) => self.begin(index),
                Next::Leave => return,
            }
        }
    }

    /// Waits until there is something to do.
    fn next(&self) -> Next {
        let mut state = self.lock();
        loop {
            if state.fault.is_some() || self.stop.load(Ordering::Relaxed) {
                self.changed.notify_all();
                return Next::Leave;
            }
            let waves = self.launch.waves();
            let room = state.resident == 0 || state.resident + waves <= self.options.resident;
            if state.next_group < self.launch.groups() && room {
                // Counted at once, so that other workers see the room taken.
                state.resident += waves;
                state.next_group += 1;
                return Next::Begin(state.next_group - 1);
            }
            if let Some((wave, quantum)) = self.pick(&mut state) {
                return Next::Run(wave, quantum);
            }
            if state.resident == 0 {
                self.changed.notify_all();
                return Next::Leave;
            }
            // The rest run on other workers, or wait for those that do. The timeout is for `stop`.
            let wait = self.changed.wait_timeout(state, Duration::from_millis(10));
            state = wait.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn pick(&self, state: &mut State) -> Option<(Box<Wave>, u32)> {
        let State { ready, random, .. } = state;
        match random {
            None => Some((ready.pop_front()?, self.options.quantum)),
            Some(random) => {
                let last = u64::try_from(ready.len()).ok()?.checked_sub(1)?;
                let wave = ready.swap_remove_back(random.below(last + 1) as usize)?;
                // Short quanta are tried as often as long ones.
                let bits = random.below(14);
                Some((wave, 1 + random.below(1 << bits) as u32))
            }
        }
    }

    /// Makes the waves of a workgroup.
    fn begin(&self, index: u64) {
        // Who counted the waves must say so if there are none: others wait for them.
        let made = catch_unwind(AssertUnwindSafe(|| self.launch.group(index)));
        let mut state = self.lock();
        match made {
            Ok(Some(waves)) => {
                // The last workgroup of a dimension may have fewer.
                state.resident -= self.launch.waves() - waves.len() as u32;
                state.ready.extend(waves);
                self.changed.notify_all();
            }
            Ok(None) => self.fail(&mut state, Fault::of_packet(Cause::NoMemory)),
            Err(_) => self.fail(&mut state, Fault::of_packet(Cause::Broken)),
        }
    }

    fn fail(&self, state: &mut State, fault: Box<Fault>) {
        state.fault.get_or_insert(fault);
        self.changed.notify_all();
    }

    /// Runs a wave and puts it where it belongs then.
    fn advance(&self, mut wave: Box<Wave>, quantum: u32) {
        let before = wave.steps;
        let pause = {
            let space = self.space.read().unwrap_or_else(PoisonError::into_inner);
            // A fault of this program must not be one of the host.
            catch_unwind(AssertUnwindSafe(|| wave.run(&space, quantum)))
        };
        let pause = pause.unwrap_or_else(|_| Pause::Fault(broken(&wave)));
        let glance = wave.steps - before < GLANCE;
        match pause {
            Pause::Sleep(units) => self.requeue(wave, glance, units),
            Pause::Yield => self.requeue(wave, false, 0),
            Pause::Barrier => {
                let group = std::sync::Arc::clone(&wave.group);
                let released = group.arrive(wave);
                self.release(released);
            }
            Pause::End => {
                let (released, _) = wave.group.leave();
                drop(wave);
                self.lock().resident -= 1;
                self.release(released);
            }
            Pause::Fault(fault) => {
                wave.group.clear();
                let mut state = self.lock();
                self.fail(&mut state, fault);
            }
        }
    }

    fn release(&self, waves: Vec<Box<Wave>>) {
        let mut state = self.lock();
        state.glances = 0;
        state.ready.extend(waves);
        self.changed.notify_all();
    }

    /// Puts a wave back into the line, and gives the core away if nobody has anything to do.
    fn requeue(&self, wave: Box<Wave>, glance: bool, units: u32) {
        let rounds = {
            let mut state = self.lock();
            state.ready.push_back(wave);
            state.glances = if glance {
                state.glances.saturating_add(1)
            } else {
                0
            };
            let waves = state.ready.len() as u32;
            if waves > 1 {
                self.changed.notify_one();
            }
            state.glances / waves.max(1)
        };
        if rounds == 0 {
            return;
        }
        if rounds < YIELDS {
            thread::yield_now();
            return;
        }
        let longer = (rounds - YIELDS) / 16;
        let sleep = SLEEPS[0].saturating_mul(1 + longer).min(SLEEPS[1]);
        thread::sleep(sleep.max(time::sleep(units)));
    }
}

/// The interpreter itself has failed.
fn broken(wave: &Wave) -> Box<Fault> {
    Box::new(Fault {
        pc: wave.pc,
        workgroup: wave.group.id,
        wave: wave.number,
        ..*Fault::of_packet(Cause::Broken)
    })
}
