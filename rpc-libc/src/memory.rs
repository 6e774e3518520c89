//! `malloc` and `free` as the device's own allocator asks for them.

use rpc_port::procedure::{Empty, Free, Malloc};
use rpc_server::Table;

/// Memory comes from what was reserved before the launch, so that neither of the two waits for the
/// kernel. The allocator in LLVM's libc asks for slabs of 2 MiB and relies on their being aligned to
/// that, which is the heap's affair: it aligns all blocks of at least that size so.
pub(crate) fn install(table: &mut Table) {
    table.procedure::<Malloc>(|call, size| Ok(call.memory.allocate(size).unwrap_or(0)));
    table.procedure::<Free>(|call, address| {
        // It has no answer: what is no block is left alone.
        let _ = call.memory.free(address);
        Ok(Empty)
    });
}
