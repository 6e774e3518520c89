/* Each thread prints a line, counts with the host, and gets a message back that it sent. */
#include <gpurpc.h>

#include "text.h"

/* GPURPC_DEVICE is `__device__` for CUDA's compilers, nothing for others. */

/* Increments that each thread asks for. */
#define INCREMENTS 10

GPURPC_DEVICE static int count(void) {
    uint64_t start = 10 * gpurpc_index(), value = start;
    for (int i = 0; i < INCREMENTS; ++i)
        value = gpurpc_increment(value);
    return value == start + INCREMENTS;
}

/* A message of another length on each thread. */
GPURPC_DEVICE static int comes_back(void) {
    unsigned char message[251] = {0}, answer[251] = {0};
    uint64_t length = gpurpc_index() * 31 % sizeof message;
    for (uint64_t i = 0; i < length; ++i)
        message[i] = (unsigned char)(length + i);
    if (gpurpc_echo(message, length, answer, sizeof answer) != (int64_t)length)
        return 0;
    for (uint64_t i = 0; i < length; ++i)
        if (message[i] != answer[i])
            return 0;
    return 1;
}

/* As one whole: lines of other threads come before or after it. */
GPURPC_DEVICE static int print(line *line) {
    put_char(line, '\n');
    return gpurpc_write_stdout(line->text, line->length) == line->length;
}

GPURPC_MAIN(int argc, char **argv, char **envp) {
    line greeting = {0, {0}};
    (void)envp;
    put(&greeting, "hello from block ");
    put_number(&greeting, gpurpc_block_index());
    put(&greeting, " thread ");
    put_number(&greeting, gpurpc_thread_index());
    if (!print(&greeting))
        return 1;
    for (int i = 1; i < argc && gpurpc_index() == 0; ++i) {
        line argument = {0, {0}};
        put(&argument, "arg ");
        put_number(&argument, (uint32_t)i);
        put(&argument, ": ");
        put(&argument, argv[i]);
        if (!print(&argument))
            return 1;
    }
    return !count() << 1 | !comes_back() << 2;
}
