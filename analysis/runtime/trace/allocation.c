/* The heap of a traced program: every block is an object, begins as zero and is never given out twice, up to a limit.
 */
#include "objects.h"
#include "trace.h"

#include "lock.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Blocks that were freed wait here, oldest first, until they are more than `most_waiting` bytes. */
struct waiting {
    void *block;
    size_t size;
};
enum { RING = 1 << 22 };
static const size_t most_waiting = (size_t)1 << 30;
static struct waiting *ring;
static size_t first, count, bytes;

static void *known(void *block, size_t size) {
    if (!block) return NULL;
    bool mine = catena_lock();
    catena_object_new((uintptr_t)block, size ? size : 1, NO_VARIABLE);
    catena_unlock(mine);
    return block;
}

void *catena_trace_malloc(size_t size) { return size > SIZE_MAX - 32 ? NULL : known(calloc(1, size + 16), size); }

void *catena_trace_calloc(size_t number, size_t size) {
    size_t all;
    if (__builtin_mul_overflow(number, size, &all)) return NULL;
    return catena_trace_malloc(all);
}

void *catena_trace_aligned_alloc(size_t alignment, size_t size) {
    void *block = NULL;
    if (posix_memalign(&block, alignment < 16 ? 16 : alignment, size + 16)) return NULL;
    return known(memset(block, 0, size + 16), size);
}

int catena_trace_posix_memalign(void **result, size_t alignment, size_t size) {
    void *block = catena_trace_aligned_alloc(alignment, size);
    if (!block) return ENOMEM;
    *result = block;
    return 0;
}

char *catena_trace_strndup(const char *text, size_t size) {
    size_t length = strnlen(text, size);
    char *copy = catena_trace_malloc(length + 1);
    return copy ? memcpy(copy, text, length) : NULL;
}

char *catena_trace_strdup(const char *text) { return catena_trace_strndup(text, SIZE_MAX); }

static uint32_t block_at(void *block) {
    uint32_t number = catena_object_at((uintptr_t)block);
    return number && catena_objects[number].begin == (uintptr_t)block ? number : 0;
}

void *catena_trace_realloc(void *old, size_t size) {
    if (!old) return catena_trace_malloc(size);
    uint32_t number = block_at(old);
    /* A block of a library's own. */
    if (!number) return realloc(old, size);
    size_t before = catena_objects[number].size;
    void *grown = catena_trace_malloc(size);
    if (!grown) return NULL;
    memcpy(grown, old, before < size ? before : size);
    catena_trace_read(old, before);
    catena_trace_write(grown, size);
    catena_trace_free(old);
    return grown;
}

void *catena_trace_reallocarray(void *old, size_t number, size_t size) {
    size_t all;
    if (__builtin_mul_overflow(number, size, &all)) return NULL;
    return catena_trace_realloc(old, all);
}

void catena_trace_free(void *block) {
    if (!block) return;
    bool mine = catena_lock();
    uint32_t number = block_at(block);
    if (!number) {
        catena_unlock(mine);
        free(block);
        return;
    }
    if (!ring) ring = catena_reserve(sizeof *ring * RING);
    while (count && (count == RING || bytes > most_waiting)) {
        free(ring[first % RING].block);
        bytes -= ring[first++ % RING].size;
        --count;
    }
    ring[(first + count++) % RING] = (struct waiting){block, catena_objects[number].size};
    bytes += catena_objects[number].size;
    catena_object_gone(number);
    catena_unlock(mine);
}
