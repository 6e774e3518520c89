/* A `_start` as the first images for LLVM's RPC had it: one port, whose addresses it is passed. Sends
   one request and waits for its end. Built with -DSIX it takes no environment. */
typedef unsigned int u32;
typedef unsigned long u64;

static void wait_for(u32 *inbox, u32 value) {
  while (__atomic_load_n(inbox, __ATOMIC_ACQUIRE) != value)
    __builtin_amdgcn_s_sleep(1);
}

__attribute__((visibility("protected"), amdgpu_kernel)) void
_start(int argc, char **argv,
#ifndef SIX
       char **envp,
#endif
       int *ret, u32 *inbox, u32 *outbox, u64 *buffer) {
  buffer[0] = 2;
  buffer[1] = 40 + argc;
  __atomic_store_n(outbox, 1, __ATOMIC_RELEASE);
  wait_for(inbox, 1);
  __atomic_store_n(outbox, 0, __ATOMIC_RELEASE);
  wait_for(inbox, 0);
  __atomic_fetch_or(ret, (int)buffer[1], __ATOMIC_RELAXED);
}
