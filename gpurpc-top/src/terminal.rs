//! The terminal: taken for the dashboard, given back whatever happens.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Stdout, Write};
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use gpurpc_top::keys::Key;
use ratatui::backend::{Backend as _, CrosstermBackend};
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::layout::{Rect, Size};
use ratatui::{Terminal, TerminalOptions, Viewport};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::SIGTSTP;
use signal_hook::low_level::emulate_default_handler;

use crate::typed;

/// Within this time the rest of a key's bytes comes.
const SOON: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 25_000_000,
};

/// How long a terminal may take to be given back by a process that ends in any case.
const ABANDON: Duration = Duration::from_millis(500);

/// Whether the terminal is ours just now.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Bytes of a frame that are written at once.
const FRAME: usize = 64 << 10;

/// The size of a terminal that does not say it.
const USUAL: Size = Size::new(80, 24);
/// The most that is drawn on.
const MOST: Size = Size::new(1000, 500);

/// Never dropped: ratatui would show the cursor, which `give_back` does, and panics in saying so where
/// there is no terminal any more.
pub(crate) type Screen = ManuallyDrop<Terminal<CrosstermBackend<BufWriter<Stdout>>>>;

/// Takes the terminal.
pub(crate) fn take() -> io::Result<()> {
    enable_raw_mode()?;
    TAKEN.store(true, Ordering::SeqCst);
    execute!(io::stdout(), EnterAlternateScreen)
}

/// Gives it back, if it was taken: lines that are typed, the old screen, a cursor. What fails here
/// fails because the terminal is gone.
pub(crate) fn give_back() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        let _ = execute!(io::stdout(), LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
        let _ = io::stdout().flush();
    }
}

/// Gives it back as far as that is possible without waiting for it: it may take nothing more.
pub(crate) fn abandon() {
    let _ = disable_raw_mode();
    let (done, given_back) = channel();
    // Without a thread there is nobody who may wait.
    let _ = thread::Builder::new().spawn(move || {
        give_back();
        let _ = done.send(());
    });
    let _ = given_back.recv_timeout(ABANDON);
}

/// Stops this process, as Ctrl-Z does, with the terminal given back; `go_on` is called when somebody
/// lets it go on.
pub(crate) fn leave_for_a_while(screen: &mut Screen, go_on: impl FnOnce()) -> io::Result<()> {
    give_back();
    let _ = emulate_default_handler(SIGTSTP);
    go_on();
    take()?;
    repaint(screen)
}

/// Takes the terminal again: whoever had it while this process was stopped may have changed it.
pub(crate) fn retake(screen: &mut Screen) -> io::Result<()> {
    give_back();
    take()?;
    repaint(screen)
}

/// Whether there is no terminal any more on standard output.
pub(crate) fn is_gone() -> bool {
    rustix::termios::tcgetattr(io::stdout()).is_err()
}

/// Makes a panic give the terminal back before it is told.
pub(crate) fn give_back_on_panic() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        give_back();
        hook(info);
    }));
}

/// A screen to draw on.
pub(crate) fn screen() -> io::Result<Screen> {
    let out = BufWriter::with_capacity(FRAME, io::stdout());
    let backend = CrosstermBackend::new(out);
    let viewport = Viewport::Fixed(area(backend.size()?));
    Terminal::with_options(backend, TerminalOptions { viewport }).map(ManuallyDrop::new)
}

/// Makes the screen as large as the terminal is now; gives what there is to draw on.
pub(crate) fn fit(screen: &mut Screen) -> io::Result<Rect> {
    let area = area(screen.size()?);
    if screen.get_frame().area() != area {
        screen.resize(area)?;
    }
    Ok(area)
}

/// Makes the next frame draw every cell. Not [`Terminal::clear`], which asks the terminal where its
/// cursor is and waits for the answer.
pub(crate) fn repaint(screen: &mut Screen) -> io::Result<()> {
    let area = area(screen.size()?);
    screen.resize(area)
}

/// What is drawn on in a terminal that says it has this size. There is memory for each of its cells:
/// not as much as a terminal can ask for.
fn area(said: Size) -> Rect {
    // One that does not know its size, as a new pseudo-terminal, says 0.
    let side = |said: u16, usual: u16, most: u16| if said == 0 { usual } else { said.min(most) };
    Rect::new(
        0,
        0,
        side(said.width, USUAL.width, MOST.width),
        side(said.height, USUAL.height, MOST.height),
    )
}

/// Where keys come from.
pub(crate) struct Keys {
    from: From,
    /// Typed, and not a whole key yet.
    partial: Vec<u8>,
}

enum From {
    Stdin(io::Stdin),
    Tty(File),
}

impl Keys {
    /// Standard input if it is a terminal, else the terminal that controls this process.
    pub(crate) fn open() -> io::Result<Self> {
        let stdin = io::stdin();
        let from = if stdin.is_terminal() {
            From::Stdin(stdin)
        } else {
            From::Tty(File::open("/dev/tty")?)
        };
        Ok(Self {
            from,
            partial: Vec::new(),
        })
    }

    /// What was typed up to now, when there is something; `None` when nobody can type any more.
    pub(crate) fn read(&mut self) -> Option<Vec<Key>> {
        let mut bytes = [0; 1024];
        let mut keys = Vec::new();
        loop {
            match rustix::io::read(&*self, &mut bytes) {
                Ok(0) => return None,
                Ok(n) => self.partial.extend_from_slice(&bytes[..n]),
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
                Err(_) => return None,
            }
            keys.extend(typed::keys(&mut self.partial, false));
            if self.partial.is_empty() {
                return Some(keys);
            }
            // An escape is the key of that name if nothing follows it at once.
            if !self.follows() {
                keys.extend(typed::keys(&mut self.partial, true));
                return Some(keys);
            }
        }
    }

    /// Whether more comes soon.
    fn follows(&self) -> bool {
        let mut ready = [PollFd::new(self, PollFlags::IN)];
        matches!(poll(&mut ready, Some(&SOON)), Ok(1..))
    }
}

impl AsFd for Keys {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.from {
            From::Stdin(stdin) => stdin.as_fd(),
            From::Tty(file) => file.as_fd(),
        }
    }
}
