//! What the environment says about how to run.

use std::env;

/// Settings; see the README.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// Order and quanta come from this number, and one worker runs all waves.
    pub(crate) seed: Option<u64>,
    /// Most worker threads of a kernel.
    pub(crate) workers: usize,
    /// Instructions a wave runs before it is another's turn.
    pub(crate) quantum: u32,
    /// Where each instruction is written.
    pub(crate) trace: Option<String>,
    /// Most waves that exist at once.
    pub(crate) resident: u32,
    /// Faults are not written to standard error.
    pub(crate) quiet: bool,
}

/// A number from the environment; what is none counts as not set.
fn number(name: &str) -> Option<u64> {
    env::var(name).ok()?.trim().parse().ok()
}

impl Options {
    /// Reads the environment.
    pub(crate) fn from_environment() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            seed: number("GPURPC_EMU_SEED"),
            workers: number("GPURPC_EMU_WORKERS").map_or(cores, |n| n.clamp(1, 256) as usize),
            quantum: number("GPURPC_EMU_QUANTUM").map_or(10_000, |n| n.clamp(1, 1 << 30) as u32),
            trace: env::var("GPURPC_EMU_TRACE")
                .ok()
                .filter(|path| !path.is_empty()),
            resident: RESIDENT_WAVES,
            quiet: env::var_os("GPURPC_EMU_QUIET").is_some(),
        }
    }
}

/// Compute units that the device says it has.
pub(crate) const COMPUTE_UNITS: u32 = 16;
/// Waves that a compute unit says it takes.
pub(crate) const WAVES_PER_UNIT: u32 = 32;
/// Waves that exist at once; more wait until others have ended.
pub(crate) const RESIDENT_WAVES: u32 = COMPUTE_UNITS * WAVES_PER_UNIT;
