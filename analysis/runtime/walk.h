/* Walks over objects and what they lead to, and writes their contents down. */
#ifndef CATENA_WALK_H
#define CATENA_WALK_H

#include "buffer.h"
#include "objects.h"

/* A walk from some objects. */
struct walk {
    /* Objects that the standby does not know, and contents of objects. */
    struct buffer fresh, contents;
    uint64_t fresh_count, contents_count;
    /* Go on to all objects, not only to those that the standby does not know. */
    bool deep;
    /* Of a deep walk: neither on from entries of flows, nor into them; those that are meant are put on the way. */
    bool by_flow;
    /* Refer to the heap by what allocated it instead of by numbers of the stream: for checks, which ship nothing. */
    bool by_origin;
    /* Called with each object that is written down, if set. */
    void (*visited)(struct object *);
    /* What a standby cannot have: a pointer to something a library owns, in an object that only the primary has. */
    const char *refused_member, *refused_object;
    /* Pointers to nothing known, in such objects: of freed or foreign memory. The standby has null there. */
    uint64_t unknown;
    const char *unknown_member;

    struct object **stack;
    size_t waiting, capacity;
    uint64_t round;
    struct buffer pointers, content;
    size_t pointer_count;
    uint64_t last_offset;
    /* The part of an object that is written down, and whether it cuts a pointer in two. */
    uint64_t begin, end;
    bool cut;
};

/* Begin a walk anew; buffers are kept. */
void walk_begin(struct walk *walk, bool deep);
/* Put an object on the way. */
void walk_to(struct walk *walk, struct object *object);
/* Write down only a part of an object that the standby has. */
void walk_to_part(struct walk *walk, struct object *object, uint64_t begin, uint64_t end);
/* Walk until nothing is left. */
void walk_on(struct walk *walk);
/* Take a number of the stream back: its object is freed. */
void walk_release(uint64_t stream_id);

/* A reference to nothing that both sides have: the standby keeps its own. */
enum { WALK_OWN = OBJECT_FUNCTION };

#endif
