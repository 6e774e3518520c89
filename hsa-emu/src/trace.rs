//! A line for each instruction that runs, for `GPURPC_EMU_TRACE`.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::isa::Inst;
use crate::isa::text::text;
use crate::wave::Wave;

/// Whether instructions are written.
pub(crate) static ON: Switch = Switch(AtomicBool::new(false));

/// A flag that is cheap to read.
pub(crate) struct Switch(AtomicBool);

impl Switch {
    /// Its state.
    #[inline(always)]
    pub(crate) fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

static OUTPUT: Mutex<Option<Box<dyn Write + Send>>> = Mutex::new(None);

/// Writes to a file from now on, or to standard error for `-`.
pub(crate) fn start(path: &str) -> io::Result<()> {
    let output: Box<dyn Write + Send> = match path {
        "-" => Box::new(io::stderr()),
        path => Box::new(BufWriter::new(File::create(path)?)),
    };
    *OUTPUT.lock().unwrap_or_else(PoisonError::into_inner) = Some(output);
    ON.0.store(true, Ordering::Relaxed);
    Ok(())
}

/// Writes out what is buffered.
pub(crate) fn flush() {
    if let Some(output) = &mut *OUTPUT.lock().unwrap_or_else(PoisonError::into_inner) {
        // A trace that cannot be written is no reason to stop the program.
        let _ = output.flush();
    }
}

/// Writes the instruction that `wave` is about to run.
#[cold]
pub(crate) fn instruction(wave: &Wave, inst: &Inst) {
    let [x, y, z] = wave.group.id;
    let line = format!(
        "{x},{y},{z}.{} {:#x} exec={:x} {}\n",
        wave.number,
        wave.pc,
        wave.exec(),
        text(inst, wave.lanes)
    );
    if let Some(output) = &mut *OUTPUT.lock().unwrap_or_else(PoisonError::into_inner) {
        let _ = output.write_all(line.as_bytes());
    }
}
