/* The program's memory, noted by the call that allocated it, so that its state can be found. */
#include "adapter.h"

#include "standby.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void *catena_malloc(size_t size);
void *catena_calloc(size_t count, size_t size);
void catena_free(void *memory);
void *catena_realloc(void *memory, size_t size);
void *catena_reallocarray(void *memory, size_t count, size_t size);
void *catena_aligned_alloc(size_t alignment, size_t size);
void *catena_valloc(size_t size);
int catena_posix_memalign(void **memory, size_t alignment, size_t size);
char *catena_strdup(const char *text);
char *catena_strndup(const char *text, size_t most);
int catena_vasprintf(char **text, const char *format, va_list arguments);
ssize_t catena_getdelim(char **line, size_t *capacity, int delimiter, FILE *file);

void *catena_new(size_t size);
void catena_delete_sized(void *memory, size_t size);

bool standby_active(void) { return true; }

void standby_forget(const void *memory)
{
    uint64_t unused;
    heap_remove(memory, &unused);
}

void *REPLACES(malloc)(size_t size) { return catena_malloc(size); }
void *REPLACES(calloc)(size_t count, size_t size) { return catena_calloc(count, size); }
void REPLACES(free)(void *memory) { catena_free(memory); }
void *REPLACES(realloc)(void *memory, size_t size) { return catena_realloc(memory, size); }
void *REPLACES(reallocarray)(void *memory, size_t count, size_t size) { return catena_reallocarray(memory, count, size); }
void *REPLACES(aligned_alloc)(size_t alignment, size_t size) { return catena_aligned_alloc(alignment, size); }
void *REPLACES(memalign)(size_t alignment, size_t size) { return catena_aligned_alloc(alignment, size); }
void *REPLACES(valloc)(size_t size) { return catena_valloc(size); }
char *REPLACES(strdup)(const char *text) { return catena_strdup(text); }
char *REPLACES(strndup)(const char *text, size_t most) { return catena_strndup(text, most); }
char *REPLACES(__strdup)(const char *text) { return catena_strdup(text); }
char *REPLACES(__strndup)(const char *text, size_t most) { return catena_strndup(text, most); }

int REPLACES(posix_memalign)(void **memory, size_t alignment, size_t size)
{
    return catena_posix_memalign(memory, alignment, size);
}

int REPLACES(vasprintf)(char **text, const char *format, va_list arguments)
{
    return catena_vasprintf(text, format, arguments);
}

int REPLACES(asprintf)(char **text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = catena_vasprintf(text, format, arguments);
    va_end(arguments);
    return length;
}

ssize_t REPLACES(getdelim)(char **line, size_t *capacity, int delimiter, FILE *file)
{
    return catena_getdelim(line, capacity, delimiter, file);
}

ssize_t REPLACES(getline)(char **line, size_t *capacity, FILE *file)
{
    return catena_getdelim(line, capacity, '\n', file);
}

/* operator new and delete of C++. */
void *REPLACES(_Znwm)(size_t size) { return catena_new(size); }
void *REPLACES(_Znam)(size_t size) { return catena_new(size); }
void REPLACES(_ZdlPv)(void *memory) { catena_free(memory); }
void REPLACES(_ZdaPv)(void *memory) { catena_free(memory); }
void REPLACES(_ZdlPvm)(void *memory, size_t size) { catena_delete_sized(memory, size); }
void REPLACES(_ZdaPvm)(void *memory, size_t size) { catena_delete_sized(memory, size); }
