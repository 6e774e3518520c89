/* Tests that misuse the protocol. Part of opcodes.c.
 *
 * A conversation that is given up halfway keeps its port under LLVM's layout, whose wire does not say where
 * one begins: closing it would hand the rest of the conversation to the next call.
 */
#ifdef GPURPC_LINE
#define ABANDON(port) gpurpc_close(port)
#else
#define ABANDON(port) (void)(port)
#endif

/* The host goes on, on other ports. */
#define STILL_SERVED                                                                                     \
    do {                                                                                                 \
        char back[100];                                                                                  \
        CHECK(gpurpc_increment(41) == 42);                                                               \
        CHECK(gpurpc_echo(junk, 100, back, sizeof back) == 100 && back[99] == junk[99]);                 \
    } while (0)

/* Bytes without a NUL. */
#define JUNK                                                                                             \
    char junk[128];                                                                                      \
    for (uint32_t i = 0; i < sizeof junk; ++i)                                                           \
        junk[i] = content(c, i)

/* Sends a message, another one if there are two, a word if there is one, and gets a word. */
ONCE uint64_t exchange(uint32_t opcode, const char *data, uint64_t length, int messages, int word) {
    uint64_t value = 0x4141414141414141ull, result = 0;
    gpurpc_port port = gpurpc_open(GPURPC_OPCODE(opcode));
    (void)((messages > 1 && gpurpc_send_n(&port, data, length)) || gpurpc_send_n(&port, data, length) ||
           (word && gpurpc_send(&port, &value, 1)) || gpurpc_recv(&port, &result, 1));
    gpurpc_close(&port);
    return result;
}

/* Whole messages of the edges' sizes that make no sense to their opcode. */
TEST(hostile_messages) {
    const uint16_t sizes[] = {0, 1, 55, 56, 57, 64, 127};
    const uint32_t count = sizeof sizes / sizeof sizes[0];
    JUNK;
    for (uint32_t i = 0; i < count; ++i) {
        uint64_t size = sizes[(i + c->index) % count];
        CHECK(exchange(GPURPC_OPEN_FILE, junk, size, 1, 1) == 0);
        CHECK((int)exchange(GPURPC_REMOVE, junk, size, 1, 0) != 0);
        CHECK((int)exchange(GPURPC_RENAME, junk, size, 2, 0) != 0);
        /* None at all asks whether there is a shell. */
        if (!c->allowed)
            CHECK((int)exchange(GPURPC_SYSTEM, junk, size, 1, 0) != 0 || size == 0);
        (void)exchange(GPURPC_HOST_CALL, junk, size, 1, 1);
    }
    STILL_SERVED;
}

/* A message of `size` bytes, as it says, which stops after three packets. */
ONCE void stops(uint32_t opcode, uint64_t size, int handle) {
    uint64_t words[8] = {size, 0x2F2F2F2F2F2F2F2Full, 4, 4, 4, 4, 4, 4};
    gpurpc_port port = gpurpc_open(GPURPC_OPCODE(opcode));
    if (handle)
        (void)gpurpc_send(&port, words + 2, 1);
    for (int i = 0; i < 3 && !gpurpc__own(&port); ++i) {
        /* Where a message's packets lie, which is not where those of gpurpc_send do. */
        for (uint32_t k = 0; k < 4; ++k)
            gpurpc__write16(port.packets + gpurpc__unit(port.first, k), words[2 * k], words[2 * k + 1]);
        gpurpc__hand_over(&port, 1);
        words[0] = words[1];
    }
    ABANDON(&port);
}

/* Sizes that no message has. Another one on each lane. */
TEST(hostile_sizes) {
    const uint64_t sizes[] = {1ull << 32, 1ull << 63, ~0ull, (1ull << 63) - 1};
    JUNK;
    for (uint32_t i = 0; i < 2; ++i) {
        uint64_t size = sizes[(i + c->index) % 4];
        stops(GPURPC_WRITE_TO_STDERR, size, 0);
        stops(GPURPC_WRITE_TO_STREAM, size, 1);
        stops(GPURPC_OPEN_FILE, size, 0);
        stops(GPURPC_HOST_CALL, size, 0);
        stops(GPURPC_PRINTF_TO_STDERR, size, 0);
        stops(GPURPC_PRINTF_TO_STREAM_PACKED, size, 1);
        stops(GPURPC_RENAME, size, 0);
        stops(GPURPC_SYSTEM, size, 0);
        CHECK(gpurpc_increment(size) == size + 1);
    }
    STILL_SERVED;
}

/* The answer to this one has no word for a failure. */
TEST(hostile_stream) {
    JUNK;
    stops(GPURPC_TEST_STREAM, 1ull << (32 + c->index % 30), 0);
    STILL_SERVED;
}

/* A mode that fills its packet without a NUL. */
ONCE gpurpc_file open_by(context *c, const char *suffix, uint64_t mode) {
    uint64_t words[8], file = 0;
    line name;
    path(&name, c, suffix);
    for (int i = 0; i < 8; ++i)
        words[i] = mode;
    gpurpc_port port = gpurpc_open(GPURPC_OPCODE(GPURPC_OPEN_FILE));
    (void)(gpurpc_send_n(&port, name.text, name.length + 1) || gpurpc_send(&port, words, 8) ||
           gpurpc_recv(&port, &file, 1));
    gpurpc_close(&port);
    return file;
}

TEST(hostile_modes) {
    JUNK;
    CHECK(gpurpc_fclose(made(c, "", "r")) == 0);
    CHECK(open_by(c, "", 0x7777777777777777ull) == 0); /* w and w and w ... */
    CHECK(open_by(c, "", 0x7272727272727272ull) == 0); /* r ... */
    CHECK(open_by(c, "", ~0ull) == 0);
    CHECK(open_by(c, "", 0) == 0);
    line text = {0, {0}};
    put_content(&text, c);
    CHECK(has(c, "", &text)); /* none of them has emptied it */
    STILL_SERVED;
}

TEST(hostile_paths) {
    JUNK;
    uint64_t mode = 'r', file = 0;
    gpurpc_port port = gpurpc_open(GPURPC_OPCODE(GPURPC_OPEN_FILE));
    (void)(gpurpc_send_n(&port, junk, 1 + c->index % 127) || gpurpc_send(&port, &mode, 1) ||
           gpurpc_recv(&port, &file, 1));
    gpurpc_close(&port);
    CHECK(file == 0);
    CHECK((int)exchange(GPURPC_REMOVE, junk, 1 + c->index % 127, 1, 0) != 0);
    CHECK((int)exchange(GPURPC_RENAME, junk, 1 + c->index % 127, 2, 0) != 0);
    /* A NUL in the middle of a path. */
    junk[c->index % 50] = 0;
    CHECK((int)exchange(GPURPC_REMOVE, junk, 100, 1, 0) != 0);
    junk[c->index % 50] = 'x';
    STILL_SERVED;
}

/* Sends `size` bytes of arguments, however many are asked for, and empty strings. */
ONCE void misprints(context *c, uint32_t opcode, const char *format, uint64_t length, uint64_t size) {
    uint64_t words[2] = {0, 0}, block[16], handle = GPURPC_STDERR;
    for (int i = 0; i < 16; ++i)
        block[i] = 0x0101010101010101ull * (c->index % 251 + 1);
    gpurpc_port port = gpurpc_open(GPURPC_OPCODE(opcode));
    int status = ((opcode == GPURPC_PRINTF_TO_STREAM || opcode == GPURPC_PRINTF_TO_STREAM_PACKED) &&
                  gpurpc_send(&port, &handle, 1)) ||
                 gpurpc_send_n(&port, format, length) || gpurpc_recv(&port, words, 1) ||
                 gpurpc_send_n(&port, block, size);
    /* No format below asks for more strings than this. */
    for (int i = 0; i < 40 && !status; ++i) {
        status = gpurpc_recv(&port, words, 2);
        if (status || !gpurpc__any(port.mask, words[1] != 0))
            break;
        status = gpurpc_send_n(&port, "", 0);
    }
    gpurpc_close(&port);
}

TEST(hostile_formats) {
    JUNK;
    const char *formats[] = {"%d %s %lld %f %s %*.*d %s", "%s%s%s%s%s%s%s%s%s%s", "%n%m%1$d%",
                             "%2147483647d", "%.2147483647f", "%*d", "%99999999999999999999d", "%l"};
    const uint32_t count = sizeof formats / sizeof formats[0];
    for (uint32_t i = 0; i < count; ++i) {
        const char *format = formats[(i + c->index) % count];
        uint64_t length = gpurpc_length(format);
        misprints(c, GPURPC_PRINTF_TO_STREAM, format, length + 1, c->index % 5);
        misprints(c, GPURPC_PRINTF_TO_STREAM_PACKED, format, length + 1, c->index % 5);
        /* Without its NUL, and cut short. */
        misprints(c, GPURPC_PRINTF_TO_STREAM, format, c->index % (length + 1), 128);
    }
    misprints(c, GPURPC_PRINTF_TO_STREAM, junk, 0, 0);
    STILL_SERVED;
}

TEST(hostile_handles) {
    char part[16];
    JUNK;
    const uint64_t handles[] = {0, ~3ull, 4, 0x1234567890ABCDECull, 1ull << 63, 1ull << 32};
    for (uint32_t i = 0; i < 6; ++i) {
        gpurpc_file file = handles[(i + c->index) % 6];
        CHECK(gpurpc_fwrite("x", 1, file) == 0);
        CHECK(gpurpc_fclose(file) == GPURPC_EOF);
        CHECK(gpurpc_fread(part, sizeof part, file) == 0);
        CHECK(gpurpc_fgets(part, sizeof part, file) == 0);
        CHECK(gpurpc_fseek(file, 0, GPURPC_SEEK_SET) == -1);
        CHECK(gpurpc_ftell(file) == -1);
        CHECK(gpurpc_ungetc('x', file) == GPURPC_EOF);
        CHECK(gpurpc_fprintf(file, "%d", 1) < 0);
        (void)gpurpc_feof(file);
        (void)gpurpc_ferror(file);
        gpurpc_clearerr(file);
        (void)gpurpc_fflush(file);
    }
    /* All bits: the tag of a standard stream on what is none. */
    (void)gpurpc_fclose(~0ull);
    (void)gpurpc_fread(part, 1, ~0ull);
    STILL_SERVED;
}

/* More asked for than there is, or than a message may have. */
TEST(hostile_reads) {
    const uint64_t sizes[] = {1ull << 32, 1ull << 63, ~0ull, 57};
    JUNK;
    gpurpc_file file = made(c, "", "r");
    for (uint32_t i = 0; i < 4; ++i) {
        uint64_t words[2] = {sizes[(i + c->index) % 4], file}, length = 0, got = 0;
        gpurpc_port port = gpurpc_open(GPURPC_OPCODE(GPURPC_READ_FROM_STREAM));
        if (!gpurpc_send(&port, words, 2) && !gpurpc_recv_n(&port, junk, sizeof junk, &length) &&
            !gpurpc_recv(&port, &got, 1))
            CHECK(got <= size_of(c));
        gpurpc_close(&port);
        port = gpurpc_open(GPURPC_OPCODE(GPURPC_READ_FGETS));
        if (!gpurpc_send(&port, words, 2))
            (void)gpurpc_recv_n(&port, junk, sizeof junk, &length);
        gpurpc_close(&port);
    }
    CHECK(gpurpc_fgets(junk, 0, file) == 0);
    CHECK(gpurpc_fgets(junk, -1, file) == 0);
    CHECK(gpurpc_fclose(file) == 0);
    CHECK(gpurpc_malloc(1ull << 63) == 0 && gpurpc_malloc(~0ull) == 0);
    STILL_SERVED;
}

/* As gpurpc_send, but the header says `mask`. */
GPURPC_INLINE void send_as(gpurpc_port *port, uint64_t mask, uint64_t word) {
    gpurpc__write16(port->packets + gpurpc__unit(gpurpc__lane(), 0), word, 0);
    gpurpc__sync(port->mask);
    port->number = GPURPC__NEXT(port->number);
    if (gpurpc__leads(port->mask))
        gpurpc__publish(port->index, port->number, port->opcode, mask, 1, 1);
    port->opening = port->owned = 0;
}

/* Lanes that do not exist, and none at all. */
TEST(hostile_masks) {
    uint64_t ghosts = GPURPC__LANES < 64 ? ~0ull << GPURPC__LANES % 64 : 0, word = 0;
    JUNK;
    gpurpc_port port = gpurpc_open(GPURPC_OPCODE(GPURPC_TEST_INCREMENT));
    send_as(&port, port.mask | ghosts, c->index);
    CHECK(gpurpc_recv(&port, &word, 1) == 0 && word == c->index + 1ull);
    gpurpc_close(&port);
    /* Nobody waits for these. */
    const uint32_t opcodes[] = {GPURPC_NOOP, GPURPC_TEST_INCREMENT, GPURPC_WRITE_TO_STDERR, GPURPC_FEOF};
    for (int i = 0; i < 4; ++i) {
        port = gpurpc_open(GPURPC_OPCODE(opcodes[i]));
        send_as(&port, i % 2 ? ghosts : 0, 0);
        ABANDON(&port);
    }
    STILL_SERVED;
}
