/* One thread at a time in the runtime. A signal handler that interrupts the runtime is not traced. */
#ifndef CATENA_LOCK_H
#define CATENA_LOCK_H

#include <stdbool.h>

/* Return whether the lock is taken now: not if this thread has it already. */
bool catena_lock(void);
void catena_unlock(bool mine);

#endif
