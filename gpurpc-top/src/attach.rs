//! Watching a loader that somebody else has started.

use std::io;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use gpurpc_top::keys::{Command, Key, command};
use gpurpc_top::live::{Live, Target};
use gpurpc_top::source::{Health, Source};
use gpurpc_top::state::{State, Watching};
use gpurpc_top::units::printable;
use gpurpc_top::view::picker::Picker;
use loader_core::exit;
use loader_core::program::fail;
use rpc_stats::{DirectoryError, Found, Reader, runs};
use rustix::event::{PollFd, PollFlags, poll};
use thiserror::Error;

use crate::cli::Attach;
use crate::dashboard::{Left, Loop};
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
    let chosen = match (attach.pid, running.as_slice()) {
        (Some(pid), all) => all
            .iter()
            .find(|run| run.pid == pid)
            .ok_or_else(|| AttachError::Unknown(pid, list(all)))?,
        (None, []) => return Err(AttachError::None),
        (None, [only]) => only,
        (None, all) if plain => return Err(AttachError::Several(list(all))),
        (None, all) => match pick(attach, all).map_err(AttachError::Screen)? {
            Some(chosen) => chosen,
            None => return Ok(0),
        },
    };
    let mut live = Live::new(Target::Path(chosen.path.clone()));
    if plain {
        records(attach, &mut live)
    } else {
        watch(attach, &mut live)
    }
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

fn watch(attach: &Attach, live: &mut Live) -> Result<u8, AttachError> {
    let (looped, _bell) = Loop::new().map_err(AttachError::Screen)?;
    let mut state = State::new(attach.show.settings(), Watching::Attached);
    terminal::give_back_on_panic();
    let shown = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        terminal::take()?;
        let mut palette = attach.show.colours();
        let both = (&mut state, &mut palette);
        looped.run(both, live, &Pipes::default(), &(), attach.show.fps)
    }));
    terminal::give_back();
    let left = shown
        .map_err(|_| AttachError::Panicked)?
        .map_err(AttachError::Screen)?;
    Ok(match left {
        Left::Quit => 0,
        Left::Interrupted => exit::signal(signal_hook::consts::SIGINT),
        Left::Signal(number) => exit::signal(number),
        Left::HungUp => exit::signal(signal_hook::consts::SIGHUP),
    })
}

/// Lets the user choose one.
fn pick<'r>(attach: &Attach, runs: &'r [Found]) -> io::Result<Option<&'r Found>> {
    let choices: Vec<_> = runs.iter().map(describe).collect();
    terminal::give_back_on_panic();
    terminal::take()?;
    let chosen = choose(&choices, attach.show.colours());
    terminal::give_back();
    Ok(chosen?.map(|index| &runs[index]))
}

fn choose(choices: &[String], palette: gpurpc_top::palette::Palette) -> io::Result<Option<usize>> {
    let mut keys = terminal::Keys::open()?;
    let mut screen = terminal::screen()?;
    let mut selected = 0;
    loop {
        let picker = Picker {
            choices,
            selected,
            palette,
        };
        screen.draw(|frame| frame.render_widget(picker, frame.area()))?;
        let mut ready = [PollFd::new(&keys, PollFlags::IN)];
        match poll(&mut ready, None) {
            Ok(_) => {}
            // A resize; a signal that ends this program has done so.
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        if !ready[0].revents().contains(PollFlags::IN) {
            return Ok(None);
        }
        let Some(typed) = keys.read() else {
            return Ok(None);
        };
        for key in typed {
            match (key, command(key)) {
                (Key::Enter, _) => return Ok(Some(selected)),
                (Key::Esc, _) | (_, Some(Command::Quit | Command::Interrupt)) => return Ok(None),
                (_, Some(Command::Up)) => selected = selected.saturating_sub(1),
                (_, Some(Command::Down)) => selected = (selected + 1).min(choices.len() - 1),
                _ => {}
            }
        }
    }
}
