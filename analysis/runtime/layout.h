/* What `catena-analyze --standby` writes into a program about its memory: types, objects, variables, allocations.
 *
 * The tables are constants that lib/export makes, and lib/reduce/movable.cpp; all sides must agree on every member here. */
#ifndef CATENA_LAYOUT_H
#define CATENA_LAYOUT_H

#include <stdint.h>

/* How the pointers in a piece of memory are found. */
enum catena_treatment {
    CATENA_BYTES = 0,    /* there are none */
    CATENA_TYPED = 1,    /* where its type says */
    CATENA_WORDS = 2,    /* any aligned word that is the address of something known */
    CATENA_CONSTANT = 3, /* its content never changes: it is referred to, never carried over */
};

enum catena_slot_kind {
    CATENA_POINTER = 0,
    CATENA_LIBRARY = 1, /* a pointer to a type that only a library knows */
    CATENA_UNSURE = 2,  /* a union or an integer as wide as a pointer: treated as words; `count` is its bytes */
    CATENA_STRUCTS = 3, /* `count` values of `element` */
};

struct catena_type;

/* A place in a type where pointers are. */
struct catena_slot {
    uint64_t offset;
    uint32_t kind;
    uint32_t count;
    const struct catena_type *element;
    const char *member;
};

struct catena_type {
    const char *name;
    uint64_t size;
    const struct catena_slot *slots;
    uint32_t slot_count;
    /* Its last member is an array of any length. */
    uint32_t open;
};

/* A global variable, or a cell of a procedure with a packet loop. */
struct catena_object {
    const char *name;
    /* Where it is; of a cell, where its address is kept while the procedure runs. */
    void *address;
    uint64_t size;
    const struct catena_type *type;
    uint32_t treatment;
    uint32_t is_cell;
};

/* A persistent variable. */
struct catena_variable {
    uint32_t object;
    /* Its updated bit, or -1 if it is not updateable. */
    int32_t bit;
    /* Header fields key what it holds: it is a table of flows, or leads to one. */
    uint32_t keyed;
};

/* A call that allocates. */
struct catena_site {
    const char *place;
    const struct catena_type *type;
    /* The updated bits of the keyed variables that what it allocates is an entry of. */
    const uint32_t *entry_of;
    uint32_t treatment;
    uint32_t entry_of_count;
};

/* Where a packet ends. */
struct catena_boundary {
    const char *place;
};

struct catena_program {
    unsigned char fingerprint[16];
    const struct catena_object *objects;
    const struct catena_variable *variables;
    const struct catena_site *sites;
    const struct catena_boundary *boundaries;
    void *const *functions;
    uint32_t object_count, variable_count, site_count, boundary_count, function_count;
};

extern const struct catena_program catena_program;
/* The site of the allocation that comes next, or 0. */
extern uint32_t catena_site;

#endif
