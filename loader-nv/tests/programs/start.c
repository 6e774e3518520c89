/* Start-up as LLVM's libc for GPUs has it, without that library. */
typedef unsigned long u64;
typedef void (*constructor)(int, char **, char **);
typedef void (*destructor)(void);

#define KERNEL __attribute__((visibility("protected"), nvptx_kernel)) void
#define POINTER __attribute__((visibility("protected"))) u64 *

POINTER __init_array_start = 0;
POINTER __init_array_end = 0;
POINTER __fini_array_start = 0;
POINTER __fini_array_end = 0;

volatile int order;
__attribute__((constructor)) void second(void) { order = order * 10 + 2; }
__attribute__((constructor(101))) void first(void) { order = order * 10 + 1; }
__attribute__((destructor(102))) void last(void) { order = order * 10 + 3; }

KERNEL _begin(int argc, char **argv, char **envp) {
  for (u64 *f = __init_array_start; f != __init_array_end; ++f)
    ((constructor)*f)(argc, argv, envp);
}

KERNEL _start(int argc, char **argv, char **envp, int *ret) {
  __atomic_fetch_or(ret, order == 12 ? argc : 128, __ATOMIC_RELAXED);
}

KERNEL _end(int status) {
  for (u64 *f = __fini_array_end; f != __fini_array_start;)
    ((destructor)*--f)();
  order = status;
}

KERNEL plain(void) { order = 7; }
