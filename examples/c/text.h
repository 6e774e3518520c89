/* Text that is put together by hand: for programs that use little of their host. */
#ifndef TEXT_H
#define TEXT_H

typedef struct line {
    uint64_t length;
    char text[520];
} line;

GPURPC_DEVICE static inline void put_char(line *line, char character) {
    if (line->length < sizeof line->text - 1)
        line->text[line->length++] = character;
}

GPURPC_DEVICE static inline void put(line *line, const char *text) {
    while (*text)
        put_char(line, *text++);
}

GPURPC_DEVICE static inline void put_number(line *line, uint32_t number) {
    char digits[11] = {0}, *at = digits + 10;
    do
        *--at = (char)('0' + number % 10);
    while (number /= 10);
    put(line, at);
}

GPURPC_DEVICE static inline int same(const line *a, const line *b) {
    if (a->length != b->length)
        return 0;
    for (uint64_t i = 0; i < a->length; ++i)
        if (a->text[i] != b->text[i])
            return 0;
    return 1;
}

GPURPC_DEVICE static inline int equal(const char *a, const char *b) {
    while (*a && *a == *b)
        ++a, ++b;
    return *a == *b;
}

#endif
