#![doc = include_str!("../README.md")]
//! # Map
//!
//! | module | what is in it |
//! |---|---|
//! | [`Policy`] | what the device may ask of the host |
//! | [`Libc`] | the services, with what a host program adds to them |
//! | `files` | streams by handle, and what C's `<stdio.h>` does with them |
//! | `console` | standard output and standard error |
//! | `memory` | `malloc` and `free` |
//! | `path` | `remove` and `rename` |
//! | `system` | `system`, and [`HostFunctions`] |
//! | `test` | what LLVM's own tests ask of a server |
//! | `first` | what LLVM's first patch for RPC asks of one |
//! | [`printf`] | C's formatted output |
//!
//! # Failures
//!
//! Each opcode's answer has its own value for a failure, as C's functions have, and nothing else
//! tells the device of one. So whatever a device sends, its exchange is brought to the opcode's end
//! and answered. Messages that are longer than the host takes are received and dropped.
#![forbid(unsafe_code)]

use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use rpc_server::{Output, Table};

mod console;
mod files;
mod first;
mod memory;
mod path;
pub mod printf;
mod system;
mod test;

use console::Console;
use files::Files;
pub use system::HostFunctions;

/// What the device may ask of the host, besides what every program may.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Policy {
    /// `system` runs commands of the host's shell.
    pub system: bool,
}

/// The services, with what a host program adds to them.
#[derive(Default)]
pub struct Libc {
    policy: Policy,
    functions: HostFunctions,
    stdin: Option<File>,
    slabs: bool,
}

impl Libc {
    /// The services as they are, with the default policy.
    pub fn new() -> Self {
        Self::default()
    }

    /// The device may ask for what `policy` says.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// The device may call these functions.
    #[must_use]
    pub fn functions(mut self, functions: HostFunctions) -> Self {
        self.functions = functions;
        self
    }

    /// The device's standard input, in place of this process's.
    #[must_use]
    pub fn stdin(mut self, file: File) -> Self {
        self.stdin = Some(file);
        self
    }

    /// Device memory is given out in slabs of 2 MiB, aligned to that, which the allocator in LLVM's
    /// libc relies on.
    #[must_use]
    pub fn slabs(mut self, slabs: bool) -> Self {
        self.slabs = slabs;
        self
    }

    /// Registers the services, in place of others of the same opcodes; the standard streams' text
    /// goes to `output`. Open files are written out when the service over `table` is drained.
    pub fn install(self, table: &mut Table, output: &Arc<dyn Output>) {
        let console = Arc::new(Console::new(Arc::clone(output)));
        // Without the buffer of Rust's standard input: whoever reads here reads there.
        let own = || {
            io::stdin()
                .as_fd()
                .try_clone_to_owned()
                .map(File::from)
                .ok()
        };
        let files = Arc::new(Files::new(Arc::clone(&console), self.stdin.or_else(own)));
        console::install(table, &console);
        files::install(table, &files);
        memory::install(table, self.slabs);
        path::install(table);
        system::install(table, output, self.policy.system, self.functions);
        test::install(table);
        first::install(table, &console);
        printf::install(table, &console, &(files as _));
    }
}

impl fmt::Debug for Libc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Libc")
            .field("policy", &self.policy)
            .field("functions", &self.functions)
            .finish_non_exhaustive()
    }
}

/// Registers the services; the standard streams' text goes to `output`.
pub fn install(table: &mut Table, output: &Arc<dyn Output>, policy: Policy) {
    Libc::new().policy(policy).install(table, output);
}
