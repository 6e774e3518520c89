/* A test for each opcode, run on the device: `opcodes NAME FOLDER [allowed]`; `opcodes list` names them.
 *
 * Each thread of the grid runs the test: first all, then a third of each warp while the others make
 * increments. Messages have another length on each lane. What fails is said on standard error, and makes
 * the exit status 1. Files that stay in FOLDER, and what is printed, are for the host to compare.
 *
 * `exit`, `abort` and `unknown` end the run themselves. `system` expects to be refused, unless there is a
 * third argument. The tests in `hostile.h` misuse the protocol; what is checked there is that the host gives
 * the failure value and goes on to serve.
 */
#include <gpurpc.h>

#include "text.h"

#define ONCE GPURPC_DEVICE static __attribute__((noinline))

typedef struct context {
    const char *test;
    const char *folder;
    int allowed;
    uint32_t index;
    uint32_t turn;
    int failures;
} context;

/* What a thread's bytes are: the host knows this too. */
GPURPC_DEVICE static char content(const context *c, uint64_t i) {
    return (char)('a' + (c->index * 7 + c->turn * 5 + i * 3) % 26);
}
GPURPC_DEVICE static uint64_t size_of(const context *c) { return (c->index * 37 + c->turn * 11) % 200; }

GPURPC_DEVICE static void put_content(line *line, const context *c) {
    for (uint64_t i = 0; i < size_of(c); ++i)
        put_char(line, content(c, i));
}

/* `TEST INDEX ROUND`: what begins each line and each file's name. */
GPURPC_DEVICE static void put_name(line *line, const context *c, char between) {
    put(line, c->test);
    put_char(line, between);
    put_number(line, c->index);
    put_char(line, between);
    put_number(line, c->turn);
}

/* The path of a file of this thread. */
ONCE void path(line *line, const context *c, const char *suffix) {
    line->length = 0;
    put(line, c->folder);
    put_char(line, '/');
    put_name(line, c, '-');
    put(line, suffix);
    line->text[line->length] = 0;
}

ONCE void fail(context *c, int number, const char *what) {
    line line = {0, {0}};
    c->failures++;
    put(&line, "opcodes: ");
    put_name(&line, c, ' ');
    put(&line, ": line ");
    put_number(&line, (uint32_t)number);
    put(&line, ": ");
    put(&line, what);
    put_char(&line, '\n');
    (void)gpurpc_write_stderr(line.text, line.length);
}
#define CHECK(condition) ((condition) ? (void)0 : fail(c, __LINE__, #condition))

/* A file of this thread with its content. */
ONCE gpurpc_file made(context *c, const char *suffix, const char *mode) {
    line name, text = {0, {0}};
    path(&name, c, suffix);
    put_content(&text, c);
    gpurpc_file file = gpurpc_fopen(name.text, "w");
    CHECK(file != 0);
    CHECK(gpurpc_fwrite(text.text, text.length, file) == text.length);
    CHECK(gpurpc_fclose(file) == 0);
    file = gpurpc_fopen(name.text, mode);
    CHECK(file != 0 && file % 4 == 0);
    return file;
}

/* Whether the file `suffix` has this text. */
ONCE int has(const context *c, const char *suffix, const line *expected) {
    line name, found = {0, {0}};
    path(&name, c, suffix);
    gpurpc_file file = gpurpc_fopen(name.text, "r");
    if (!file)
        return 0;
    found.length = gpurpc_fread(found.text, sizeof found.text, file);
    return gpurpc_fclose(file) == 0 && same(&found, expected);
}

#define TEST(name) ONCE void test_##name(context *c)

TEST(noop) {
    for (uint32_t i = 0; i <= c->index % 4; ++i)
        gpurpc_noop();
    CHECK(gpurpc_increment(c->index) == c->index + 1ull);
}

/* The lowest of the lanes that call it counts. */
TEST(exit) {
    if (GPURPC__LANES == 1 || gpurpc__lane() >= 3)
        gpurpc_exit(40 + (int)gpurpc__lane());
    (void)c;
}

TEST(abort) {
    if (GPURPC__LANES == 1 || gpurpc__lane() >= 3)
        gpurpc_abort();
    (void)c;
}

GPURPC_DEVICE static line message(const context *c) {
    line line = {0, {0}};
    put_name(&line, c, ' ');
    put_char(&line, ' ');
    put_content(&line, c);
    return line;
}

TEST(write_to_stdout) {
    line text = message(c);
    put_char(&text, '\n');
    CHECK(gpurpc_write_stdout(text.text, text.length) == text.length);
    CHECK(gpurpc_fwrite(text.text, 0, GPURPC_STDOUT) == 0);
}

TEST(write_to_stderr) {
    line text = message(c);
    put_char(&text, '\n');
    CHECK(gpurpc_write_stderr(text.text, text.length) == text.length);
    CHECK(gpurpc_fwrite(text.text, 0, GPURPC_STDERR) == 0);
}

TEST(write_to_stdout_newline) {
    line text = message(c);
    text.text[text.length] = 0;
    CHECK(gpurpc_puts(text.text) == (int)text.length + 1);
}

TEST(write_to_stream) {
    line name, text = message(c), twice = {0, {0}};
    path(&name, c, "");
    gpurpc_file file = gpurpc_fopen(name.text, "w");
    CHECK(file != 0 && file % 4 == 0);
    CHECK(gpurpc_fwrite(text.text, text.length, file) == text.length);
    CHECK(gpurpc_fwrite(text.text, 0, file) == 0);
    CHECK(gpurpc_fwrite("+", 1, file) == 1);
    CHECK(gpurpc_fclose(file) == 0);
    text.text[text.length] = 0;
    put(&twice, text.text);
    put_char(&twice, '+');
    CHECK(has(c, "", &twice));
}

TEST(read_from_stream) {
    gpurpc_file file = made(c, "", "r");
    uint64_t step = 1 + c->index % 100, at = 0, got;
    char part[100];
    CHECK(gpurpc_fread(part, 0, file) == 0);
    while ((got = gpurpc_fread(part, step, file)) != 0) {
        CHECK(got == (size_of(c) - at < step ? size_of(c) - at : step));
        for (uint64_t i = 0; i < got; ++i)
            CHECK(part[i] == content(c, at + i));
        at += got;
    }
    CHECK(at == size_of(c));
    CHECK(gpurpc_fread(part, step, file) == 0);
    CHECK(gpurpc_fclose(file) == 0);
}

TEST(read_fgets) {
    line name, text = {0, {0}};
    char part[40];
    path(&name, c, "");
    /* Lines of 0 to 60 bytes; the last one has no newline. */
    for (uint32_t i = 0; i < 5; ++i) {
        for (uint32_t k = 0; k < (c->index * 13 + i * 17) % 61; ++k)
            put_char(&text, content(c, k));
        if (i < 4)
            put_char(&text, '\n');
    }
    gpurpc_file file = gpurpc_fopen(name.text, "w");
    CHECK(gpurpc_fwrite(text.text, text.length, file) == text.length);
    CHECK(gpurpc_fclose(file) == 0);
    file = gpurpc_fopen(name.text, "r");
    CHECK(file != 0);
    int room = 2 + (int)(c->index % 39);
    uint64_t at = 0;
    while (gpurpc_fgets(part, room, file)) {
        uint64_t length = gpurpc_length(part);
        CHECK(length > 0 && length < (uint64_t)room);
        for (uint64_t i = 0; i < length; ++i)
            CHECK(part[i] == text.text[at + i] && (part[i] != '\n' || i == length - 1));
        at += length;
        /* It ends early only at a newline or at the end. */
        CHECK(length == (uint64_t)room - 1 || part[length - 1] == '\n' || at == text.length);
    }
    CHECK(at == text.length);
    CHECK(gpurpc_feof(file) != 0);
    CHECK(gpurpc_fclose(file) == 0);
}

TEST(open_file) {
    line name, twice = {0, {0}};
    gpurpc_file file = made(c, "", "a");
    CHECK(gpurpc_fwrite("+", 1, file) == 1);
    CHECK(gpurpc_fclose(file) == 0);
    put_content(&twice, c);
    put_char(&twice, '+');
    CHECK(has(c, "", &twice));
    path(&name, c, "");
    CHECK(gpurpc_fopen(name.text, "wx") == 0);
    CHECK(gpurpc_fopen(name.text, "q") == 0);
    CHECK(gpurpc_fopen(name.text, "") == 0);
    file = gpurpc_fopen(name.text, "r+b");
    CHECK(file != 0);
    CHECK(gpurpc_fclose(file) == 0);
    path(&name, c, "-none");
    CHECK(gpurpc_fopen(name.text, "r") == 0);
    path(&name, c, "-none/deeper");
    CHECK(gpurpc_fopen(name.text, "w") == 0);
}

TEST(close_file) {
    gpurpc_file file = made(c, "", "r+");
    CHECK(gpurpc_fclose(file) == 0);
    CHECK(gpurpc_fclose(file) == GPURPC_EOF);
    CHECK(gpurpc_fwrite("x", 1, file) == 0);
}

/* A slab each is more than a small heap has for all. */
#define MOST_SLABS 16

TEST(malloc) {
    uint64_t words = 1000 + c->index * 10;
    if (c->index >= MOST_SLABS)
        return;
    volatile uint64_t *memory = (volatile uint64_t *)gpurpc_malloc(words * 8);
    CHECK(memory != 0 && (uint64_t)memory % 16 == 0);
    /* What an allocator asks for, and relies on. */
    void *slab = gpurpc_malloc(2 << 20);
    CHECK(slab != 0 && (uint64_t)slab % (2 << 20) == 0);
    gpurpc_free(slab);
    if (!memory)
        return;
    for (uint64_t i = 0; i < words; ++i)
        memory[i] = (uint64_t)c->index << 32 | i;
    CHECK(gpurpc_increment(1) == 2);
    for (uint64_t i = 0; i < words; ++i)
        if (memory[i] != ((uint64_t)c->index << 32 | i)) {
            CHECK(!"no other thread has this memory");
            break;
        }
    CHECK(gpurpc_malloc(1ull << 62) == 0);
    gpurpc_free((void *)memory);
}

/* More in all than the heap has. What is freed may take a while to come back: nobody waits for that. */
TEST(free) {
    gpurpc_free(0);
    for (int i = 0; i < 60 && c->index < MOST_SLABS; ++i) {
        void *memory = 0;
        for (int attempt = 0; !memory && attempt < 100; ++attempt)
            memory = gpurpc_malloc(2 << 20);
        CHECK(memory != 0);
        gpurpc_free(memory);
    }
}

/* A slab for each thread at once, if the heap is so large; whoever gets none says so. */
TEST(slabs) {
    const uint64_t words = (2 << 20) / sizeof(uint64_t);
    volatile uint64_t *slab = (volatile uint64_t *)gpurpc_malloc(2 << 20);
    for (int attempt = 0; !slab && attempt < 100; ++attempt)
        slab = (volatile uint64_t *)gpurpc_malloc(2 << 20);
    if (!slab) {
        (void)gpurpc_puts("no slab");
        return;
    }
    CHECK((uint64_t)slab % (2 << 20) == 0);
    for (uint64_t i = 0; i < words; i += words / 16 - 1)
        slab[i] = (uint64_t)c->index << 32 | i;
    CHECK(gpurpc_increment(1) == 2);
    for (uint64_t i = 0; i < words; i += words / 16 - 1)
        CHECK(slab[i] == ((uint64_t)c->index << 32 | i));
    gpurpc_free((void *)slab);
}

/* Not permitted: what comes back is the host's word for that. */
TEST(host_call) {
    char arguments[80];
    for (uint32_t i = 0; i < sizeof arguments; ++i)
        arguments[i] = content(c, i);
    (void)gpurpc_host_call(0x1234, arguments, c->index % sizeof arguments);
    CHECK(gpurpc_increment(1) == 2);
}

TEST(feof) {
    gpurpc_file file = made(c, "", "r");
    char part[300];
    CHECK(gpurpc_feof(file) == 0);
    CHECK(gpurpc_fread(part, sizeof part, file) == size_of(c));
    CHECK(gpurpc_feof(file) != 0);
    CHECK(gpurpc_fseek(file, 0, GPURPC_SEEK_SET) == 0);
    CHECK(gpurpc_feof(file) == 0);
    CHECK(gpurpc_fclose(file) == 0);
}

TEST(ferror) {
    gpurpc_file file = made(c, "", "r");
    CHECK(gpurpc_ferror(file) == 0);
    CHECK(gpurpc_fwrite("x", 1, file) == 0);
    CHECK(gpurpc_ferror(file) != 0);
    CHECK(gpurpc_fclose(file) == 0);
}

TEST(clearerr) {
    gpurpc_file file = made(c, "", "r");
    char part[300];
    CHECK(gpurpc_fwrite("x", 1, file) == 0);
    CHECK(gpurpc_fread(part, sizeof part, file) == size_of(c));
    CHECK(gpurpc_feof(file) != 0 && gpurpc_ferror(file) != 0);
    gpurpc_clearerr(file);
    CHECK(gpurpc_feof(file) == 0 && gpurpc_ferror(file) == 0);
    CHECK(gpurpc_fclose(file) == 0);
}

TEST(fseek) {
    gpurpc_file file = made(c, "", "r");
    int64_t size = (int64_t)size_of(c);
    char byte;
    for (int64_t at = size - 1; at >= 0; at -= 1 + size / 5) {
        CHECK(gpurpc_fseek(file, at, GPURPC_SEEK_SET) == 0);
        CHECK(gpurpc_fread(&byte, 1, file) == 1 && byte == content(c, (uint64_t)at));
        CHECK(gpurpc_fseek(file, -1, GPURPC_SEEK_CUR) == 0);
        CHECK(gpurpc_fread(&byte, 1, file) == 1 && byte == content(c, (uint64_t)at));
        CHECK(gpurpc_fseek(file, at - size, GPURPC_SEEK_END) == 0);
        CHECK(gpurpc_fread(&byte, 1, file) == 1 && byte == content(c, (uint64_t)at));
    }
    CHECK(gpurpc_fseek(file, -1, GPURPC_SEEK_SET) == -1);
    CHECK(gpurpc_fseek(file, 0, 9) == -1);
    CHECK(gpurpc_fclose(file) == 0);
}

TEST(ftell) {
    gpurpc_file file = made(c, "", "r+");
    char part[300];
    uint64_t half = size_of(c) / 2;
    CHECK(gpurpc_ftell(file) == 0);
    CHECK(gpurpc_fread(part, half, file) == half);
    CHECK(gpurpc_ftell(file) == (int64_t)half);
    CHECK(gpurpc_fseek(file, 0, GPURPC_SEEK_END) == 0);
    CHECK(gpurpc_ftell(file) == (int64_t)size_of(c));
    CHECK(gpurpc_fwrite("xyz", 3, file) == 3);
    CHECK(gpurpc_ftell(file) == (int64_t)size_of(c) + 3);
    CHECK(gpurpc_fclose(file) == 0);
    CHECK(gpurpc_ftell(file) == -1);
}

TEST(fflush) {
    line name, text = message(c);
    path(&name, c, "");
    gpurpc_file file = gpurpc_fopen(name.text, "w");
    CHECK(file != 0);
    CHECK(gpurpc_fwrite(text.text, text.length, file) == text.length);
    CHECK(gpurpc_fflush(file) == 0);
    CHECK(has(c, "", &text));
    CHECK(gpurpc_fclose(file) == 0);
    CHECK(gpurpc_fflush(file) == GPURPC_EOF);
    CHECK(gpurpc_fflush(GPURPC_STDOUT) == 0 && gpurpc_fflush(GPURPC_STDERR) == 0);
    /* Lanes beside each other close a standard stream and a file. */
    file = c->index % 2 ? gpurpc_fopen(name.text, "r") : GPURPC_STDOUT + c->index / 2 % 2;
    CHECK(gpurpc_fclose(file) == 0);
    CHECK(gpurpc_ferror(GPURPC_STDOUT) == 0);
}

TEST(ungetc) {
    gpurpc_file file = made(c, "", "r");
    char byte = 0;
    CHECK(gpurpc_ungetc('A' + (int)(c->index % 26), file) == 'A' + (int)(c->index % 26));
    CHECK(gpurpc_fread(&byte, 1, file) == 1 && byte == (char)('A' + c->index % 26));
    CHECK(gpurpc_ungetc(GPURPC_EOF, file) == GPURPC_EOF);
    uint64_t got = gpurpc_fread(&byte, 1, file);
    CHECK(got == (size_of(c) != 0) && (!got || byte == content(c, 0)));
    /* Takes back the end. */
    CHECK(gpurpc_fseek(file, 0, GPURPC_SEEK_END) == 0 && gpurpc_fread(&byte, 1, file) == 0);
    CHECK(gpurpc_ungetc('!', file) == '!');
    CHECK(gpurpc_feof(file) == 0);
    CHECK(gpurpc_fclose(file) == 0);
}

/* Another format on every second thread; strings of 0 to 199 bytes. */
#define NUMBERS "%s %s: %u %d %05x %c%c %.2f %lld %*d|%-4d|%%\n"
#define STRINGS "%s %s: %s %.3s %s\n"

/* What is to be printed. */
ONCE line printed(const context *c) {
    line line = {0, {0}};
    put(&line, c->test);
    put(&line, c->index % 2 ? " strings: " : " numbers: ");
    if (c->index % 2) {
        put_content(&line, c);
        put(&line, " abc (null)\n");
        return line;
    }
    put_number(&line, c->index);
    put(&line, " -");
    put_number(&line, c->index + 1);
    put_char(&line, ' ');
    for (int shift = 16; shift >= 0; shift -= 4)
        put_char(&line, "0123456789abcdef"[c->index >> shift & 15]);
    put_char(&line, ' ');
    put_char(&line, content(c, 0));
    put_char(&line, content(c, 1));
    put_char(&line, ' ');
    put_number(&line, c->index);
    put(&line, ".25 ");
    put_number(&line, c->index + 1);
    put(&line, "000000000    7|8   |%\n");
    return line;
}

/* By a block made by hand, in either form. */
ONCE int print_form(context *c, gpurpc_file file, int packed) {
    gpurpc_arguments block = {0, packed, {0}};
    line text = {0, {0}};
    put_content(&text, c);
    text.text[text.length] = 0;
    gpurpc_put_pointer(&block, c->test);
    if (c->index % 2) {
        gpurpc_put_pointer(&block, "strings");
        gpurpc_put_pointer(&block, text.text);
        gpurpc_put_pointer(&block, "abcdef");
        gpurpc_put_pointer(&block, 0);
        return gpurpc_print_arguments(file, STRINGS, &block);
    }
    gpurpc_put_pointer(&block, "numbers");
    gpurpc_put_int(&block, (int)c->index);
    gpurpc_put_int(&block, -(int)c->index - 1);
    gpurpc_put_int(&block, (int)c->index);
    gpurpc_put_int(&block, content(c, 0));
    gpurpc_put_int(&block, content(c, 1));
    gpurpc_put_double(&block, c->index + 0.25);
    gpurpc_put_long(&block, (c->index + 1) * 1000000000ll);
    gpurpc_put_int(&block, 4);
    gpurpc_put_int(&block, 7);
    gpurpc_put_int(&block, 8);
    return gpurpc_print_arguments(file, NUMBERS, &block);
}

/* As a program prints. */
ONCE int print_plainly(context *c, gpurpc_file file) {
    line text = {0, {0}};
    put_content(&text, c);
    text.text[text.length] = 0;
    const char *none = c->folder ? 0 : "";
    if (c->index % 2)
        return gpurpc_fprintf(file, STRINGS, c->test, "strings", (const char *)text.text, "abcdef", none);
    return gpurpc_fprintf(file, NUMBERS, c->test, "numbers", c->index, -(int)c->index - 1, c->index,
                          content(c, 0), content(c, 1), c->index + 0.25, (c->index + 1) * 1000000000ll, 4, 7, 8);
}

/* Each line twice: once from a block in this form, once as a program prints. */
ONCE void prints(context *c, gpurpc_file file, int packed) {
    line text = printed(c);
    CHECK(print_form(c, file, packed) == (int)text.length);
    CHECK(print_plainly(c, file) == (int)text.length);
}

ONCE void prints_to_file(context *c, int packed) {
    line name, text = printed(c), twice = {0, {0}};
    path(&name, c, "");
    gpurpc_file file = gpurpc_fopen(name.text, "w");
    CHECK(file != 0);
    prints(c, file, packed);
    CHECK(gpurpc_fclose(file) == 0);
    text.text[text.length] = 0;
    put(&twice, text.text);
    put(&twice, text.text);
    CHECK(has(c, "", &twice));
}

/* Sizes that compilers may not know, so behind their back: an argument of each is taken as it was given. */
ONCE void prints_sizes(context *c) {
    const char *format = c->folder ? "%w8d %wf32d %w64d %Ld|%d" : "";
    line name, text = {0, {0}};
    path(&name, c, "-sizes");
    gpurpc_file file = gpurpc_fopen(name.text, "w");
    CHECK(gpurpc_fprintf(file, format, 1, 2, 3ll, 4ll, 5) == 9);
    CHECK(gpurpc_fclose(file) == 0);
    put(&text, "1 2 3 4|5");
    CHECK(has(c, "-sizes", &text));
    CHECK(gpurpc_remove(name.text) == 0);
}

TEST(printf_to_stdout) { prints(c, GPURPC_STDOUT, 0); }
TEST(printf_to_stderr) { prints(c, GPURPC_STDERR, 0); }
TEST(printf_to_stream) {
    prints_to_file(c, 0);
    prints_sizes(c);
}
TEST(printf_to_stdout_packed) { prints(c, GPURPC_STDOUT, 1); }
TEST(printf_to_stderr_packed) { prints(c, GPURPC_STDERR, 1); }
TEST(printf_to_stream_packed) { prints_to_file(c, 1); }

TEST(remove) {
    line name;
    CHECK(gpurpc_fclose(made(c, "", "r")) == 0);
    path(&name, c, "");
    CHECK(gpurpc_remove(name.text) == 0);
    CHECK(gpurpc_fopen(name.text, "r") == 0);
    CHECK(gpurpc_remove(name.text) == -1);
}

TEST(rename) {
    line from, to, text = {0, {0}};
    CHECK(gpurpc_fclose(made(c, "-old", "r")) == 0);
    path(&from, c, "-old");
    path(&to, c, "");
    CHECK(gpurpc_rename(from.text, to.text) == 0);
    CHECK(gpurpc_fopen(from.text, "r") == 0);
    put_content(&text, c);
    CHECK(has(c, "", &text));
    CHECK(gpurpc_rename(from.text, to.text) == -1);
}

TEST(system) {
    line command = {0, {0}}, name, text = {0, {0}};
    CHECK((gpurpc_system(0) != 0) == c->allowed);
    if (!c->allowed) {
        CHECK(gpurpc_system("exit 0") == -1);
        return;
    }
    CHECK(gpurpc_system("exit 0") == 0);
    CHECK(gpurpc_system("exit 3") != 0);
    path(&name, c, "");
    put(&command, "echo ran >");
    put(&command, name.text);
    command.text[command.length] = 0;
    CHECK(gpurpc_system(command.text) == 0);
    put(&text, "ran\n");
    CHECK(has(c, "", &text));
}

TEST(test_increment) {
    uint32_t random = c->index * 2654435761u + c->turn;
    for (int i = 0; i < 50; ++i) {
        random = random * 1664525u + 1013904223u;
        for (uint32_t n = random >> 28; n > 12; --n)
            CHECK(gpurpc_increment((uint64_t)random << 32 | n) == ((uint64_t)random << 32 | n) + 1);
    }
    CHECK(gpurpc_increment(~0ull) == 0);
}

TEST(test_interface) {
    CHECK(gpurpc_test_interface(1) == 9);
    CHECK(gpurpc_test_interface(0) == 9);
}

/* All lengths around the edges of packets, in another order on each lane. */
TEST(test_stream) {
    const uint16_t lengths[] = {0, 1, 55, 56, 57, 63, 64, 65, 119, 120, 121, 184, 185, 400};
    const uint32_t count = sizeof lengths / sizeof lengths[0];
    char text[400] = {0}, back[400];
    for (uint32_t i = 0; i < sizeof text; ++i)
        text[i] = content(c, i);
    for (uint32_t i = 0; i < count; ++i) {
        uint64_t length = lengths[(i + c->index) % count];
        for (uint32_t k = 0; k < sizeof back; ++k)
            back[k] = 0;
        CHECK(gpurpc_echo(text, length, back, sizeof back) == (int64_t)length);
        for (uint64_t k = 0; k < sizeof back; ++k)
            if (back[k] != (k < length ? text[k] : 0)) {
                CHECK(!"the message comes back as it was");
                break;
            }
    }
    /* Where there is less room the rest is dropped. */
    for (uint32_t k = 0; k < sizeof back; ++k)
        back[k] = 0;
    CHECK(gpurpc_echo(text, 300, back, 70) == 300);
    CHECK(back[69] == text[69] && back[70] == 0);
}

#include "hostile.h"

/* Nobody handles it: over LLVM's layout that ends the run. */
TEST(unknown) {
    CHECK(gpurpc__call(0x3FF0, 0, 0, 0, 77) == 77);
    CHECK(gpurpc_increment(1) == 2);
}

#define OPCODE_TESTS(X)                                                                                  \
    X(noop) X(exit) X(write_to_stdout) X(write_to_stderr) X(write_to_stream)                             \
    X(write_to_stdout_newline) X(read_from_stream) X(read_fgets) X(open_file) X(close_file) X(malloc)    \
    X(free) X(slabs) X(host_call) X(abort) X(feof) X(ferror) X(clearerr) X(fseek) X(ftell) X(fflush)     \
    X(ungetc) X(printf_to_stdout) X(printf_to_stderr) X(printf_to_stream) X(printf_to_stdout_packed)     \
    X(printf_to_stderr_packed) X(printf_to_stream_packed) X(remove) X(rename) X(system)                  \
    X(test_increment) X(test_interface) X(test_stream)
#define OTHER_TESTS(X)                                                                                   \
    X(hostile_messages) X(hostile_sizes) X(hostile_stream) X(hostile_modes) X(hostile_paths)             \
    X(hostile_formats) X(hostile_handles) X(hostile_reads) X(hostile_masks) X(unknown)

/* Runs the test of that name; 0 if there is none. */
ONCE int run(context *c) {
#define RUN(name)                                                                                        \
    if (equal(c->test, #name)) {                                                                         \
        test_##name(c);                                                                                  \
        return 1;                                                                                        \
    }
    OPCODE_TESTS(RUN)
    OTHER_TESTS(RUN)
    return 0;
}

ONCE int list(void) {
#define NAME(name) #name "\n"
    const char *names = OPCODE_TESTS(NAME) OTHER_TESTS(NAME);
    if (gpurpc_index() == 0)
        (void)gpurpc_write_stdout(names, gpurpc_length(names));
    return 0;
}

GPURPC_MAIN(int argc, char **argv, char **envp) {
    context c;
    (void)envp;
    if (argc == 2 && equal(argv[1], "list"))
        return list();
    if (argc < 3) {
        const char *usage = "opcodes: NAME FOLDER [allowed], or list\n";
        (void)gpurpc_write_stderr(usage, gpurpc_length(usage));
        return 1;
    }
    c.test = argv[1];
    c.folder = argv[2];
    c.allowed = argc > 3;
    c.index = (uint32_t)gpurpc_index();
    c.failures = 0;
    for (c.turn = 0; c.turn < 2; ++c.turn) {
        /* In the second turn lanes of a warp are at different things. */
        if (c.turn == 0 || c.index % 3 == 1) {
            if (!run(&c)) {
                c.failures++;
                (void)gpurpc_write_stderr("opcodes: there is no such test\n", 31);
            }
        } else {
            for (uint64_t i = 0; i < 20; ++i)
                if (gpurpc_increment(i) != i + 1)
                    fail(&c, __LINE__, "an increment beside the test");
        }
    }
    return c.failures != 0;
}
