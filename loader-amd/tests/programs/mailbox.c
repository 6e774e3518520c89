/* A program as LLVM's first patch for RPC had it: `_start` is passed the addresses of one port, and
   there is nothing else. Built with -DSIX it takes no environment.

   Each thread in turn writes a line, the first one also its arguments; "exit N" as arguments ends the
   run. Returns how many arguments there are; the environment has GPURPC_EMU_QUIET or it returns 64. */
typedef unsigned int u32;
typedef unsigned long u64;

enum { NOOP, PRINT_TO_STDERR, EXIT };

struct client {
  u32 *inbox, *outbox;
  u64 *buffer;
};

static void give(u32 *outbox, u32 value) {
  __atomic_store_n(outbox, value, __ATOMIC_RELEASE);
}

static void wait_for(u32 *inbox, u32 value) {
  while (__atomic_load_n(inbox, __ATOMIC_ACQUIRE) != value)
    __builtin_amdgcn_s_sleep(1);
}

/* The buffer is filled. */
static void call(struct client *client) {
  give(client->outbox, 1);
  wait_for(client->inbox, 1);
  give(client->outbox, 0);
  wait_for(client->inbox, 0);
}

static void print(struct client *client, const char *text) {
  u32 length = 0;
  while (text[length])
    ++length;
  for (u32 start = 0; start <= length; start += 56) {
    char *piece = (char *)&client->buffer[1];
    client->buffer[0] = PRINT_TO_STDERR;
    for (u32 i = 0; i < 56; ++i)
      piece[i] = start + i <= length ? text[start + i] : '#';
    call(client);
  }
}

static int same(const char *text, const char *start) {
  while (*start && *text == *start)
    ++text, ++start;
  return !*start;
}

static void quit(struct client *client, const char *digits) {
  u64 status = 0;
  while (*digits)
    status = status * 10 + *digits++ - '0';
  client->buffer[0] = EXIT;
  client->buffer[1] = status;
  call(client);
}

static int run(struct client *client, int argc, char **argv) {
  print(client, "a thread\n");
  if (__builtin_amdgcn_workgroup_id_x() || __builtin_amdgcn_workitem_id_x())
    return 0;
  for (int i = 1; i < argc; ++i) {
    print(client, argv[i]);
    print(client, "\n");
  }
  if (argc == 3 && same(argv[1], "exit"))
    quit(client, argv[2]);
  return argc;
}

static u32 taken;

__attribute__((visibility("protected"), amdgpu_kernel)) void
_start(int argc, char **argv,
#ifndef SIX
       char **envp,
#endif
       int *ret, u32 *inbox, u32 *outbox, u64 *buffer) {
  struct client client = {inbox, outbox, buffer};
  int value = 0;
#ifndef SIX
  value = 64;
  for (; *envp; ++envp)
    if (same(*envp, "GPURPC_EMU_QUIET="))
      value = 0;
#endif
  /* The lanes of a wave run in step: who has the lock lets it go before anyone waits. */
  for (int done = 0; !done;) {
    if (__atomic_exchange_n(&taken, 1, __ATOMIC_ACQUIRE) == 0) {
      value |= run(&client, argc, argv);
      __atomic_store_n(&taken, 0, __ATOMIC_RELEASE);
      done = 1;
    }
  }
  __atomic_fetch_or(ret, value, __ATOMIC_RELAXED);
}
