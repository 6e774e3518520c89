//! The terminal: taken for the dashboard, given back whatever happens.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Stdout, Write};
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use gpurpc_top::keys::Key;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::typed;

/// Within this time the rest of a key's bytes comes.
const SOON: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 25_000_000,
};

/// Whether the terminal is ours just now.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Bytes of a frame that are written at once.
const FRAME: usize = 64 << 10;

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
    Terminal::new(CrosstermBackend::new(out)).map(ManuallyDrop::new)
}

/// Makes the next frame draw every cell. Not [`Terminal::clear`], which asks the terminal where its
/// cursor is and waits for the answer.
pub(crate) fn repaint(screen: &mut Screen) -> io::Result<()> {
    let size = screen.size()?;
    screen.resize(ratatui::layout::Rect::from((
        ratatui::layout::Position::ORIGIN,
        size,
    )))
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
