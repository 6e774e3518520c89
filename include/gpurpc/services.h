/* What the host does. Part of gpurpc.h.
 *
 * Each function means what C's function of that name means. Where the host refuses, it gives what C's gives
 * on failure. Lanes may call them in any number of groups; each has its own arguments.
 */
#ifndef GPURPC_SERVICES_H
#define GPURPC_SERVICES_H

/* A stream of the host: a handle, 0 for none. */
typedef uint64_t gpurpc_file;
#define GPURPC_STDIN ((gpurpc_file)1)
#define GPURPC_STDOUT ((gpurpc_file)2)
#define GPURPC_STDERR ((gpurpc_file)3)
#define GPURPC_EOF (-1)
#define GPURPC_SEEK_SET 0
#define GPURPC_SEEK_CUR 1
#define GPURPC_SEEK_END 2

GPURPC_INLINE uint64_t gpurpc_length(const char *text) {
    uint64_t length = 0;
    while (text[length])
        ++length;
    return length;
}

/* Sends up to three words and gets one; `failed` if the conversation ends before. */
GPURPC_ONCE uint64_t gpurpc__call(uint32_t opcode, uint64_t a, uint64_t b, uint64_t c, uint64_t failed) {
    uint64_t words[3] = {a, b, c}, word = failed;
    gpurpc_port port = gpurpc_open(GPURPC_OPCODE(opcode));
    if (gpurpc_send(&port, words, 3) || gpurpc_recv(&port, &word, 1))
        word = failed;
    gpurpc_close(&port);
    return word;
}

/* Sends a word and waits for nothing. */
GPURPC_ONCE void gpurpc__tell(uint32_t opcode, uint64_t word) {
    gpurpc_port port = gpurpc_open(GPURPC_OPCODE(opcode));
    (void)gpurpc_send(&port, &word, 1);
    gpurpc_close(&port);
}

/* Sends one message, or two if `other` is no null pointer, and gets a word. */
GPURPC_ONCE uint64_t gpurpc__say(uint32_t opcode, const void *data, uint64_t length, const void *other,
                                 uint64_t other_length, uint64_t failed) {
    uint64_t word = failed;
    gpurpc_port port = gpurpc_open(GPURPC_OPCODE(opcode));
    if (gpurpc_send_n(&port, data, length) ||
        /* By opcode, which is the same on all lanes. */
        (opcode == GPURPC_RENAME && gpurpc_send_n(&port, other, other_length)) ||
        gpurpc_recv(&port, &word, 1))
        word = failed;
    gpurpc_close(&port);
    return word;
}

/* ---- text ---- */

/* Bytes that were written. */
GPURPC_INLINE uint64_t gpurpc_write_stdout(const void *data, uint64_t length) {
    return gpurpc__say(GPURPC_WRITE_TO_STDOUT, data, length, 0, 0, 0);
}
GPURPC_INLINE uint64_t gpurpc_write_stderr(const void *data, uint64_t length) {
    return gpurpc__say(GPURPC_WRITE_TO_STDERR, data, length, 0, 0, 0);
}
/* A line; bytes that were written, the newline counted, or GPURPC_EOF. */
GPURPC_INLINE int gpurpc_puts(const char *text) {
    uint64_t length = gpurpc_length(text);
    uint64_t written = gpurpc__say(GPURPC_WRITE_TO_STDOUT_NEWLINE, text, length, 0, 0, 0);
    return written == length + 1 ? (int)written : GPURPC_EOF;
}

/* ---- files ---- */

GPURPC_ONCE gpurpc_file gpurpc_fopen(const char *path, const char *mode) {
    uint64_t words[8] = {0}, file = 0;
    for (uint32_t i = 0; i < 63 && mode[i]; ++i)
        words[i / 8] |= (uint64_t)(unsigned char)mode[i] << 8 * (i % 8);
    gpurpc_port port = gpurpc_open(GPURPC_OPCODE(GPURPC_OPEN_FILE));
    if (gpurpc_send_n(&port, path, gpurpc_length(path) + 1) || gpurpc_send(&port, words, 8) ||
        gpurpc_recv(&port, &file, 1))
        file = 0;
    gpurpc_close(&port);
    return file;
}

GPURPC_ONCE uint64_t gpurpc__write_stream(const void *data, uint64_t length, gpurpc_file file) {
    uint64_t word = 0;
    gpurpc_port port = gpurpc_open(GPURPC_OPCODE(GPURPC_WRITE_TO_STREAM));
    if (gpurpc_send(&port, &file, 1) || gpurpc_send_n(&port, data, length) || gpurpc_recv(&port, &word, 1))
        word = 0;
    gpurpc_close(&port);
    return word;
}

/* Bytes that were written. */
GPURPC_INLINE uint64_t gpurpc_fwrite(const void *data, uint64_t length, gpurpc_file file) {
    if (file == GPURPC_STDOUT)
        return gpurpc_write_stdout(data, length);
    if (file == GPURPC_STDERR)
        return gpurpc_write_stderr(data, length);
    return gpurpc__write_stream(data, length, file);
}

/* Bytes that were read. */
GPURPC_ONCE uint64_t gpurpc_fread(void *data, uint64_t size, gpurpc_file file) {
    uint64_t words[2] = {size, file}, length, word = 0;
    gpurpc_port port = gpurpc_open(GPURPC_OPCODE(GPURPC_READ_FROM_STREAM));
    if (gpurpc_send(&port, words, 2) || gpurpc_recv_n(&port, data, size, &length) ||
        gpurpc_recv(&port, &word, 1))
        word = 0;
    gpurpc_close(&port);
    return word < size ? word : size;
}

/* The next line, of at most `count - 1` bytes, or a null pointer. */
GPURPC_ONCE char *gpurpc_fgets(char *line, int count, gpurpc_file file) {
    uint64_t words[2] = {(uint64_t)(int64_t)count, file}, length = 0;
    gpurpc_port port = gpurpc_open(GPURPC_OPCODE(GPURPC_READ_FGETS));
    if (gpurpc_send(&port, words, 2) ||
        gpurpc_recv_n(&port, line, count > 0 ? (uint64_t)count : 0, &length))
        length = 0;
    gpurpc_close(&port);
    return length ? line : (char *)0;
}

GPURPC_INLINE int gpurpc_feof(gpurpc_file file) { return (int)gpurpc__call(GPURPC_FEOF, file, 0, 0, 0); }
GPURPC_INLINE int gpurpc_ferror(gpurpc_file file) { return (int)gpurpc__call(GPURPC_FERROR, file, 0, 0, 1); }
GPURPC_INLINE void gpurpc_clearerr(gpurpc_file file) { (void)gpurpc__call(GPURPC_CLEARERR, file, 0, 0, 0); }
GPURPC_INLINE int gpurpc_fseek(gpurpc_file file, int64_t offset, int whence) {
    return (int)gpurpc__call(GPURPC_FSEEK, file, (uint64_t)offset, (uint64_t)(int64_t)whence, ~0ull);
}
GPURPC_INLINE int64_t gpurpc_ftell(gpurpc_file file) {
    return (int64_t)gpurpc__call(GPURPC_FTELL, file, 0, 0, ~0ull);
}
GPURPC_INLINE int gpurpc_fflush(gpurpc_file file) {
    return (int)gpurpc__call(GPURPC_FFLUSH, file, 0, 0, ~0ull);
}
/* The standard streams are written out only: they stay open. */
GPURPC_INLINE int gpurpc_fclose(gpurpc_file file) {
    if (file == GPURPC_STDIN || file == GPURPC_STDOUT || file == GPURPC_STDERR)
        return gpurpc_fflush(file);
    return (int)gpurpc__call(GPURPC_CLOSE_FILE, file, 0, 0, ~0ull);
}
GPURPC_INLINE int gpurpc_ungetc(int character, gpurpc_file file) {
    return (int)gpurpc__call(GPURPC_UNGETC, (uint64_t)(int64_t)character, file, 0, ~0ull);
}
GPURPC_INLINE int gpurpc_remove(const char *path) {
    return (int)gpurpc__say(GPURPC_REMOVE, path, gpurpc_length(path) + 1, 0, 0, ~0ull);
}
GPURPC_INLINE int gpurpc_rename(const char *from, const char *to) {
    return (int)gpurpc__say(GPURPC_RENAME, from, gpurpc_length(from) + 1, to, gpurpc_length(to) + 1, ~0ull);
}

/* ---- memory ---- */

/* From 2 MiB on aligned to that: slabs for an allocator. */
GPURPC_INLINE void *gpurpc_malloc(uint64_t size) {
    return (void *)(uintptr_t)gpurpc__call(GPURPC_MALLOC, size, 0, 0, 0);
}
GPURPC_INLINE void gpurpc_free(void *memory) { gpurpc__tell(GPURPC_FREE, (uint64_t)(uintptr_t)memory); }

/* ---- the host ---- */

/* With the host's permission only; a null pointer asks whether there is a shell. */
GPURPC_INLINE int gpurpc_system(const char *command) {
    uint64_t length = command ? gpurpc_length(command) + 1 : 0;
    return (int)gpurpc__say(GPURPC_SYSTEM, command, length, 0, 0, ~0ull);
}

/* Calls the host's function `function` with a copy of these bytes. With the host's permission only. */
GPURPC_ONCE uint64_t gpurpc_host_call(uint64_t function, const void *data, uint64_t length) {
    uint64_t word = ~0ull;
    gpurpc_port port = gpurpc_open(GPURPC_OPCODE(GPURPC_HOST_CALL));
    if (gpurpc_send_n(&port, data, length) || gpurpc_send(&port, &function, 1) ||
        gpurpc_recv(&port, &word, 1))
        word = ~0ull;
    gpurpc_close(&port);
    return word;
}

/* ---- the end ---- */

/* Ends the program; of lanes that call this together the lowest one's status counts. */
GPURPC_ONCE void gpurpc_exit(int status) {
    uint64_t word = (uint32_t)status;
    gpurpc_port port = gpurpc_open(GPURPC_OPCODE(GPURPC_EXIT));
    (void)(gpurpc_send(&port, 0, 0) || gpurpc_recv(&port, 0, 0) || gpurpc_send(&port, &word, 1));
    gpurpc_close(&port);
    gpurpc__end_thread();
}

/* Ends the program by SIGABRT. */
GPURPC_ONCE void gpurpc_abort(void) {
    gpurpc_port port = gpurpc_open(GPURPC_OPCODE(GPURPC_ABORT));
    (void)(gpurpc_send(&port, 0, 0) || gpurpc_recv(&port, 0, 0) || gpurpc_send(&port, 0, 0));
    gpurpc_close(&port);
    gpurpc__end_thread();
}

/* ---- tests ---- */

GPURPC_ONCE void gpurpc_noop(void) {
    gpurpc_port port = gpurpc_open(GPURPC_OPCODE(GPURPC_NOOP));
    (void)gpurpc_send(&port, 0, 0);
    gpurpc_close(&port);
}

GPURPC_INLINE uint64_t gpurpc_increment(uint64_t value) {
    return gpurpc__call(GPURPC_TEST_INCREMENT, value, 0, 0, ~0ull);
}

/* Sends a message and gets it back; its length, or -1. */
GPURPC_ONCE int64_t gpurpc_echo(const void *data, uint64_t size, void *back, uint64_t room) {
    uint64_t length = 0;
    gpurpc_port port = gpurpc_open(GPURPC_OPCODE(GPURPC_TEST_STREAM));
    if (gpurpc_send_n(&port, data, size) || gpurpc_recv_n(&port, back, room, &length))
        length = ~0ull;
    gpurpc_close(&port);
    return (int64_t)length;
}

/* A fixed order of sends and receives, the last one a send or not; the counter, 9 if all is well. */
GPURPC_ONCE uint64_t gpurpc_test_interface(int ends_with_send) {
    uint64_t n = 0, flag = ends_with_send != 0;
    gpurpc_port port = gpurpc_open(GPURPC_OPCODE(GPURPC_TEST_INTERFACE));
#define GPURPC__COUNT (n += 1, gpurpc_send(&port, &n, 1))
    int status = gpurpc_send(&port, &flag, 1) || GPURPC__COUNT || gpurpc_recv(&port, &n, 1) || GPURPC__COUNT ||
                 gpurpc_recv(&port, &n, 1) || GPURPC__COUNT || GPURPC__COUNT || gpurpc_recv(&port, &n, 1) ||
                 gpurpc_recv(&port, &n, 1);
    /* The lanes of a port go the same way: the lowest one's. */
    if (!status && gpurpc__broadcast(port.mask, flag))
        status = GPURPC__COUNT;
    else if (!status)
        status = gpurpc_recv(&port, &n, 1);
#undef GPURPC__COUNT
    gpurpc_close(&port);
    return status ? 0 : n;
}

#endif
