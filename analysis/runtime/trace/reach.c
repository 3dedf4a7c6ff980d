/* Whatever looks like an address of an object is taken for a pointer to it. Objects and what points to them are walked
 * backwards from those that were written, so that each pointer is followed once. */
#include "reach.h"

#include "objects.h"
#include <stdbool.h>
#include <string.h>

struct pointer {
    uint32_t from, to;
};
enum { MOST_POINTERS = 1 << 28 };
static struct pointer *pointers;
static uint32_t *begins, *sources, *work;
static uint8_t *marks;
static uint32_t mark_room;

/* Call `visit` with every word of an object that is aligned as pointers are, and the bytes after the last one. */
static uint64_t hash_words(const struct object *object, uint64_t hash, uint32_t from, uint64_t *found) {
    const char *bytes = (const char *)object->begin;
    for (size_t at = 0; at < object->size; at += sizeof(uint64_t)) {
        uint64_t word = 0;
        size_t left = object->size - at;
        memcpy(&word, bytes + at, left < sizeof word ? left : sizeof word);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
        if (!found || left < sizeof word) continue;
        uint32_t to = catena_object_at(word);
        if (to && to != from && *found < MOST_POINTERS) pointers[(*found)++] = (struct pointer){from, to};
    }
    return hash;
}

uint64_t catena_object_hash(uint32_t number) { return hash_words(&catena_objects[number], 1, number, NULL); }

static void make_room(void) {
    if (!pointers) pointers = catena_reserve(sizeof *pointers * MOST_POINTERS);
    if (!sources) sources = catena_reserve(sizeof *sources * MOST_POINTERS);
    if (!begins) begins = catena_reserve(sizeof *begins << 26);
    if (!work) work = catena_reserve(sizeof *work << 26);
    if (!marks) marks = catena_reserve((size_t)1 << 26);
    memset(marks, 0, mark_room > catena_object_end ? mark_room : catena_object_end);
    mark_room = catena_object_end;
}

void catena_for_reachable(uintptr_t address, void (*visit)(uint32_t number)) {
    uint32_t first = catena_object_at(address), count = 0;
    if (!first) return;
    make_room();
    marks[first] = 1;
    work[count++] = first;
    while (count) {
        uint32_t number = work[--count];
        visit(number);
        uint64_t found = 0;
        hash_words(&catena_objects[number], 0, number, &found);
        for (uint64_t i = 0; i < found; ++i) {
            uint32_t to = pointers[i].to;
            if (marks[to]) continue;
            marks[to] = 1;
            work[count++] = to;
        }
    }
}

size_t catena_look(void (*changed)(uint32_t number), void (*leads)(uint32_t number)) {
    make_room();
    size_t bytes = 0;
    uint64_t found = 0;
    for (uint32_t number = 1; number < catena_object_end; ++number) {
        struct object *object = &catena_objects[number];
        if (!object->alive) continue;
        bytes += object->size;
        uint64_t hash = hash_words(object, 1, number, &found);
        if (changed && object->hashed && hash != object->hash) changed(number);
        object->hash = hash;
        object->hashed = 1;
    }
    /* Sorted by where they point to. */
    memset(begins, 0, sizeof *begins * (catena_object_end + 2));
    for (uint64_t i = 0; i < found; ++i) ++begins[pointers[i].to + 2];
    for (uint32_t number = 2; number <= catena_object_end; ++number) begins[number + 1] += begins[number];
    for (uint64_t i = 0; i < found; ++i) sources[begins[pointers[i].to + 1]++] = pointers[i].from;
    uint32_t count = 0;
    for (uint32_t number = 1; number < catena_object_end; ++number)
        if (catena_objects[number].alive && catena_objects[number].written) marks[number] = 1, work[count++] = number;
    while (count) {
        uint32_t number = work[--count];
        leads(number);
        for (uint32_t i = begins[number]; i < begins[number + 1]; ++i)
            if (!marks[sources[i]]) marks[sources[i]] = 1, work[count++] = sources[i];
    }
    return bytes;
}
