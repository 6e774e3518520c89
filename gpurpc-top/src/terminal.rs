//! The terminal: taken for the dashboard, given back whatever happens.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Stdout, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use gpurpc_top::keys::Key;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};

/// Whether the terminal is ours just now.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Bytes of a frame that are written at once.
const FRAME: usize = 64 << 10;

pub(crate) type Screen = Terminal<CrosstermBackend<BufWriter<Stdout>>>;

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
    Terminal::new(CrosstermBackend::new(out))
}

/// Where keys come from.
pub(crate) enum Keys {
    Stdin(io::Stdin),
    Tty(File),
}

impl Keys {
    /// Standard input if it is a terminal, else the terminal that controls this process.
    pub(crate) fn open() -> io::Result<Self> {
        let stdin = io::stdin();
        if stdin.is_terminal() {
            Ok(Self::Stdin(stdin))
        } else {
            File::open("/dev/tty").map(Self::Tty)
        }
    }

    /// What was typed up to now.
    pub(crate) fn read(&self) -> io::Result<Vec<Key>> {
        let mut keys = Vec::new();
        while event::poll(std::time::Duration::ZERO)? {
            if let Event::Key(key) = event::read()? {
                keys.extend(translate(key));
            }
        }
        Ok(keys)
    }
}

impl AsFd for Keys {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Stdin(stdin) => stdin.as_fd(),
            Self::Tty(file) => file.as_fd(),
        }
    }
}

fn translate(key: KeyEvent) -> Option<Key> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    Some(match key.code {
        KeyCode::Char(c) if key.modifiers.contains(KeyModifiers::CONTROL) => {
            Key::Ctrl(c.to_ascii_lowercase())
        }
        KeyCode::Char(c) => Key::Char(c),
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::Enter => Key::Enter,
        KeyCode::Tab => Key::Tab,
        KeyCode::BackTab => Key::BackTab,
        KeyCode::Esc => Key::Esc,
        _ => return None,
    })
}
