//! The loop of the dashboard: keys, signals, snapshots and output in, frames out. It sleeps until
//! something happens, and draws when something looks different.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use gpurpc_top::keys::Key;
use gpurpc_top::palette::Palette;
use gpurpc_top::source::Source;
use gpurpc_top::state::{Effect, Ended, State};
use gpurpc_top::view::Dashboard;
use loader_core::exit;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGWINCH};
use signal_hook::iterator::Signals;

use crate::pipes::Pipes;
use crate::terminal::{self, Keys, Screen};

/// How often the statistics are looked at.
const LOOK: Duration = Duration::from_millis(100);
/// How long it may sleep when there is nothing more to come.
const IDLE: Duration = Duration::from_secs(5);
/// How long a program's last output is awaited.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// How long it may take to leave after a signal; a terminal may be blocked.
const GRACE: Duration = Duration::from_secs(3);

/// What happens besides keys.
pub(crate) enum Event {
    /// A signal has come.
    Signal(i32),
    /// The program has ended.
    Ended {
        /// How.
        ended: Ended,
        /// Because its loader could not do its work.
        failed: bool,
    },
}

/// Sends events and wakes the loop.
#[derive(Clone)]
pub(crate) struct Bell {
    events: Sender<Event>,
    wake: Arc<OwnedFd>,
}

impl Bell {
    pub(crate) fn ring(&self, event: Event) {
        // If the loop has ended nobody needs it; a full pipe wakes all the same.
        let _ = self.events.send(event);
        let _ = rustix::io::write(&*self.wake, &[0]);
    }
}

/// The program that is watched, as far as it can be told something.
pub(crate) trait Program {
    /// Asks it to end.
    fn signal(&self, number: i32);
    /// Ends it.
    fn kill(&self);
    /// Stops it, as this process is stopped.
    fn stop(&self);
    /// Lets it go on.
    fn go_on(&self);
}

/// Somebody else's program is left alone.
impl Program for () {
    fn signal(&self, _number: i32) {}
    fn kill(&self) {}
    fn stop(&self) {}
    fn go_on(&self) {}
}

/// Why the loop has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// The user has left.
    Quit,
    /// The user has interrupted what cannot be interrupted.
    Interrupted,
    /// This signal has come.
    Signal(i32),
    /// There is no terminal any more.
    HungUp,
}

/// What the loop needs, and who listens to signals until this is dropped.
pub(crate) struct Loop {
    events: Receiver<Event>,
    woken: OwnedFd,
    started: Instant,
    /// The loop listens no more.
    over: Arc<AtomicBool>,
    /// Nothing more is done.
    left: Arc<AtomicBool>,
}

impl Drop for Loop {
    fn drop(&mut self) {
        self.left.store(true, Ordering::SeqCst);
    }
}

impl Loop {
    /// Watches for signals from now on.
    pub(crate) fn new() -> io::Result<(Self, Bell)> {
        let (events, receiver) = channel();
        let (woken, wake) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let bell = Bell {
            events,
            wake: Arc::new(wake),
        };
        let over = Arc::new(AtomicBool::new(false));
        let left = Arc::new(AtomicBool::new(false));
        let all = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH];
        let mut signals = Signals::new(all)?;
        let (signalled, deaf, done) = (bell.clone(), Arc::clone(&over), Arc::clone(&left));
        thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || {
                for number in signals.forever() {
                    signalled.ring(Event::Signal(number));
                    // An interrupt is for the program, as long as there is a loop to pass it on.
                    let ends = match number {
                        SIGTERM | SIGHUP | SIGQUIT => true,
                        SIGINT => deaf.load(Ordering::SeqCst),
                        _ => false,
                    };
                    if ends {
                        insist(number, &done);
                    }
                }
            })?;
        let looped = Self {
            events: receiver,
            woken,
            started: Instant::now(),
            over,
            left,
        };
        Ok((looped, bell))
    }

    /// What has happened and was not asked for yet.
    pub(crate) fn events(&self) -> impl Iterator<Item = Event> {
        self.events.try_iter()
    }

    /// Runs until the user leaves or something ends it. The terminal has been taken.
    pub(crate) fn run(
        &self,
        both: (&mut State, &mut Palette),
        source: &mut dyn Source,
        pipes: &Pipes,
        program: &dyn Program,
        fps: u32,
    ) -> io::Result<Left> {
        let left = self.turn(both, source, pipes, program, fps);
        self.over.store(true, Ordering::SeqCst);
        match left {
            // Whatever failed, it failed because of that.
            Err(_) if terminal::is_gone() => Ok(Left::HungUp),
            left => left,
        }
    }

    fn turn(
        &self,
        (state, palette): (&mut State, &mut Palette),
        source: &mut dyn Source,
        pipes: &Pipes,
        program: &dyn Program,
        fps: u32,
    ) -> io::Result<Left> {
        let mut keys = Keys::open()?;
        let mut screen = terminal::screen()?;
        let interval = Duration::from_secs(1) / fps.max(1);
        let (mut next_look, mut next_frame) = (Instant::now(), Instant::now());
        let mut leaving = None;
        loop {
            let now = Instant::now();
            let time = now - self.started;
            let open = pipes.give(state);
            if now >= next_look && state.ended().is_none() {
                state.observe(time, source.look());
                next_look = now + LOOK;
            }
            let mut end = None;
            while let Ok(event) = self.events.try_recv() {
                match event {
                    Event::Ended { ended, failed } => {
                        self.ended(state, source, pipes, ended);
                        let nothing = failed && !state.has_data();
                        if leaving.is_some() || state.interrupts() > 0 || nothing {
                            end = Some(leaving.unwrap_or(Left::Quit));
                        }
                    }
                    Event::Signal(number) => {
                        let effect = self.signal(number, state, &mut screen, program)?;
                        if leaving.is_none() {
                            leaving = effect;
                        }
                        if let Some(left) = effect.filter(|_| state.is_over() || is_attached(state))
                        {
                            end = Some(left);
                        }
                    }
                }
            }
            if let Some(left) = end {
                return Ok(left);
            }
            state.tick(self.started.elapsed());
            let area = terminal::fit(&mut screen)?;
            state.resize(area.width, area.height);
            if now >= next_frame && state.take_dirty() {
                draw(&mut screen, state, *palette)?;
                next_frame = now + interval;
            }
            let ready = self.sleep(&keys, state, open, (next_look, next_frame))?;
            if ready.contains(PollFlags::IN) {
                let typed = keys.read();
                if typed.is_none() {
                    return Ok(Left::HungUp);
                }
                for key in typed.into_iter().flatten() {
                    let effect = state.press(self.started.elapsed(), key);
                    if let Some(left) = act(effect, key, state, palette, &mut screen, program)? {
                        end = Some(left);
                    }
                }
            } else if ready.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
                end = Some(Left::HungUp);
            }
            if let Some(left) = end {
                return Ok(left);
            }
        }
    }

    /// The program has ended: what it has left is taken in.
    fn ended(&self, state: &mut State, source: &mut dyn Source, pipes: &Pipes, ended: Ended) {
        state.observe(self.started.elapsed(), source.look());
        // What it has printed last is on its way. A process that it has left may hold the pipes.
        let since = Instant::now();
        while pipes.give(state) && since.elapsed() < LAST_WORDS {
            thread::sleep(Duration::from_millis(5));
        }
        state.end(ended);
    }

    /// Does what a signal asks for; gives how to leave, if it ends this program.
    fn signal(
        &self,
        number: i32,
        state: &mut State,
        screen: &mut Screen,
        program: &dyn Program,
    ) -> io::Result<Option<Left>> {
        match number {
            SIGWINCH => state.touch(),
            SIGTSTP => suspend(screen, state, program)?,
            SIGCONT => {
                program.go_on();
                terminal::retake(screen)?;
                state.touch();
            }
            SIGINT => {
                let effect = state.press(self.started.elapsed(), Key::Ctrl('c'));
                if effect == Effect::Leave {
                    return Ok(Some(Left::Interrupted));
                }
                obey(effect, program);
            }
            _ => {
                program.signal(number);
                return Ok(Some(Left::Signal(number)));
            }
        }
        Ok(None)
    }

    /// Sleeps until there is something to do; what there is at the keyboard.
    fn sleep(
        &self,
        keys: &Keys,
        state: &State,
        open: bool,
        (next_look, next_frame): (Instant, Instant),
    ) -> io::Result<PollFlags> {
        let now = Instant::now();
        let mut time = match (state.is_over(), open) {
            (false, _) => next_look.saturating_duration_since(now),
            // What still prints is looked after.
            (true, true) => LOOK,
            (true, false) => IDLE,
        };
        if state.is_dirty() {
            time = time.min(next_frame.saturating_duration_since(now));
        }
        let timeout = Timespec {
            tv_sec: time.as_secs() as i64,
            tv_nsec: time.subsec_nanos().into(),
        };
        self.wait(keys, Some(&timeout))
    }

    /// Sleeps until there is a key or an event; what there is at the keyboard.
    pub(crate) fn wait(&self, keys: &Keys, timeout: Option<&Timespec>) -> io::Result<PollFlags> {
        let keys = keys.as_fd();
        let mut both = [
            PollFd::from_borrowed_fd(keys, PollFlags::IN),
            PollFd::new(&self.woken, PollFlags::IN),
        ];
        match poll(&mut both, timeout) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if !both[1].revents().is_empty() {
            let mut bytes = [0; 64];
            while rustix::io::read(&self.woken, &mut bytes).is_ok_and(|n| n == bytes.len()) {}
        }
        Ok(both[0].revents())
    }
}

fn is_attached(state: &State) -> bool {
    state.watching() == gpurpc_top::state::Watching::Attached
}

/// Does what a key asks for; gives how to leave, if it ends this program.
fn act(
    effect: Effect,
    key: Key,
    state: &mut State,
    palette: &mut Palette,
    screen: &mut Screen,
    program: &dyn Program,
) -> io::Result<Option<Left>> {
    match effect {
        Effect::None => {}
        Effect::Leave if key == Key::Ctrl('c') => return Ok(Some(Left::Interrupted)),
        Effect::Leave => return Ok(Some(Left::Quit)),
        Effect::Interrupt | Effect::Kill => obey(effect, program),
        Effect::Suspend => suspend(screen, state, program)?,
        Effect::Redraw => terminal::repaint(screen)?,
        Effect::Palette => *palette = palette.next(),
    }
    Ok(None)
}

fn obey(effect: Effect, program: &dyn Program) {
    match effect {
        Effect::Interrupt => program.signal(SIGINT),
        Effect::Kill => program.kill(),
        _ => {}
    }
}

/// Ends the process if it does not end by itself: it may wait for a terminal that takes nothing more.
fn insist(number: i32, left: &Arc<AtomicBool>) {
    let left = Arc::clone(left);
    // Without a thread there is nobody to insist.
    let _ = thread::Builder::new().spawn(move || {
        thread::sleep(GRACE);
        if !left.load(Ordering::SeqCst) {
            terminal::abandon();
            std::process::exit(exit::signal(number).into());
        }
    });
}

fn suspend(screen: &mut Screen, state: &mut State, program: &dyn Program) -> io::Result<()> {
    program.stop();
    terminal::leave_for_a_while(screen, || program.go_on())?;
    state.touch();
    Ok(())
}

fn draw(screen: &mut Screen, state: &State, palette: Palette) -> io::Result<()> {
    let wanted = std::env::var_os("GPURPC_TOP_TEST_PANIC").is_some() && state.has_data();
    assert!(!wanted, "GPURPC_TOP_TEST_PANIC is set");
    screen.draw(|frame| frame.render_widget(Dashboard { state, palette }, frame.area()))?;
    Ok(())
}
