/* What a program calls instead of malloc and the like: the same memory, and a note of it. */
#define _GNU_SOURCE
#include "standby.h"

#include <errno.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

uint32_t catena_site;

/* Note an allocation and return it; without memory for the note there is none for the allocation. */
static void *note(void *memory, size_t size) {
    uint32_t site = catena_site;
    catena_site = 0;
    if (!memory || !standby_active()) return memory;
    standby_forget(memory);
    if (heap_add(memory, size, site)) return memory;
    free(memory);
    errno = ENOMEM;
    return NULL;
}

void *catena_malloc(size_t size) { return note(malloc(size), size); }

void *catena_calloc(size_t count, size_t size) { return note(calloc(count, size), count * size); }

void catena_free(void *memory) {
    if (memory && standby_active()) standby_forget(memory);
    free(memory);
}

/* Always to a new place: pointers to the old one are no longer used, or the program is wrong, and so what lies at the
 * new place is a new object, whole, to a standby. */
void *catena_realloc(void *memory, size_t size) {
    struct object *known = memory && standby_active() ? object_at(memory) : NULL;
    if (!known || known->base != memory) return note(realloc(memory, size), size);
    void *other = size ? malloc(size) : NULL;
    if (other) memcpy(other, memory, size < known->size ? size : known->size);
    if (size && !other) {
        catena_site = 0;
        return NULL;
    }
    catena_free(memory);
    return note(other, size);
}

void *catena_reallocarray(void *memory, size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return catena_realloc(memory, bytes);
}

void *catena_aligned_alloc(size_t alignment, size_t size) { return note(memalign(alignment, size), size); }

void *catena_valloc(size_t size) { return note(memalign((size_t)sysconf(_SC_PAGESIZE), size), size); }

int catena_posix_memalign(void **memory, size_t alignment, size_t size) {
    int error = posix_memalign(memory, alignment, size);
    if (!error && !note(*memory, size) && size) return ENOMEM;
    return error;
}

char *catena_strdup(const char *text) { return note(strdup(text), strlen(text) + 1); }

char *catena_strndup(const char *text, size_t most) { return note(strndup(text, most), strnlen(text, most) + 1); }

int catena_vasprintf(char **text, const char *format, va_list arguments) {
    int length = vasprintf(text, format, arguments);
    if (length >= 0 && !note(*text, (size_t)length + 1)) return -1;
    return length;
}

int catena_asprintf(char **text, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = catena_vasprintf(text, format, arguments);
    va_end(arguments);
    return length;
}

ssize_t catena_getdelim(char **line, size_t *capacity, int delimiter, FILE *file) {
    if (*line && standby_active()) standby_forget(*line);
    ssize_t length = getdelim(line, capacity, delimiter, file);
    if (*line && !note(*line, *capacity)) *line = NULL;
    return *line ? length : -1;
}

ssize_t catena_getline(char **line, size_t *capacity, FILE *file) {
    return catena_getdelim(line, capacity, '\n', file);
}

/* operator new of C++; it may not return null, and this runtime cannot throw. */
void *catena_new(size_t size) {
    void *memory = catena_malloc(size ? size : 1);
    if (!memory) abort();
    return memory;
}

void catena_delete_sized(void *memory, size_t size) {
    (void)size;
    catena_free(memory);
}
