//! Which thread this is, as three coordinates or as one number (x fastest).

pub use crate::target::{block, blocks, thread, threads};

fn linear(at: [u32; 3], size: [u32; 3]) -> u64 {
    u64::from(at[0])
        + u64::from(size[0]) * (u64::from(at[1]) + u64::from(size[1]) * u64::from(at[2]))
}

fn count(size: [u32; 3]) -> u64 {
    u64::from(size[0]) * u64::from(size[1]) * u64::from(size[2])
}

/// This thread's block, counted through the grid.
pub fn block_index() -> u64 {
    linear(block(), blocks())
}

/// This thread, counted through its block.
pub fn thread_index() -> u64 {
    linear(thread(), threads())
}

/// This thread, counted through all blocks.
pub fn global_index() -> u64 {
    block_index() * count(threads()) + thread_index()
}
