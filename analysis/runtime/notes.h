/* What a program noted of its memory since the last packet ended: where it wrote, and where it read entries of flows.
 */
#ifndef CATENA_NOTES_H
#define CATENA_NOTES_H

#include <stdbool.h>
#include <stdint.h>

struct note {
    const void *address;
    /* 0 if it is not known. */
    uint32_t size;
};

struct notes {
    struct note *list;
    uint32_t count;
    /* There was more than there is room for, or it cannot be said where. */
    bool anywhere;
};

/* Begin to note; reads only if they are asked for. */
void notes_begin(bool reads);
struct notes *notes_written(void);
struct notes *notes_read(void);
/* A packet has ended: nothing is noted of the next one yet. */
void notes_clear(void);

/* Called by the program: it is going to write so many bytes here; 0 if that is not known. */
void catena_wrote(const void *address, uint32_t size);
/* Called by the program: it is going to write anywhere that its variables lead to. */
void catena_wrote_deep(void);
/* Called by the program: it is going to read an entry of a flow. */
void catena_read(const void *address, uint32_t size);

#endif
