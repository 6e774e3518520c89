/* A program in C for the CPU device: what does not hold sets a bit of its value. Run with two
   arguments, 3 x 2 x 1 blocks and 5 x 4 x 2 threads. */
struct thread {
  unsigned block[3], thread[3], blocks[3], threads[3];
};

static volatile int order;
__attribute__((constructor)) static void first(void) { order = 1; }

void __gpurpc_begin(int argc, char **argv, char **envp, const struct thread *t) {
  order = order * 10 + 2 * (argc == 3 && argv[3] == 0 && envp[0] != 0 && t->threads[0] == 1);
}

void __gpurpc_start(int argc, char **argv, char **envp, int *ret, const struct thread *t) {
  int wrong = 0;
  if (order != 12)
    wrong |= 1;
  if (argc != 3 || argv[1][0] != 'a' || argv[2][0] != 'b' || argv[3] || !envp[0])
    wrong |= 2;
  if (t->blocks[0] != 3 || t->blocks[1] != 2 || t->blocks[2] != 1)
    wrong |= 4;
  if (t->threads[0] != 5 || t->threads[1] != 4 || t->threads[2] != 2)
    wrong |= 8;
  __atomic_fetch_or(ret, wrong, __ATOMIC_RELAXED);
}

void __gpurpc_end(const struct thread *t) {
  if (t->threads[0] != 1)
    __builtin_trap();
}

/* Traps on another grid, or where the first kernel ran. */
void plain(const struct thread *t) {
  if (order != 1 || t->threads[0] != 7)
    __builtin_trap();
}
