/* The objects of a traced program, and which one an address belongs to. */
#ifndef CATENA_OBJECTS_H
#define CATENA_OBJECTS_H

#include <stddef.h>
#include <stdint.h>

#define NO_VARIABLE UINT32_MAX

struct object {
    uintptr_t begin;
    size_t size;
    uint32_t variable;
    uint8_t alive;
    /* Written while a packet was processed: for sure, or if the packet in work counts. */
    uint8_t written, pending;
    /* Whether `hash` is that of the last boundary. */
    uint8_t hashed;
    uint64_t hash;
};

/* Objects by number, from 1 on; there are `object_end - 1`. */
extern struct object *catena_objects;
extern uint32_t catena_object_end;

/* Return the number of the object that an address lies in, or 0. */
uint32_t catena_object_at(uintptr_t address);
/* Enter an object; what lay there before is gone. Objects begin at multiples of 16 bytes and have some behind them. */
uint32_t catena_object_new(uintptr_t begin, size_t size, uint32_t variable);
void catena_object_gone(uint32_t number);

/* Return zeroed memory for the runtime itself, that is only taken up as it is used. */
void *catena_reserve(size_t bytes);

#endif
