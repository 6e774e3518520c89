//! The device: its memory, its code, and the faults that it has reported.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crate::code::CodeMap;
use crate::fault::{Cause, Fault};
use crate::kernel::{Launch, Packet};
use crate::memory::{Access, Region, Space};
use crate::options::Options;
use crate::pages::Pages;
use crate::schedule;

/// The device.
pub(crate) struct Machine {
    /// Memory that it can name.
    pub(crate) space: RwLock<Space>,
    /// Code that it can run.
    pub(crate) codes: Arc<CodeMap>,
    /// What the environment asked for.
    pub(crate) options: Options,
    /// Allocations by address.
    pages: Mutex<HashMap<u64, Pages>>,
    /// The last fault as text.
    pub(crate) last_fault: Mutex<String>,
}

impl Machine {
    /// A device with no memory yet.
    pub(crate) fn new(options: Options) -> Self {
        Self {
            space: RwLock::default(),
            codes: Arc::default(),
            options,
            pages: Mutex::default(),
            last_fault: Mutex::default(),
        }
    }

    /// Memory for the device (with `access`) and the host.
    pub(crate) fn allocate(&self, size: u64, access: Access) -> Option<u64> {
        let pages = Pages::new(size)?;
        let start = pages.start;
        let region = Region {
            start,
            size: pages.size,
            access,
        };
        if !self
            .space
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(region)
        {
            return None;
        }
        let mut all = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(start, pages);
        Some(start)
    }

    /// Frees what [`allocate`](Self::allocate) gave; false if it did not. Waits until no instruction
    /// is at work.
    pub(crate) fn free(&self, start: u64) -> bool {
        let mut all = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(pages) = all.remove(&start) else {
            return false;
        };
        drop(all);
        self.space
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(start);
        drop(pages);
        true
    }

    /// Bytes of an allocation that starts at `start`.
    pub(crate) fn size(&self, start: u64) -> Option<u64> {
        let all = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(&start).map(|pages| pages.size)
    }

    /// Lets the device access an allocation.
    pub(crate) fn allow(&self, start: u64) -> bool {
        let mut space = self.space.write().unwrap_or_else(PoisonError::into_inner);
        match space.get_mut(start) {
            Some(region) => {
                region.access = Access::Write;
                true
            }
            None => false,
        }
    }

    /// Runs a kernel.
    ///
    /// # Errors
    /// The fault that ended it.
    pub(crate) fn run(&self, packet: Packet, stop: &AtomicBool) -> Result<(), Box<Fault>> {
        let launch = {
            let space = self.space.read().unwrap_or_else(PoisonError::into_inner);
            Launch::new(packet, &space, Arc::clone(&self.codes))
        };
        let result = match launch {
            Ok(launch) => schedule::run(&launch, &self.space, &self.options, stop),
            Err(why) => Err(Fault::of_packet(Cause::Packet(why))),
        };
        crate::trace::flush();
        if let Err(fault) = &result {
            let text = fault.to_string();
            if !self.options.quiet {
                eprintln!("hsa-emu: {text}");
            }
            *self
                .last_fault
                .lock()
                .unwrap_or_else(PoisonError::into_inner) = text;
        }
        result
    }
}
