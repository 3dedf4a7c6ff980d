/* How a state stream gets from the primary to the standby: `file:PATH` or `tcp:HOST:PORT`. */
#ifndef CATENA_CHANNEL_H
#define CATENA_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>

/* Open the primary's end; TCP: connect, for at most ten seconds. Return a descriptor, or -1 with a message in `error`.
 */
int channel_to(const char *name, char *error, size_t size);
/* Open the standby's end; TCP: listen, and wait for the primary. */
int channel_from(const char *name, char *error, size_t size);
/* Write all; return whether that went well. */
bool channel_write(int channel, const void *bytes, size_t count);
/* Read so much, or up to the end; return how much it was. */
size_t channel_read(int channel, void *bytes, size_t count);

#endif
