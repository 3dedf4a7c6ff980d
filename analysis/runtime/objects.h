/* The objects of a running program: its variables and all that it has allocated. */
#ifndef CATENA_OBJECTS_H
#define CATENA_OBJECTS_H

#include "layout.h"
#include <stdbool.h>
#include <stddef.h>

/* What a reference refers to; the numbers are those of a state stream. */
enum object_kind { OBJECT_GLOBAL, OBJECT_CELL, OBJECT_HEAP, OBJECT_FUNCTION };

struct object {
    const char *name;
    char *base;
    uint64_t size;
    const struct catena_type *type;
    uint32_t treatment;
    enum object_kind kind;
    /* Which global or cell it is in the program's tables. */
    uint32_t index;
    /* A persistent variable has an entry of its own; other globals are carried over with what leads to them. */
    bool is_variable;
    /* It is an entry of a flow, or a keyed variable, which holds such or leads to them. */
    bool keyed;
    /* Of the heap: which call allocated it, as how many-th, and whether that was before the first packet. */
    uint32_t site, ordinal;
    bool early;
    /* Its number in the state stream, or 0 if the standby does not know it. */
    uint64_t stream_id;
    /* The last walk that came by, and the last packet that wrote it. */
    uint64_t walked, written;
    /* A digest of its content, for checks. */
    uint64_t digest;
    /* The tree of the heap, by address. */
    struct object *left, *right;
    uint32_t priority;
};

/* Read the program's tables; once, before anything else here. */
void objects_begin(void);
/* Note where the cells of running procedures are. */
void objects_find_cells(void);
/* Return the object that an address lies in, or that it is the end of; null if there is none. */
struct object *object_at(const void *address);
/* Return a global or cell by its number in the tables, or null. */
struct object *object_of(enum object_kind kind, uint64_t index);
/* Return a function's number in the tables, or -1. */
int64_t function_number(const void *address);

/* Add what was allocated; return null if there is no memory for the note of it. */
struct object *heap_add(void *base, uint64_t size, uint32_t site);
/* Take an object of the heap out; return whether it was known. Its `stream_id` goes to `stream_id`. */
bool heap_remove(const void *base, uint64_t *stream_id);
/* Call `visit` with every object of the heap, by address. */
void heap_each(void (*visit)(struct object *, void *), void *context);
/* From now on allocations are made for packets. */
void heap_initialized(void);

#endif
