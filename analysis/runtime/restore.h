/* Restores what a primary has shipped. */
#ifndef CATENA_RESTORE_H
#define CATENA_RESTORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a message is. */
enum { MESSAGE_STATE = 'S', MESSAGE_REFUSAL = 'R' };

/* What was restored. */
struct restored {
    /* Packets that the primary has processed, and the reception that it came to. */
    uint64_t packets;
    uint32_t reception;
};

/* Read a stream to its end and apply it, message by message. Return false with a message in `error` if it cannot be
 * taken over: another program's, one that is damaged, or one that the primary had to give up. */
bool restore_stream(int channel, struct restored *restored, char *error, size_t size);

/* What every stream begins with, before the program's fingerprint. */
#define STREAM_MAGIC "catena state 1\n"

#endif
