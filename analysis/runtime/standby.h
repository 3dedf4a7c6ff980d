/* The runtime of a program that `catena-analyze --standby` wrote: primary, standby or neither, as the environment says.
 */
#ifndef CATENA_STANDBY_H
#define CATENA_STANDBY_H

#include "objects.h"

/* Return whether the program is a primary or a standby, or checks itself. */
bool standby_active(void);
/* Memory is freed, or was by somebody else: it is no object any more. */
void standby_forget(const void *memory);

/* Called by the program: a packet has been processed, before the reception with this number; `receives` is 0 where a
 * library that calls back has returned, so that no packet comes before it is called again. */
void catena_packet_end(uint32_t reception, uint32_t receives);

#endif
