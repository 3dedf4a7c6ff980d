/* The naive way to know what a packet updates: compare all of the state with what it was. */
#include "check.h"

#include "walk.h"

#include <stdio.h>

static uint64_t wrong, packet_now;
static bool written_anywhere;

/* FNV-1a (Fowler, Noll and Vo). */
static uint64_t digest(const unsigned char *bytes, size_t count) {
    uint64_t sum = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < count; i++) sum = (sum ^ bytes[i]) * UINT64_C(1099511628211);
    return sum ? sum : 1;
}

static const char *kind_of(const struct object *object) {
    return object->kind == OBJECT_HEAP ? "what was allocated at " : "";
}

/* By its bytes: a pointer to what was freed stays the same, whatever is there now. */
static void compare_object(struct object *object) {
    uint64_t now = digest((const unsigned char *)object->base, object->size);
    if (object->digest && object->digest != now && object->written != packet_now && !written_anywhere) {
        wrong++;
        fprintf(stderr, "catena: packet %llu: %s%s changed, but no write of it was noted\n",
                (unsigned long long)packet_now, kind_of(object), object->name);
    }
    object->digest = now;
}

uint64_t check_packet(uint64_t packet, const char *updated, bool anywhere) {
    static struct walk walk, objects;
    static uint64_t *digests;
    if (!digests) digests = calloc(catena_program.variable_count + 1, sizeof *digests);
    if (!digests) abort();
    walk.by_origin = objects.by_origin = true;
    objects.visited = compare_object;
    packet_now = packet;
    written_anywhere = anywhere;
    for (uint32_t i = 0; i < catena_program.variable_count; i++) {
        const struct catena_variable *variable = &catena_program.variables[i];
        struct object *object =
            object_of(catena_program.objects[variable->object].is_cell ? OBJECT_CELL : OBJECT_GLOBAL, variable->object);
        walk_begin(&walk, true);
        walk_to(&walk, object);
        walk_on(&walk);
        uint64_t now = digest(walk.contents.bytes, walk.contents.length);
        bool set = variable->bit >= 0 && updated[variable->bit];
        if (digests[i] && digests[i] != now && !set) {
            wrong++;
            fprintf(stderr, "catena: packet %llu: %s changed without its updated bit\n", (unsigned long long)packet,
                    object->name);
        }
        digests[i] = now;
    }
    walk_begin(&objects, true);
    for (uint32_t i = 0; i < catena_program.variable_count; i++) {
        const struct catena_variable *variable = &catena_program.variables[i];
        enum object_kind kind = catena_program.objects[variable->object].is_cell ? OBJECT_CELL : OBJECT_GLOBAL;
        if (variable->bit >= 0) walk_to(&objects, object_of(kind, variable->object));
    }
    walk_on(&objects);
    uint64_t found = wrong;
    wrong = 0;
    return found;
}
