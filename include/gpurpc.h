/* gpurpc: C and C++ programs on a GPU call their host.
 *
 * Freestanding, for device code that clang or nvcc compiles. Targets: nvptx64, amdgcn, and x86_64, where
 * each thread of the CPU device is a warp of one lane. Define before the include, the same in all files of
 * an image:
 *
 *   (nothing)        the layout of LLVM's libc from spring 2026 on: `__llvm_rpc_client`, 2096 bytes
 *   GPURPC_LLVM_22   that of LLVM 20 to 22: `__llvm_rpc_client`, 552 bytes
 *   GPURPC_LINE      gpurpc's own layout `Line`: `__gpurpc_client`; docs/protocol.md describes it
 *
 * A program is
 *
 *   #include <gpurpc.h>
 *   GPURPC_MAIN(int argc, char **argv, char **envp) { gpurpc_puts("hello"); return 0; }
 *
 * and each thread of the grid runs it; the exit status is the low 8 bits of all results or-ed.
 *
 *   gpurpc/target.h     memory, warps and the grid: all that differs between targets
 *   gpurpc/llvm.h, line.h   the layouts: what a port is made of
 *   gpurpc/port.h       ports: open, send, receive, messages of any length, close
 *   gpurpc/services.h   what the host does: text, files, memory, exit, tests
 *   gpurpc/printf.h     formatted output
 *   gpurpc/entry.h      GPURPC_MAIN
 *
 * What begins with `gpurpc__` is not for programs.
 *
 * The rule of ports: the lanes that open one together call each operation on it together, in the same
 * order. A service takes its mask itself and is done with it when it returns, so lanes may call those as
 * they like. No result of the host is an address that it can be made to follow: files are handles.
 */
#ifndef GPURPC_H
#define GPURPC_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Opcodes: 0x63000000 + n for these, 0x75000000 + n with n < 0x4000 for a program's own. */
#define GPURPC_OPCODE(n) (0x63000000u + (n))
#define GPURPC_USER_OPCODE(n) (0x75000000u + (n))
enum {
    GPURPC_NOOP = 0,
    GPURPC_EXIT = 1,
    GPURPC_WRITE_TO_STDOUT = 2,
    GPURPC_WRITE_TO_STDERR = 3,
    GPURPC_WRITE_TO_STREAM = 4,
    GPURPC_WRITE_TO_STDOUT_NEWLINE = 5,
    GPURPC_READ_FROM_STREAM = 6,
    GPURPC_READ_FGETS = 7,
    GPURPC_OPEN_FILE = 8,
    GPURPC_CLOSE_FILE = 9,
    GPURPC_MALLOC = 10,
    GPURPC_FREE = 11,
    GPURPC_HOST_CALL = 12,
    GPURPC_ABORT = 13,
    GPURPC_FEOF = 14,
    GPURPC_FERROR = 15,
    GPURPC_CLEARERR = 16,
    GPURPC_FSEEK = 17,
    GPURPC_FTELL = 18,
    GPURPC_FFLUSH = 19,
    GPURPC_UNGETC = 20,
    GPURPC_PRINTF_TO_STDOUT = 21,
    GPURPC_PRINTF_TO_STDERR = 22,
    GPURPC_PRINTF_TO_STREAM = 23,
    GPURPC_PRINTF_TO_STDOUT_PACKED = 24,
    GPURPC_PRINTF_TO_STDERR_PACKED = 25,
    GPURPC_PRINTF_TO_STREAM_PACKED = 26,
    GPURPC_REMOVE = 27,
    GPURPC_RENAME = 28,
    GPURPC_SYSTEM = 29,
    GPURPC_TEST_INCREMENT = 0x8000,
    GPURPC_TEST_INTERFACE = 0x8001,
    GPURPC_TEST_STREAM = 0x8002
};

#include "gpurpc/target.h"
#if defined(GPURPC_LINE)
#include "gpurpc/line.h"
#else
#include "gpurpc/llvm.h"
#endif
#include "gpurpc/port.h"
#include "gpurpc/services.h"
#include "gpurpc/printf.h"
#include "gpurpc/entry.h"

#endif
