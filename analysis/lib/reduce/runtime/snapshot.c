/* Linked into an instrumented program: keeps all blocks of memory in one arena, and writes globals and arena to a file
 * when the first packet is about to be received, or when the program ends.
 *
 * CATENA_SNAPSHOT names the file; CATENA_SNAPSHOT_AT says when: `reception`, after which the program ends, or `exit`. The
 * arena lies elsewhere in every run: what differs between their files is a pointer, or not decided by the configuration
 * alone. Nothing is given back: a block's number says what it is in both. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct symbol {
    void *address;
    uint64_t size;
};

struct block {
    uint64_t size;
    uint32_t site;
    uint32_t origin : 31, freed : 1;
};

extern const struct symbol catena_symbols[];
extern const uint64_t catena_symbol_count;
/* The call of the program that is being executed, and that of its own allocator. */
__thread uint32_t catena_site, catena_origin;

static const uint64_t arena_size = 1ull << 36;
static char *_Atomic top;
static char *arena;

static void stop(const char *why)
{
    ssize_t written = write(2, why, strlen(why));
    (void)written;
    _exit(71);
}

static char *take(size_t size)
{
    if (!top) {
        /* Below all that the kernel places, as far up as the program's own addresses say, which are random: no other
         * source of chance is there before the program begins. */
        uint64_t from = 1ull << 44 | ((uintptr_t)&top >> 12 & 0xfffffff) << 16;
        arena = mmap((void *)from, arena_size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
        if (arena != (void *)from) stop("catena: no room for the arena\n");
        top = arena;
    }
    char *at = top;
    while (!__atomic_compare_exchange_n((char **)&top, &at, at + size, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {}
    if (at + size > arena + arena_size) stop("catena: the arena is full\n");
    return at;
}

/* A block: its description, then its bytes from a multiple of 16 on, and a gap of at least one byte. */
void *malloc(size_t size)
{
    if (size > arena_size / 2) return errno = ENOMEM, NULL;
    struct block *block = (struct block *)take(sizeof *block + (size + 16) / 16 * 16);
    block->size = size;
    block->site = catena_site;
    block->origin = catena_origin;
    return block + 1;
}

void free(void *at)
{
    if (at) ((struct block *)at)[-1].freed = 1;
}

void *calloc(size_t count, size_t size)
{
    if (size && count > arena_size / size) return errno = ENOMEM, NULL;
    return malloc(count * size);
}

void *realloc(void *old, size_t size)
{
    void *new = malloc(size);
    if (!old || !new) return new;
    size_t had = ((struct block *)old)[-1].size;
    memcpy(new, old, had < size ? had : size);
    free(old);
    return new;
}

/* An aligned block lies within a larger one, which is cut in two there, so that blocks can still be walked. */
void *memalign(size_t alignment, size_t size)
{
    const size_t description = sizeof(struct block);
    if (alignment <= 16) return malloc(size);
    char *from = malloc(size + alignment + 2 * description);
    if (!from) return NULL;
    char *at = (char *)(((uintptr_t)from + 2 * description + alignment - 1) & ~(uintptr_t)(alignment - 1));
    struct block *outer = (struct block *)from - 1, *inner = (struct block *)at - 1;
    inner->size = outer->size - (uint64_t)(at - from);
    inner->site = outer->site, inner->origin = outer->origin;
    outer->size = (uint64_t)(at - from) - 2 * description;
    outer->freed = 1;
    return at;
}

void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
void *valloc(size_t size) { return memalign(4096, size); }
size_t malloc_usable_size(void *at) { return at ? ((struct block *)at)[-1].size : 0; }

int posix_memalign(void **to, size_t alignment, size_t size)
{
    *to = memalign(alignment, size);
    return *to ? 0 : ENOMEM;
}

static void put(int file, const void *from, uint64_t size)
{
    for (uint64_t done = 0; done < size;) {
        ssize_t wrote = write(file, (const char *)from + done, size - done);
        if (wrote <= 0) stop("catena: cannot write the snapshot\n");
        done += (uint64_t)wrote;
    }
}

static void put64(int file, uint64_t value) { put(file, &value, sizeof value); }

static void snapshot(void)
{
    char *end = top;
    int file = open(getenv("CATENA_SNAPSHOT"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (file < 0) stop("catena: cannot open the snapshot's file\n");
    put64(file, catena_symbol_count);
    for (uint64_t i = 0; i < catena_symbol_count; i++) {
        put64(file, (uint64_t)catena_symbols[i].address);
        put64(file, catena_symbols[i].size);
        put(file, catena_symbols[i].address, catena_symbols[i].size);
    }
    for (char *at = arena; at < end;) {
        struct block *block = (struct block *)at;
        put64(file, (uint64_t)(block + 1));
        put64(file, block->size);
        put64(file, (uint64_t)block->site << 32 | (uint32_t)block->origin << 1 | block->freed);
        put(file, block + 1, block->size);
        at += sizeof *block + (block->size + 16) / 16 * 16;
    }
    close(file);
}

static int at_exit;

__attribute__((constructor)) static void begin(void)
{
    const char *when = getenv("CATENA_SNAPSHOT_AT");
    at_exit = when && strcmp(when, "exit") == 0;
    if (at_exit) atexit(snapshot);
}

void catena_first_reception(void)
{
    if (at_exit || !getenv("CATENA_SNAPSHOT")) return;
    snapshot();
    _exit(0);
}
