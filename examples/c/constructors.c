/* Constructors by priority, and a destructor, as LLVM's libc runs them on NVIDIA GPUs: the first kernel and
 * the last one go through arrays that whoever loads the image makes. Each thread says that it found all
 * constructed. */
#include <gpurpc.h>

typedef void function(void);

GPURPC_CLIENT

/* The arrays, which the loader sets. */
function **__init_array_start, **__init_array_end, **__fini_array_start, **__fini_array_end;

static volatile uint32_t order;

__attribute__((constructor(200))) static void second(void) { order = order * 10 + 2; }
__attribute__((constructor(101))) static void first(void) { order = order * 10 + 1; }
__attribute__((constructor)) static void third(void) { order = order * 10 + 3; }
__attribute__((destructor)) static void ends(void) { (void)gpurpc_puts("destructed"); }

GPURPC__KERNEL _begin(int argc, char **argv, char **envp) {
    (void)argc, (void)argv, (void)envp;
    for (function **next = __init_array_start; next != __init_array_end; ++next)
        (*next)();
}

GPURPC__KERNEL _start(int argc, char **argv, char **envp, int *ret) {
    (void)argc, (void)argv, (void)envp, (void)ret;
    (void)gpurpc_puts(order == 123 ? "constructed" : "not constructed");
}

GPURPC__KERNEL _end(void) {
    for (function **next = __fini_array_end; next != __fini_array_start;)
        (*--next)();
}
