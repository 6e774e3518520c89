//! Watching a loader that somebody else has started.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use gpurpc_top::keys::{Command, Key, command};
use gpurpc_top::live::Live;
use gpurpc_top::palette::Palette;
use gpurpc_top::source::{Health, Source};
use gpurpc_top::state::{State, Watching};
use gpurpc_top::units::printable;
use gpurpc_top::view::picker::Picker;
use loader_core::exit;
use loader_core::outputs::are_one;
use loader_core::program::fail;
use rpc_stats::{DirectoryError, Found, ReadError, Reader, runs};
use rustix::event::PollFlags;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTSTP, SIGWINCH};
use thiserror::Error;

use crate::cli::{Attach, Loader, OUTPUT};
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
    #[error(
        "no loader of yours runs; start one, run an image with gpurpc-top IMAGE, or attach to one \
         that runs with --stats PATH by that path"
    )]
    None,
    #[error(
        "process {0} is no loader of yours that runs with statistics in the usual folder: one that \
         runs with --stats PATH is attached to by that path; there are: {1}"
    )]
    Unknown(u32, String),
    #[error(
        "there is no file {}: give what a loader that runs got as --stats PATH, or its PID",
        .0.display()
    )]
    NoFile(PathBuf),
    #[error(transparent)]
    File(#[from] ReadError),
    #[error("{OUTPUT} {} is the statistics file itself: give another file", .0.display())]
    Output(PathBuf),
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
    let live = |path: PathBuf| Live::new(path);
    let found = match &attach.loader {
        Some(Loader::Path(path)) => Choice::Only(Live::of(open(path)?), path.clone()),
        Some(Loader::Pid(pid)) => {
            let all = running()?;
            let named = all.iter().find(|run| run.pid == *pid);
            let named = named.ok_or_else(|| AttachError::Unknown(*pid, list(&all)))?;
            Choice::Only(live(named.path.clone()), named.path.clone())
        }
        None => match running()?.as_slice() {
            [] => return Err(AttachError::None),
            [only] => Choice::Only(live(only.path.clone()), only.path.clone()),
            all if plain => return Err(AttachError::Several(list(all))),
            all => Choice::Several(all.to_vec()),
        },
    };
    if plain {
        let Choice::Only(mut live, path) = found else {
            return Err(AttachError::None);
        };
        let output = attach.show.output.as_ref();
        if let Some(output) = output.filter(|output| are_one(output, &path)) {
            return Err(AttachError::Output(output.clone()));
        }
        return records(attach, &mut live);
    }
    let (looped, _bell) = Loop::new().map_err(AttachError::Screen)?;
    let chosen = match found {
        Choice::Only(live, _) => Ok(live),
        Choice::Several(all) => pick(attach, &looped, &all)?.map(live),
    };
    let left = match chosen {
        Ok(mut live) => watch(attach, &looped, &mut live)?,
        Err(left) => left,
    };
    Ok(match left {
        Left::Quit => 0,
        Left::Interrupted => exit::signal(SIGINT),
        Left::Signal(number) => exit::signal(number),
        Left::HungUp => exit::signal(SIGHUP),
    })
}

/// What there is to watch.
enum Choice {
    /// One loader, and its file.
    Only(Live, PathBuf),
    /// The user is asked.
    Several(Vec<Found>),
}

/// The loaders that live, of those with a file in the usual folder.
fn running() -> Result<Vec<Found>, DirectoryError> {
    let alive = |runs: Vec<Found>| runs.into_iter().filter(|run| run.alive).collect();
    runs().map(alive)
}

/// Opens a loader's file; the loader may have ended.
fn open(path: &Path) -> Result<Reader, AttachError> {
    Reader::open(path).map_err(|error| match error {
        ReadError::Open { path, error } if error.kind() == io::ErrorKind::NotFound => {
            AttachError::NoFile(path)
        }
        error => error.into(),
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
