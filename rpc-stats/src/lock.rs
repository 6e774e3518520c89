//! The lock by which a loader is known to live: it belongs to the open file, so it is free when
//! the last process that has the file open for writing is gone, however that ended.

use std::fs::File;
use std::io;

use nix::fcntl::{FcntlArg, fcntl};
use nix::libc::{F_UNLCK, F_WRLCK, SEEK_SET, flock};

fn whole_file() -> flock {
    flock {
        l_type: F_WRLCK as _,
        l_whence: SEEK_SET as _,
        l_start: 0,
        l_len: 0,
        // Must be so for locks of open files.
        l_pid: 0,
    }
}

/// Takes the lock, or fails at once.
pub(crate) fn take(file: &File) -> io::Result<()> {
    fcntl(file, FcntlArg::F_OFD_SETLK(&whole_file()))?;
    Ok(())
}

/// Whether somebody has the lock. Asking takes none: no loader ever finds its lock taken.
pub(crate) fn is_taken(file: &File) -> io::Result<bool> {
    let mut lock = whole_file();
    fcntl(file, FcntlArg::F_OFD_GETLK(&mut lock))?;
    Ok(i32::from(lock.l_type) != F_UNLCK)
}
