/* Formatted output, which the host formats. Part of gpurpc.h.
 *
 * The device sends the format, then a block with the arguments, of the size that the host reads out of
 * the format, then the strings that the host asks for. Arguments lie in the block at their natural alignment
 * on NVPTX and the CPU device, packed on AMDGPU: just as clang passes variable arguments there, so that the
 * block is what a `va_list` points to. On x86_64 it is made by the format. CUDA's compilers have no variable
 * arguments on the device: there these functions are C++ templates.
 */
#ifndef GPURPC_PRINTF_H
#define GPURPC_PRINTF_H

/* The form of a block. */
#ifdef GPURPC_AMDGCN
#define GPURPC__PACKED 1
#else
#define GPURPC__PACKED 0
#endif

/* A block made by hand: `gpurpc_arguments a = GPURPC_ARGUMENTS; gpurpc_put_int(&a, 1); ...`. What does not
 * fit is left out. */
typedef struct gpurpc_arguments {
    uint32_t size;
    int packed;
    uint64_t words[64];
} gpurpc_arguments;
#define GPURPC_ARGUMENTS {0, GPURPC__PACKED, {0}}

GPURPC_INLINE void gpurpc__put(gpurpc_arguments *block, uint64_t value, uint32_t size) {
    unsigned char *bytes = (unsigned char *)block->words;
    uint32_t at = block->packed ? block->size : (block->size + size - 1) & ~(size - 1);
    if (at + size > sizeof block->words)
        return;
    for (uint32_t i = 0; i < size; ++i)
        bytes[at + i] = (unsigned char)(value >> 8 * i);
    block->size = at + size;
}
/* Of integers as C promotes them: what is smaller is an int. */
GPURPC_INLINE void gpurpc_put_int(gpurpc_arguments *block, int value) {
    gpurpc__put(block, (uint32_t)value, 4);
}
GPURPC_INLINE void gpurpc_put_long(gpurpc_arguments *block, int64_t value) {
    gpurpc__put(block, (uint64_t)value, 8);
}
GPURPC_INLINE void gpurpc_put_pointer(gpurpc_arguments *block, const void *value) {
    gpurpc__put(block, (uint64_t)(uintptr_t)value, 8);
}
GPURPC_INLINE void gpurpc_put_double(gpurpc_arguments *block, double value) {
    union {
        double value;
        uint64_t word;
    } both;
    both.value = value;
    gpurpc__put(block, both.word, 8);
}

/* Prints with a block of `size` bytes, by one of the six opcodes; `file` is for those to a stream. What
 * printf returns. */
GPURPC_ONCE int gpurpc_print_block(uint32_t opcode, gpurpc_file file, const char *format, const void *block,
                                   uint64_t size) {
    uint64_t words[2] = {0, 0};
    int to_stream = opcode == GPURPC_PRINTF_TO_STREAM || opcode == GPURPC_PRINTF_TO_STREAM_PACKED;
    gpurpc_port port = gpurpc_open(GPURPC_OPCODE(opcode));
    int status = (to_stream && gpurpc_send(&port, &file, 1)) ||
                 gpurpc_send_n(&port, format, gpurpc_length(format) + 1) || gpurpc_recv(&port, words, 1) ||
                 gpurpc_send_n(&port, block, words[0] < size ? words[0] : size);
    for (;;) {
        if (status || gpurpc_recv(&port, words, 2)) {
            words[0] = ~0ull;
            break;
        }
        /* All lanes go on until none of them is asked for a string. */
        const char *text = (const char *)(uintptr_t)words[1];
        if (!gpurpc__any(port.mask, text != 0))
            break;
        status = gpurpc_send_n(&port, text, text ? gpurpc_length(text) + 1 : 0);
    }
    gpurpc_close(&port);
    return (int)words[0];
}

GPURPC_INLINE int gpurpc__print(gpurpc_file file, int packed, const char *format, const void *block,
                                uint64_t size) {
    uint32_t form = packed ? GPURPC_PRINTF_TO_STDOUT_PACKED : GPURPC_PRINTF_TO_STDOUT;
    uint32_t stream = file == GPURPC_STDOUT ? 0 : file == GPURPC_STDERR ? 1 : 2;
    return gpurpc_print_block(form + stream, file, format, block, size);
}

/* Prints with a block made by hand. */
GPURPC_INLINE int gpurpc_print_arguments(gpurpc_file file, const char *format, const gpurpc_arguments *block) {
    return gpurpc__print(file, block->packed, format, block->words, block->size);
}

#ifndef GPURPC_CUDA

#ifdef GPURPC_CPU

/* Digits, or a `*` and its argument. */
#define GPURPC__NUMBER                                                                                   \
    if (*format == '*') {                                                                                \
        gpurpc_put_int(&block, va_arg(list, int));                                                       \
        ++format;                                                                                        \
    } else                                                                                               \
        while (*format >= '0' && *format <= '9')                                                         \
            ++format

GPURPC_ONCE int gpurpc_vfprintf(gpurpc_file file, const char *format, va_list arguments) {
    gpurpc_arguments block = GPURPC_ARGUMENTS;
    const char *whole = format;
    va_list list;
    va_copy(list, arguments);
    while (*format) {
        if (*format++ != '%')
            continue;
        while (*format == '-' || *format == '+' || *format == ' ' || *format == '#' || *format == '0')
            ++format;
        GPURPC__NUMBER;
        if (*format == '.') {
            ++format;
            GPURPC__NUMBER;
        }
        int wide = 0, extended = 0;
        for (;; ++format) {
            if (*format == 'l' || *format == 'j' || *format == 'z' || *format == 't')
                wide = 1;
            else if (*format == 'L')
                wide = extended = 1;
            else if (*format != 'h')
                break;
        }
        if (*format == 'w') {
            /* So many bits; fast types are no wider. */
            int bits = 0;
            format += format[1] == 'f' ? 2 : 1;
            for (; *format >= '0' && *format <= '9' && bits < 100; ++format)
                bits = bits * 10 + (*format - '0');
            if (bits != 8 && bits != 16 && bits != 32 && bits != 64)
                continue; /* no conversion */
            wide = bits == 64;
        }
        switch (*format) {
        case 'd':
        case 'i':
        case 'u':
        case 'o':
        case 'x':
        case 'X':
        case 'b':
        case 'B':
            if (wide) {
                gpurpc_put_long(&block, va_arg(list, long));
                break;
            }
            __attribute__((fallthrough));
        case 'c':
            gpurpc_put_int(&block, va_arg(list, int));
            break;
        case 'a':
        case 'A':
        case 'e':
        case 'E':
        case 'f':
        case 'F':
        case 'g':
        case 'G':
            /* On the wire a long double is a double. */
            gpurpc_put_double(&block, extended ? (double)va_arg(list, long double) : va_arg(list, double));
            break;
        case 's':
        case 'p':
        case 'n': /* the host takes it, and prints the conversion as it stands */
            gpurpc_put_pointer(&block, va_arg(list, const void *));
            break;
        case 0:
            continue;
        default:
            break; /* `%%`, and what is no conversion, has no argument */
        }
        ++format;
    }
    va_end(list);
    return gpurpc_print_arguments(file, whole, &block);
}
#undef GPURPC__NUMBER

#else

GPURPC_INLINE int gpurpc_vfprintf(gpurpc_file file, const char *format, va_list arguments) {
    /* The host asks for as many bytes as the format has arguments. */
    return gpurpc__print(file, GPURPC__PACKED, format, (const void *)arguments, ~0ull);
}

#endif

#define GPURPC__PRINTF(n)                                                                                \
    static __attribute__((noinline, unused, format(printf, n, n + 1)))
#define GPURPC__FORWARD(file)                                                                            \
    {                                                                                                    \
        va_list list;                                                                                    \
        va_start(list, format);                                                                          \
        int result = gpurpc_vfprintf(file, format, list);                                                \
        va_end(list);                                                                                    \
        return result;                                                                                   \
    }
/* As C's printf: what was written, or a negative number. */
GPURPC__PRINTF(1) int gpurpc_printf(const char *format, ...) GPURPC__FORWARD(GPURPC_STDOUT)
/* To standard error. */
GPURPC__PRINTF(1) int gpurpc_eprintf(const char *format, ...) GPURPC__FORWARD(GPURPC_STDERR)
GPURPC__PRINTF(2) int gpurpc_fprintf(gpurpc_file file, const char *format, ...) GPURPC__FORWARD(file)
#undef GPURPC__FORWARD
#undef GPURPC__PRINTF

#else /* CUDA, which is C++ */

#define GPURPC__PUT(type, function, as)                                                                  \
    GPURPC_INLINE void gpurpc__put_any(gpurpc_arguments *block, type value) { function(block, (as)value); }
GPURPC__PUT(bool, gpurpc_put_int, int)
GPURPC__PUT(char, gpurpc_put_int, int)
GPURPC__PUT(signed char, gpurpc_put_int, int)
GPURPC__PUT(unsigned char, gpurpc_put_int, int)
GPURPC__PUT(short, gpurpc_put_int, int)
GPURPC__PUT(unsigned short, gpurpc_put_int, int)
GPURPC__PUT(int, gpurpc_put_int, int)
GPURPC__PUT(unsigned int, gpurpc_put_int, int)
GPURPC__PUT(long, gpurpc_put_long, int64_t)
GPURPC__PUT(unsigned long, gpurpc_put_long, int64_t)
GPURPC__PUT(long long, gpurpc_put_long, int64_t)
GPURPC__PUT(unsigned long long, gpurpc_put_long, int64_t)
GPURPC__PUT(float, gpurpc_put_double, double)
GPURPC__PUT(double, gpurpc_put_double, double)
GPURPC__PUT(const void *, gpurpc_put_pointer, const void *)
#undef GPURPC__PUT

template <typename... T>
static GPURPC_DEVICE int gpurpc_fprintf(gpurpc_file file, const char *format, T... values) {
    gpurpc_arguments block = GPURPC_ARGUMENTS;
    int each[] = {0, (gpurpc__put_any(&block, values), 0)...};
    (void)each;
    return gpurpc_print_arguments(file, format, &block);
}
template <typename... T> static GPURPC_DEVICE int gpurpc_printf(const char *format, T... values) {
    return gpurpc_fprintf(GPURPC_STDOUT, format, values...);
}
template <typename... T> static GPURPC_DEVICE int gpurpc_eprintf(const char *format, T... values) {
    return gpurpc_fprintf(GPURPC_STDERR, format, values...);
}

#endif

#endif
