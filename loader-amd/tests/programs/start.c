/* Start-up as LLVM's libc for GPUs has it, without that library: what does not hold sets a bit of the
   program's value. Run with two arguments, 3 x 2 x 1 blocks and 5 x 4 x 2 threads. */
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;
typedef void (*constructor)(int, char **, char **);
typedef void (*destructor)(void);

#define KERNEL __attribute__((visibility("protected"), amdgpu_kernel)) void

extern constructor __init_array_start[], __init_array_end[];
extern destructor __fini_array_start[], __fini_array_end[];

/* Not the frequency: the loader knows better. */
__attribute__((visibility("protected"),
               address_space(4))) const u64 __llvm_libc_clock_freq = 25000000;
typedef volatile const __attribute__((address_space(4))) u64 frequency;

static volatile int order;
__attribute__((constructor(101))) static void first(void) { order = order * 10 + 1; }
__attribute__((constructor)) static void second(void) { order = order * 10 + 2; }
__attribute__((destructor(102))) static void last(void) { order = order * 10 + 3; }

KERNEL _begin(int argc, char **argv, char **envp) {
  for (constructor *f = __init_array_start; f != __init_array_end; ++f)
    (*f)(argc, argv, envp);
}

KERNEL _start(int argc, char **argv, char **envp, int *ret) {
  const u32 *blocks = (const void *)__builtin_amdgcn_implicitarg_ptr();
  const u16 *halves = (const u16 *)blocks;
  int wrong = 0;
  if (order != 12)
    wrong |= 1;
  if (argc != 3 || argv[1][0] != 'a' || argv[2][0] != 'b' || argv[3] || !envp[0])
    wrong |= 2;
  if (blocks[0] != 3 || blocks[1] != 2 || blocks[2] != 1)
    wrong |= 4;
  if (halves[6] != 5 || halves[7] != 4 || halves[8] != 2 || halves[32] != 3)
    wrong |= 8;
  if (*(frequency *)&__llvm_libc_clock_freq != 100000000)
    wrong |= 16;
  __atomic_fetch_or(ret, wrong, __ATOMIC_RELAXED);
}

/* Traps where a destructor does not run, or a status is not 0. */
KERNEL _end(int status) {
  for (destructor *f = __fini_array_end; f != __fini_array_start;)
    (*--f)();
  if (order != 123 || status != 0)
    __builtin_trap();
}

/* Traps with constructors, and on another grid. */
KERNEL plain(void) {
  if (order != 0 || __builtin_amdgcn_workgroup_size_x() != 7)
    __builtin_trap();
}

KERNEL with_argument(long x) { order = x; }
