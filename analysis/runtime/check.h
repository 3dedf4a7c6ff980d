/* Checks a program's instrumentation while it runs. */
#ifndef CATENA_CHECK_H
#define CATENA_CHECK_H

#include <stdbool.h>
#include <stdint.h>

/* After a packet: whatever a persistent variable leads to must be as it was, or its updated bit set; and whatever
 * object of updateable variables has changed must have been noted as written, unless `anywhere` says that it cannot be
 * told which were. Return how often that was not so. */
uint64_t check_packet(uint64_t packet, const char *updated, bool anywhere);

#endif
