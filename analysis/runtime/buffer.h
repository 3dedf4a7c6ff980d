/* Bytes that grow, and the numbers in them: 7 bits a byte, the lowest first, as in DWARF's ULEB128. */
#ifndef CATENA_BUFFER_H
#define CATENA_BUFFER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct buffer {
    unsigned char *bytes;
    size_t length, capacity;
    /* There was no memory for it; what it holds is not whole. */
    bool failed;
};

/* Make room for more bytes; return where they are, or null. */
static inline unsigned char *buffer_grow(struct buffer *buffer, size_t more) {
    if (buffer->failed) return NULL;
    if (buffer->length + more > buffer->capacity) {
        size_t capacity = (buffer->length + more) * 2;
        unsigned char *bytes = realloc(buffer->bytes, capacity);
        if (!bytes) {
            buffer->failed = true;
            return NULL;
        }
        buffer->bytes = bytes;
        buffer->capacity = capacity;
    }
    buffer->length += more;
    return buffer->bytes + buffer->length - more;
}

static inline void buffer_bytes(struct buffer *buffer, const void *bytes, size_t count) {
    unsigned char *to = count ? buffer_grow(buffer, count) : NULL;
    if (to) memcpy(to, bytes, count);
}

static inline void buffer_number(struct buffer *buffer, uint64_t number) {
    unsigned char bytes[10];
    size_t count = 0;
    do {
        bytes[count] = (unsigned char)((number & 127) | (number > 127 ? 128 : 0));
        number >>= 7;
        count++;
    } while (number);
    buffer_bytes(buffer, bytes, count);
}

static inline void buffer_append(struct buffer *buffer, const struct buffer *other) {
    buffer->failed |= other->failed;
    buffer_bytes(buffer, other->bytes, other->length);
}

/* Bytes that are read from the front. */
struct reader {
    const unsigned char *at, *end;
    /* More was read than there was. */
    bool failed;
};

static inline const unsigned char *reader_bytes(struct reader *reader, uint64_t count) {
    if (reader->failed || count > (uint64_t)(reader->end - reader->at)) {
        reader->failed = true;
        return NULL;
    }
    reader->at += count;
    return reader->at - count;
}

static inline uint64_t reader_number(struct reader *reader) {
    uint64_t number = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        const unsigned char *byte = reader_bytes(reader, 1);
        if (!byte) return 0;
        number |= (uint64_t)(*byte & 127) << shift;
        if (!(*byte & 128)) return number;
    }
    reader->failed = true;
    return 0;
}

#endif
