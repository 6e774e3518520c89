/* A program whose client is as an LLVM libc of some release has it:
 * OLD      an object of 552 bytes that a variable points to
 * NULL_OLD such a variable, which points to nothing
 * UNKNOWN  an object of a size that no release has
 * otherwise the object of 552 bytes by its name. */
#define GPURPC_LLVM_22
#ifdef OLD
#define __llvm_rpc_client the_object
#endif
#if defined(UNKNOWN) || defined(NULL_OLD)
#include <stdint.h>
#ifdef UNKNOWN
uint64_t __llvm_rpc_client[100] = {1};
#else
void *__llvm_libc_rpc_client = 0;
#endif
void __gpurpc_start(int argc, char **argv, char **envp, int *ret, const void *thread) {
    (void)argc, (void)argv, (void)envp, (void)ret, (void)thread;
}
#else
#include <gpurpc.h>

#ifdef OLD
__attribute__((visibility("default"))) void *__llvm_libc_rpc_client = &the_object;
#endif

GPURPC_MAIN(int argc, char **argv, char **envp) {
    (void)argc, (void)argv, (void)envp;
    gpurpc_puts("served");
    return gpurpc_increment(41) == 42 ? 0 : 1;
}
#endif
