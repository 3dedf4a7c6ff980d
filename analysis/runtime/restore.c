/* Every message is taken apart with its bounds checked, and its references looked up; a message that was cut off when
 * the primary died is left out. */
#include "restore.h"

#include "buffer.h"
#include "channel.h"
#include "objects.h"

#include <stdio.h>

/* The objects of the heap by their numbers in the stream. */
static struct object **by_id;
static uint64_t id_count;
/* What this program has allocated before its first packet, by site and ordinal. */
static struct object **own;
static size_t own_count;

/* More than any program has. */
static const uint64_t most_ids = UINT64_C(1) << 32, most_bytes = UINT64_C(1) << 34;

static int compare_origins(const void *a, const void *b) {
    const struct object *left = *(struct object *const *)a, *right = *(struct object *const *)b;
    if (left->site != right->site) return left->site < right->site ? -1 : 1;
    return (left->ordinal > right->ordinal) - (left->ordinal < right->ordinal);
}

static void count_own(struct object *object, void *unused) {
    (void)object, (void)unused;
    own_count++;
}

static void forget_id(struct object *object, void *unused) {
    (void)unused;
    object->stream_id = 0;
}

static void list_own(struct object *object, void *next) { *(*(struct object ***)next)++ = object; }

static bool find_own(void) {
    heap_each(count_own, NULL);
    own = calloc(own_count + 1, sizeof *own);
    if (!own) return false;
    struct object **next = own;
    heap_each(list_own, &next);
    qsort(own, own_count, sizeof *own, compare_origins);
    return true;
}

/* Return what this program made itself in the same place of its initialization, if it is as large. */
static struct object *counterpart(uint32_t site, uint32_t ordinal, uint64_t size) {
    struct object wanted = {.site = site, .ordinal = ordinal}, *key = &wanted;
    struct object **found = own_count ? bsearch(&key, own, own_count, sizeof *own, compare_origins) : NULL;
    if (!found || (*found)->size != size || (*found)->stream_id) return NULL;
    return *found;
}

static struct object *by_reference(struct reader *reader, uint64_t reference) {
    struct object *object = NULL;
    if ((reference & 3) == OBJECT_HEAP)
        object = reference >> 2 < id_count ? by_id[reference >> 2] : NULL;
    else if ((reference & 3) != OBJECT_FUNCTION)
        object = object_of(reference & 3, reference >> 2);
    if (!object || !object->base) reader->failed = true;
    return object;
}

static void drop(struct reader *reader, uint64_t id) {
    if (id >= id_count || !by_id[id]) {
        reader->failed = true;
        return;
    }
    uint64_t unused;
    void *memory = by_id[id]->base;
    /* What this program made itself is no longer there to be found. */
    for (size_t i = 0; by_id[id]->early && i < own_count; i++)
        if (own[i] == by_id[id]) memmove(own + i, own + i + 1, (--own_count - i) * sizeof *own);
    by_id[id] = NULL;
    heap_remove(memory, &unused);
    free(memory);
}

static void make(struct reader *reader) {
    uint64_t id = reader_number(reader), site = reader_number(reader), origin = reader_number(reader);
    uint64_t size = reader_number(reader);
    if (reader->failed || id >= most_ids || site >= catena_program.site_count || size > most_bytes) {
        reader->failed = true;
        return;
    }
    if (id >= id_count) {
        uint64_t count = (id + 1) * 2;
        struct object **more = realloc(by_id, count * sizeof *more);
        if (!more) {
            reader->failed = true;
            return;
        }
        memset(more + id_count, 0, (count - id_count) * sizeof *more);
        by_id = more;
        id_count = count;
    }
    struct object *object = origin & 1 ? counterpart((uint32_t)site, (uint32_t)(origin >> 1), size) : NULL;
    if (by_id[id]) {
        reader->failed = true;
    } else if (object) {
        object->stream_id = id;
        by_id[id] = object;
    } else {
        void *memory = calloc(1, size ? size : 1);
        by_id[id] = memory ? heap_add(memory, size, (uint32_t)site) : NULL;
        if (!by_id[id]) {
            free(memory);
            reader->failed = true;
        }
    }
}

/* Return the pointer that a reference means. */
static void *pointer(struct reader *reader, uint64_t reference) {
    if ((reference & 3) == OBJECT_FUNCTION) {
        uint64_t number = (reference >> 2) - 1;
        if (number < catena_program.function_count) return catena_program.functions[number];
        reader->failed = true;
        return NULL;
    }
    struct object *object = by_reference(reader, reference);
    uint64_t offset = reader_number(reader);
    if (!object || offset > object->size) {
        reader->failed = true;
        return NULL;
    }
    return object->base + offset;
}

static void fill(struct reader *reader) {
    struct object *object = by_reference(reader, reader_number(reader));
    uint64_t begin = reader_number(reader), size = reader_number(reader), count = reader_number(reader);
    if (reader->failed || begin > object->size || size > object->size - begin || object->treatment == CATENA_CONSTANT) {
        reader->failed = true;
        return;
    }
    char *base = object->base + begin;
    /* The pointers stand before the bytes that they go into: they are read twice. */
    struct reader pointers = *reader;
    uint64_t at = 0;
    for (uint64_t i = 0; i < count && !reader->failed; i++) {
        at += reader_number(reader);
        if (size < sizeof(void *) || at > size - sizeof(void *)) reader->failed = true;
        uint64_t reference = reader_number(reader);
        if (reference != OBJECT_FUNCTION) pointer(reader, reference);
    }
    const unsigned char *bytes = reader_bytes(reader, size);
    char *copy = reader->failed ? NULL : malloc(size ? size : 1);
    if (!copy) {
        reader->failed = true;
        return;
    }
    if (size) memcpy(copy, bytes, size);
    at = 0;
    for (uint64_t i = 0; i < count; i++) {
        at += reader_number(&pointers);
        uint64_t reference = reader_number(&pointers);
        if (reference == OBJECT_FUNCTION) {
            memcpy(copy + at, base + at, sizeof(void *));
        } else {
            void *value = pointer(&pointers, reference);
            memcpy(copy + at, &value, sizeof value);
        }
    }
    if (size) memcpy(base, copy, size);
    free(copy);
}

static bool apply(const unsigned char *bytes, size_t length, struct restored *restored, char *error, size_t size) {
    struct reader reader = {bytes, bytes + length, false};
    const unsigned char *kind = reader_bytes(&reader, 1);
    if (kind && *kind == MESSAGE_REFUSAL) {
        snprintf(error, size, "the primary gave up: %.*s", (int)(reader.end - reader.at), (const char *)reader.at);
        return false;
    }
    if (kind && *kind != MESSAGE_STATE) reader.failed = true;
    restored->packets = reader_number(&reader);
    restored->reception = (uint32_t)reader_number(&reader);
    for (uint64_t n = reader_number(&reader); n && !reader.failed; n--) drop(&reader, reader_number(&reader));
    for (uint64_t n = reader_number(&reader); n && !reader.failed; n--) make(&reader);
    for (uint64_t n = reader_number(&reader); n && !reader.failed; n--) fill(&reader);
    if (!reader.failed && reader.at == reader.end) return true;
    snprintf(error, size, "the state stream is damaged after packet %llu, or the standby was started otherwise",
             (unsigned long long)restored->packets);
    return false;
}

bool restore_stream(int channel, struct restored *restored, char *error, size_t size) {
    unsigned char head[sizeof STREAM_MAGIC - 1 + sizeof catena_program.fingerprint], length_bytes[4];
    const size_t magic = sizeof STREAM_MAGIC - 1;
    if (channel_read(channel, head, sizeof head) != sizeof head || memcmp(head, STREAM_MAGIC, magic)) {
        snprintf(error, size, "this is no state stream of a primary");
        return false;
    }
    if (memcmp(head + magic, catena_program.fingerprint, sizeof catena_program.fingerprint)) {
        snprintf(error, size, "the primary is another program: both must be built from the same bitcode");
        return false;
    }
    if (!find_own()) {
        snprintf(error, size, "out of memory");
        return false;
    }
    struct buffer message = {0};
    bool good = true, any = false;
    while (good && channel_read(channel, length_bytes, sizeof length_bytes) == sizeof length_bytes) {
        uint32_t length = (uint32_t)length_bytes[0] | (uint32_t)length_bytes[1] << 8 | (uint32_t)length_bytes[2] << 16 |
                          (uint32_t)length_bytes[3] << 24;
        message.length = 0;
        /* In parts: a damaged length must not take all memory. */
        size_t got = 0, part = 0;
        do {
            part = length - got < 1 << 20 ? length - got : 1 << 20;
            unsigned char *to = buffer_grow(&message, part);
            if (!to || channel_read(channel, to, part) != part) break;
            got += part;
        } while (got < length);
        if (message.failed) {
            snprintf(error, size, "out of memory");
            good = false;
        } else if (got < length) {
            break;
        } else {
            good = apply(message.bytes, length, restored, error, size);
            any = true;
        }
    }
    free(message.bytes);
    /* A stream of this program's own begins with nothing known. */
    heap_each(forget_id, NULL);
    if (good && !any) {
        snprintf(error, size, "the primary ended before it shipped any state");
        good = false;
    }
    return good;
}
