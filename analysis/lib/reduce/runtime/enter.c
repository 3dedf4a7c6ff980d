/* Linked into a reduced program: checks at the first reception that the configuration is the one that the program was
 * reduced for, and finds the blocks on the heap that its code names.
 *
 * A fact says what stands in memory: a number, or a pointer to an object. Objects that are global variables have their
 * address from the beginning; a block on the heap gets it from the first fact that points there. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fact {
    uint32_t object;
    uint32_t target; /* or UINT32_MAX for a number */
    uint32_t offset;
    uint32_t size;
    uint64_t value; /* the number, or the offset within the target */
};

extern const struct fact catena_facts[];
extern const uint64_t catena_fact_count;
extern char *catena_objects[];

/* What stands in tables of addresses: places in objects, or UINT32_MAX for null. */
extern const struct place {
    uint32_t object;
    uint32_t offset;
} catena_tabled[];
extern const uint64_t catena_tabled_count;
extern char *catena_tables[];

static void refuse(void)
{
    fprintf(stderr, "this program was reduced for another configuration than it was started with: start the original, or "
                    "run catena-reduce again\n");
    exit(78);
}

void catena_enter(void)
{
    for (uint64_t i = 0; i < catena_fact_count; i++) {
        const struct fact *fact = &catena_facts[i];
        const char *at = catena_objects[fact->object] + fact->offset;
        uint64_t found = 0;
        memcpy(&found, at, fact->size);
        if (fact->target == UINT32_MAX) {
            if (found != fact->value) refuse();
            continue;
        }
        char *base = (char *)found - fact->value;
        if (!catena_objects[fact->target])
            catena_objects[fact->target] = base;
        else if (catena_objects[fact->target] != base)
            refuse();
    }
    for (uint64_t i = 0; i < catena_tabled_count; i++)
        if (catena_tabled[i].object != UINT32_MAX)
            catena_tables[i] = catena_objects[catena_tabled[i].object] + catena_tabled[i].offset;
}
