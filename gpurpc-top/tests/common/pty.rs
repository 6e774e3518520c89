//! The real program in a pseudo-terminal, its screen as a terminal would show it.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

/// Everything here has this long, on whatever machine.
pub const LONG: Duration = Duration::from_mins(2);

pub struct Pty {
    pub child: Child,
    master: Option<File>,
    /// Kept open: else the screen could not be asked for when the program has ended.
    slave: File,
    parser: Arc<Mutex<vt100::Parser>>,
    /// Bytes that the program has written.
    written: Arc<Mutex<usize>>,
    closed: Arc<AtomicBool>,
    reading: Option<JoinHandle<()>>,
}

fn winsize(width: u16, height: u16) -> Winsize {
    Winsize {
        ws_row: height,
        ws_col: width,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}

impl Pty {
    /// Runs the program with a terminal of its own; `change` may do more to the command.
    pub fn run(arguments: &[&str], size: (u16, u16), change: impl FnOnce(&mut Command)) -> Self {
        Self::start(env!("CARGO_BIN_EXE_gpurpc-top"), arguments, size, change)
    }

    /// Runs a line of the shell, in which `$TOP` is the program.
    pub fn shell(line: &str, size: (u16, u16)) -> Self {
        Self::start("sh", &["-c", line], size, |command| {
            command.env("TOP", env!("CARGO_BIN_EXE_gpurpc-top"));
        })
    }

    fn start(
        program: &str,
        arguments: &[&str],
        (width, height): (u16, u16),
        change: impl FnOnce(&mut Command),
    ) -> Self {
        let master =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        tcsetwinsize(&master, winsize(width, height)).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let slave = File::options()
            .read(true)
            .write(true)
            .open(name.to_str().unwrap())
            .unwrap();
        // util-linux: a session of its own, with that terminal.
        let mut command = Command::new("setsid");
        command
            .arg("--ctty")
            .arg(program)
            .args(arguments)
            .env("TERM", "xterm-256color")
            .env_remove("NO_COLOR")
            .stdin(slave.try_clone().unwrap())
            .stdout(slave.try_clone().unwrap())
            .stderr(slave.try_clone().unwrap());
        change(&mut command);
        let child = command.spawn().expect("setsid is there");
        let master: File = master.into();
        let parser = Arc::new(Mutex::new(vt100::Parser::new(height, width, 0)));
        let written = Arc::new(Mutex::new(0));
        let mut reader = master.try_clone().unwrap();
        let (theirs, count) = (Arc::clone(&parser), Arc::clone(&written));
        let closed = Arc::new(AtomicBool::new(false));
        let done = Arc::clone(&closed);
        let reading = std::thread::spawn(move || {
            let mut buffer = vec![0; 65536];
            while !done.load(Ordering::SeqCst) {
                let mut ready = [PollFd::new(&reader, PollFlags::IN)];
                let timeout = Timespec {
                    tv_sec: 0,
                    tv_nsec: 50_000_000,
                };
                if poll(&mut ready, Some(&timeout)) == Ok(0) {
                    continue;
                }
                let Ok(n @ 1..) = reader.read(&mut buffer) else {
                    break;
                };
                theirs.lock().unwrap().process(&buffer[..n]);
                *count.lock().unwrap() += n;
            }
        });
        Self {
            child,
            master: Some(master),
            slave,
            parser,
            written,
            closed,
            reading: Some(reading),
        }
    }

    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    pub fn type_in(&mut self, keys: &str) {
        let master = self.master.as_mut().expect("not hung up");
        master.write_all(keys.as_bytes()).unwrap();
    }

    pub fn resize(&mut self, width: u16, height: u16) {
        let mut parser = self.parser.lock().unwrap();
        parser.screen_mut().set_size(height, width);
        drop(parser);
        let master = self.master.as_ref().expect("not hung up");
        tcsetwinsize(master, winsize(width, height)).unwrap();
    }

    /// A size that this side has no screen for.
    pub fn resize_without_looking(&mut self, (width, height): (u16, u16)) {
        let master = self.master.as_ref().expect("not hung up");
        tcsetwinsize(master, winsize(width, height)).unwrap();
    }

    /// The terminal goes away, as when its window is closed.
    pub fn hang_up(&mut self) {
        self.stop_reading();
        self.master = None;
    }

    /// What the program writes is no longer taken.
    pub fn stop_reading(&mut self) {
        self.closed.store(true, Ordering::SeqCst);
        if let Some(reading) = self.reading.take() {
            reading.join().unwrap();
        }
    }

    pub fn screen(&self) -> String {
        self.parser.lock().unwrap().screen().contents()
    }

    pub fn written(&self) -> usize {
        *self.written.lock().unwrap()
    }

    #[track_caller]
    pub fn wait_for(&self, what: &str, f: impl Fn(&str) -> bool) {
        let started = Instant::now();
        while !f(&self.screen()) {
            assert!(started.elapsed() < LONG, "{what}:\n{}", self.screen());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    #[track_caller]
    pub fn shows(&self, text: &str) {
        self.wait_for(text, |screen| screen.contains(text));
    }

    /// Waits until lines are typed as usual.
    pub fn is_cooked(&self) {
        let started = Instant::now();
        let modes = || tcgetattr(self.slave.as_fd()).unwrap().local_modes;
        while !modes().contains(LocalModes::ICANON) {
            assert!(started.elapsed() < LONG, "not given back");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Whether lines are typed with an echo, and the screen is the usual one with a cursor.
    pub fn is_restored(&self) -> bool {
        let modes = tcgetattr(self.slave.as_fd()).unwrap().local_modes;
        let parser = self.parser.lock().unwrap();
        let screen = parser.screen();
        modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
            && !screen.alternate_screen()
            && !screen.hide_cursor()
    }

    pub fn assert_restored(&self) {
        let started = Instant::now();
        while !self.is_restored() {
            assert!(started.elapsed() < LONG, "not restored:\n{}", self.screen());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits for the end.
    pub fn end(&mut self) -> ExitStatus {
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(started.elapsed() < LONG, "still runs:\n{}", self.screen());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The processes that `parent` has started.
pub fn children(parent: Pid) -> Vec<Pid> {
    let parent = parent.as_raw_nonzero();
    let list = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
    list.unwrap_or_default()
        .split_whitespace()
        .filter_map(|pid| Pid::from_raw(pid.parse().ok()?))
        .collect()
}

/// The state letter of a process, as `ps` shows it.
pub fn process_state(pid: Pid) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    stat.rsplit(')').next()?.trim_start().chars().next()
}
