//! `malloc` and `free` as the device's own allocator asks for them.

use rpc_port::procedure::{Empty, Free, Malloc};
use rpc_server::Table;

/// What the allocator in LLVM's libc asks for, and relies on being aligned to its size.
const SLAB: u64 = 2 << 20;

/// Memory comes from what was reserved before the launch, so that neither of the two waits for the
/// kernel. With `slabs` it is given out in whole slabs, which the heap aligns to their size.
pub(crate) fn install(table: &mut Table, slabs: bool) {
    table.procedure::<Malloc>(move |call, size| {
        let size = if slabs {
            size.max(1).checked_next_multiple_of(SLAB)
        } else {
            Some(size)
        };
        Ok(size
            .and_then(|size| call.memory.allocate(size))
            .unwrap_or(0))
    });
    table.procedure::<Free>(|call, address| {
        // It has no answer: what is no block is left alone.
        let _ = call.memory.free(address);
        Ok(Empty)
    });
}
