/* Finding objects: the address space in pieces of 16 bytes, each with the number of its object, in a table of two
 * levels of which only the parts in use take memory. */
#include "objects.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { GRANULE = 4, LEAF = 20, ROOT = 47 - GRANULE - LEAF };
static const uint32_t most_objects = 1u << 26;

struct object *catena_objects;
uint32_t catena_object_end = 1;
static uint32_t **root;
/* Numbers to use again. */
static uint32_t *unused;
static uint32_t unused_count;

void *catena_reserve(size_t bytes) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        perror("catena trace: no address space for the table of catena_objects; try with `ulimit -v unlimited`");
        abort();
    }
    return memory;
}

static void set(uintptr_t begin, size_t size, uint32_t number) {
    for (uintptr_t at = begin >> GRANULE; at <= (begin + size - 1) >> GRANULE; ++at) {
        uint32_t **leaf = &root[at >> LEAF];
        if (!*leaf) *leaf = catena_reserve(sizeof(uint32_t) << LEAF);
        (*leaf)[at & ((1u << LEAF) - 1)] = number;
    }
}

uint32_t catena_object_at(uintptr_t address) {
    uintptr_t at = address >> GRANULE;
    if (!root || at >> (LEAF + ROOT)) return 0;
    const uint32_t *leaf = root[at >> LEAF];
    uint32_t number = leaf ? leaf[at & ((1u << LEAF) - 1)] : 0;
    return number && address - catena_objects[number].begin < catena_objects[number].size ? number : 0;
}

uint32_t catena_object_new(uintptr_t begin, size_t size, uint32_t variable) {
    if (!root) {
        root = catena_reserve(sizeof *root << ROOT);
        catena_objects = catena_reserve(sizeof *catena_objects * most_objects);
        unused = catena_reserve(sizeof *unused * most_objects);
    }
    if (!size || begin >> 47) return 0;
    for (uintptr_t at = begin; at < begin + size; at += 1 << GRANULE) {
        const uint32_t *leaf = root[at >> (GRANULE + LEAF)];
        uint32_t before = leaf ? leaf[(at >> GRANULE) & ((1u << LEAF) - 1)] : 0;
        if (before) catena_object_gone(before);
    }
    if (!unused_count && catena_object_end == most_objects) {
        fputs("catena trace: the program has more than 67,108,863 objects at once\n", stderr);
        abort();
    }
    uint32_t number = unused_count ? unused[--unused_count] : catena_object_end++;
    catena_objects[number] = (struct object){.begin = begin, .size = size, .variable = variable, .alive = 1};
    set(begin, size, number);
    return number;
}

void catena_object_gone(uint32_t number) {
    if (!catena_objects[number].alive) return;
    set(catena_objects[number].begin, catena_objects[number].size, 0);
    catena_objects[number].alive = 0;
    unused[unused_count++] = number;
}
