//! Watching a loader that somebody else has started.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use gpurpc_top::keys::{Command, Key, command};
use gpurpc_top::live::{Live, Target};
use gpurpc_top::palette::Palette;
use gpurpc_top::source::{Health, Source};
use gpurpc_top::state::{State, Watching};
use gpurpc_top::units::printable;
use gpurpc_top::view::picker::Picker;
use loader_core::exit;
use loader_core::program::fail;
use rpc_stats::{DirectoryError, Found, Reader, runs};
use rustix::event::PollFlags;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTSTP, SIGWINCH};
use thiserror::Error;

use crate::cli::Attach;
use crate::dashboard::{Event, Left, Loop};
use crate::parent::has_screen;
use crate::pipes::Pipes;
use crate::records::{RecordError, Records};
use crate::{NAME, terminal};

/// How often the statistics are looked at.
const LOOK: Duration = Duration::from_millis(100);
/// How long a loader may take to show the first statistics.
const FIRST: Duration = Duration::from_secs(2);

/// Why there is nothing to watch.
#[derive(Debug, Error)]
enum AttachError {
    #[error("no loader of yours runs; start one, or run an image with gpurpc-top IMAGE")]
    None,
    #[error("process {0} is no loader of yours that runs with statistics; there are: {1}")]
    Unknown(u32, String),
    #[error("several loaders run, so name one: {0}")]
    Several(String),
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    #[error("there are no statistics: {0}")]
    Blind(String),
    #[error("the terminal cannot be used ({0}); --once does without")]
    Screen(io::Error),
    #[error("the dashboard failed, which is a mistake in this program; the loader runs on")]
    Panicked,
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// Watches a loader.
pub(crate) fn main(attach: &Attach) -> ExitCode {
    match run(attach) {
        Ok(code) => ExitCode::from(code),
        Err(error) => fail(NAME, &error),
    }
}

fn run(attach: &Attach) -> Result<u8, AttachError> {
    let plain = attach.show.is_plain() || !has_screen();
    let running: Vec<_> = runs()?.into_iter().filter(|run| run.alive).collect();
    let only = match (attach.pid, running.as_slice()) {
        (Some(pid), all) => {
            let named = all.iter().find(|run| run.pid == pid);
            Some(named.ok_or_else(|| AttachError::Unknown(pid, list(all)))?)
        }
        (None, []) => return Err(AttachError::None),
        (None, [only]) => Some(only),
        (None, all) if plain => return Err(AttachError::Several(list(all))),
        (None, _) => None,
    };
    let live = |path: &Path| Live::new(Target::Path(path.to_owned()));
    if plain {
        return only.map_or(Err(AttachError::None), |only| {
            records(attach, &mut live(&only.path))
        });
    }
    let (looped, _bell) = Loop::new().map_err(AttachError::Screen)?;
    let chosen = match only {
        Some(only) => Ok(only.path.clone()),
        None => pick(attach, &looped, &running)?,
    };
    let left = match chosen {
        Ok(path) => watch(attach, &looped, &mut live(&path))?,
        Err(left) => left,
    };
    Ok(match left {
        Left::Quit => 0,
        Left::Interrupted => exit::signal(SIGINT),
        Left::Signal(number) => exit::signal(number),
        Left::HungUp => exit::signal(SIGHUP),
    })
}

fn list(runs: &[Found]) -> String {
    if runs.is_empty() {
        return "none".to_owned();
    }
    runs.iter().map(describe).collect::<Vec<_>>().join(", ")
}

/// A loader's process and what it runs.
fn describe(run: &Found) -> String {
    let snapshot = Reader::open(&run.path).and_then(|mut reader| reader.read());
    match snapshot {
        Ok(Some(snapshot)) => {
            let command = printable(&snapshot.run.command.join(" "));
            format!(
                "{} ({command} on {})",
                run.pid,
                printable(&snapshot.run.device)
            )
        }
        _ => run.pid.to_string(),
    }
}

/// Records instead of a dashboard. Nobody else writes to standard output here.
fn records(attach: &Attach, live: &mut Live) -> Result<u8, AttachError> {
    let mut records = Records::new(&attach.show, false)?;
    let started = Instant::now();
    let mut seen = 0;
    loop {
        let look = live.look();
        if let Some(snapshot) = look.snapshot {
            records.observe(snapshot);
            seen += 1;
        }
        let gone = look.health == Health::Gone;
        // Two of them make a rate.
        let enough = seen >= 2 || (seen == 1 && started.elapsed() >= FIRST);
        let once = !attach.show.batch && enough;
        if (gone || once) && records.latest().is_some() {
            records.finish()?;
            return Ok(0);
        }
        if records.latest().is_none() && (gone || started.elapsed() > FIRST) {
            return Err(match look.health {
                Health::Blind(why) => AttachError::Blind(why),
                _ => AttachError::Blind("the loader has written none".to_owned()),
            });
        }
        records.tick()?;
        if records.is_enough() {
            records.finish()?;
            return Ok(0);
        }
        std::thread::sleep(records.pause(LOOK));
    }
}

fn watch(attach: &Attach, looped: &Loop, live: &mut Live) -> Result<Left, AttachError> {
    let mut state = State::new(attach.show.settings(), Watching::Attached);
    terminal::give_back_on_panic();
    let shown = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        terminal::take()?;
        let mut palette = attach.show.colours();
        let both = (&mut state, &mut palette);
        looped.run(both, live, &Pipes::default(), &(), attach.show.fps)
    }));
    terminal::give_back();
    shown
        .map_err(|_| AttachError::Panicked)?
        .map_err(AttachError::Screen)
}

/// Lets the user choose one.
fn pick(
    attach: &Attach,
    looped: &Loop,
    runs: &[Found],
) -> Result<Result<PathBuf, Left>, AttachError> {
    let choices: Vec<_> = runs.iter().map(describe).collect();
    terminal::give_back_on_panic();
    let chosen = terminal::take().and_then(|()| choose(looped, &choices, attach.show.colours()));
    terminal::give_back();
    match chosen {
        Ok(chosen) => Ok(chosen.map(|index| runs[index].path.clone())),
        // Whatever failed, it failed because of that.
        Err(_) if terminal::is_gone() => Ok(Err(Left::HungUp)),
        Err(error) => Err(AttachError::Screen(error)),
    }
}

/// The one that is chosen, or how the user has left.
fn choose(looped: &Loop, choices: &[String], palette: Palette) -> io::Result<Result<usize, Left>> {
    let mut keys = terminal::Keys::open()?;
    let mut screen = terminal::screen()?;
    let mut selected = 0;
    loop {
        let picker = Picker {
            choices,
            selected,
            palette,
        };
        terminal::fit(&mut screen)?;
        screen.draw(|frame| frame.render_widget(picker, frame.area()))?;
        let ready = looped.wait(&keys, None)?;
        for event in looped.events() {
            match event {
                Event::Signal(SIGTSTP) => terminal::leave_for_a_while(&mut screen, || ())?,
                Event::Signal(SIGCONT) => terminal::retake(&mut screen)?,
                Event::Signal(SIGWINCH) | Event::Ended { .. } => {}
                Event::Signal(number) => return Ok(Err(Left::Signal(number))),
            }
        }
        if ready.is_empty() {
            continue;
        }
        let typed = ready.contains(PollFlags::IN).then(|| keys.read());
        let Some(typed) = typed.flatten() else {
            return Ok(Err(Left::HungUp));
        };
        for key in typed {
            match (key, command(key)) {
                (Key::Enter, _) => return Ok(Ok(selected)),
                (Key::Esc, _) | (_, Some(Command::Quit)) => return Ok(Err(Left::Quit)),
                (_, Some(Command::Interrupt)) => return Ok(Err(Left::Interrupted)),
                (_, Some(Command::Suspend)) => {
                    terminal::leave_for_a_while(&mut screen, || ())?;
                }
                (_, Some(Command::Redraw)) => terminal::repaint(&mut screen)?,
                (_, Some(Command::Up)) => selected = selected.saturating_sub(1),
                (_, Some(Command::Down)) => selected = (selected + 1).min(choices.len() - 1),
                _ => {}
            }
        }
    }
}
