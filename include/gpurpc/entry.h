/* The kernels of an image. Part of gpurpc.h.
 *
 * GPURPC_MAIN(int argc, char **argv, char **envp) { ... return 0; } in one file of the image makes what
 * follows it the body of a function that each thread of the grid runs. An image with kernels of its own,
 * or without LLVM's libc, which has the client too, has GPURPC_CLIENT in one file instead.
 */
#ifndef GPURPC_ENTRY_H
#define GPURPC_ENTRY_H

/* The global that the host looks for. */
#if defined(GPURPC_CUDA)
#define GPURPC_CLIENT /* above: the image is one file */
#elif defined(GPURPC_CPU)
#define GPURPC_CLIENT                                                                                    \
    __thread gpurpc__self gpurpc__this;                                                                  \
    __attribute__((visibility("default"), used)) gpurpc__client GPURPC__CLIENT GPURPC__CLIENT_INIT;
#elif defined(GPURPC_AMDGCN)
#define GPURPC_CLIENT                                                                                    \
    __attribute__((visibility("protected"), used)) gpurpc__client GPURPC__CLIENT GPURPC__CLIENT_INIT;
#else
#define GPURPC_CLIENT __attribute__((used)) gpurpc__client GPURPC__CLIENT GPURPC__CLIENT_INIT;
#endif

#ifdef GPURPC_CPU

/* `_start` is the C runtime's name here, and each kernel is told which thread it is. */
#define GPURPC__KERNELS                                                                                  \
    GPURPC_C __attribute__((visibility("default"))) void __gpurpc_begin(                                 \
        int argc, char **argv, char **envp, const gpurpc__identity *who);                                \
    GPURPC_C __attribute__((visibility("default"))) void __gpurpc_start(                                 \
        int argc, char **argv, char **envp, int *ret, const gpurpc__identity *who);                      \
    GPURPC_C __attribute__((visibility("default"))) void __gpurpc_end(const gpurpc__identity *who);      \
    GPURPC_C void __gpurpc_begin(int argc, char **argv, char **envp, const gpurpc__identity *who) {      \
        (void)argc, (void)argv, (void)envp, (void)who;                                                   \
    }                                                                                                    \
    GPURPC_C void __gpurpc_start(int argc, char **argv, char **envp, int *ret,                           \
                                 const gpurpc__identity *who) {                                          \
        gpurpc__this.who = who;                                                                          \
        /* `gpurpc__end_thread` comes back here. */                                                      \
        if (!__builtin_setjmp(gpurpc__this.leave))                                                       \
            gpurpc__run(argc, argv, envp, ret);                                                          \
    }                                                                                                    \
    GPURPC_C void __gpurpc_end(const gpurpc__identity *who) { (void)who; }

#else

#if defined(GPURPC_CUDA)
#define GPURPC__KERNEL GPURPC_C __attribute__((global)) void
#elif defined(GPURPC_NVPTX)
#define GPURPC__KERNEL GPURPC_C __attribute__((nvptx_kernel)) void
#else
#define GPURPC__KERNEL GPURPC_C __attribute__((amdgpu_kernel, visibility("protected"))) void
#endif

#define GPURPC__KERNELS                                                                                  \
    GPURPC__KERNEL _begin(int argc, char **argv, char **envp);                                           \
    GPURPC__KERNEL _start(int argc, char **argv, char **envp, int *ret);                                 \
    GPURPC__KERNEL _end(void);                                                                           \
    GPURPC__KERNEL _begin(int argc, char **argv, char **envp) { (void)argc, (void)argv, (void)envp; }    \
    GPURPC__KERNEL _start(int argc, char **argv, char **envp, int *ret) {                                \
        gpurpc__run(argc, argv, envp, ret);                                                              \
    }                                                                                                    \
    GPURPC__KERNEL _end(void) {}

#endif

#define GPURPC_MAIN(...)                                                                                 \
    GPURPC_CLIENT                                                                                        \
    static GPURPC_DEVICE int gpurpc__main(__VA_ARGS__);                                                  \
    static __attribute__((noinline)) GPURPC_DEVICE void gpurpc__run(int argc, char **argv, char **envp,  \
                                                                    int *ret) {                          \
        int result = gpurpc__main(argc, argv, envp);                                                     \
        /* Relaxed: the host reads it when the kernel has ended. */                                      \
        if (result)                                                                                      \
            (void)gpurpc__or32(ret, (uint32_t)result);                                                   \
    }                                                                                                    \
    GPURPC__KERNELS                                                                                      \
    static GPURPC_DEVICE int gpurpc__main(__VA_ARGS__)

#endif
