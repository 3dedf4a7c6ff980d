/* Looking at all memory of a traced program: what changed, and what leads where. */
#ifndef CATENA_REACH_H
#define CATENA_REACH_H

#include <stddef.h>
#include <stdint.h>

/* Call `visit` with every object that can be reached from an address. */
void catena_for_reachable(uintptr_t address, void (*visit)(uint32_t number));

/* Return a number for an object's contents. */
uint64_t catena_object_hash(uint32_t number);

/* Look at all objects: call `changed`, if it is not null, with those whose contents are others than the last time, then
 * `leads` with those from which an object that was written can be reached. Return how many bytes that was. */
size_t catena_look(void (*changed)(uint32_t number), void (*leads)(uint32_t number));

#endif
