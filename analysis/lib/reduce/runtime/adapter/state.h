/* The state of a copy, as the copy that takes its place finds it. */
#ifndef CATENA_STATE_H
#define CATENA_STATE_H

#include "adapter.h"
#include "objects.h"

/* Bytes that packets may write, and, with a period, those that lie as far behind, and so on; the end may lie behind the
 * object's. */
struct range {
    uint64_t begin, end, period;
};

struct written {
    const struct range *ranges;
    uint64_t count;
};

/* What catena-reduce writes down beside catena_program: for each of its objects and sites what packets may write in it, and
 * the names of its functions. */
extern const struct written catena_written_objects[], catena_written_sites[];
extern const char *const catena_function_names[];
/* Where state is that cannot be moved; empty if there is none. */
extern const char catena_immovable[];

struct moving {
    const struct catena_program *program;
    const struct written *objects, *sites;
    const char *const *function_names;
    const char *immovable;
    struct object *(*object_at)(const void *address);
    int64_t (*function_number)(const void *address);
    void (*heap_each)(void (*visit)(struct object *, void *), void *context);
    bool (*on_stack)(const void *address);
    bool (*heap_remove)(const void *base, uint64_t *unused);
    /* Where the program's code and constants are, and the packet at hand. */
    const char *begin, *end;
    const char *packet, *header;
    uint64_t packet_size, header_size;
    uint64_t *beside;
};

/* This copy's; filled in once, before anything else. */
extern struct moving moving;
void state_begin(void);

/* Take the state of another copy over. Return null, or why it cannot be: then nothing has changed. `left` gets the number of
 * entries of the configuration that had state and are not there any more. */
const char *state_take(const struct moving *old, uint64_t *left);

#endif
