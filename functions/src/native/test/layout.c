/* Holds the header to the numbers that Catena has for its structures. */
#include <catena/nf.h>

_Static_assert(sizeof(struct catena_packet) == 64 && offsetof(struct catena_packet, arrival_ns) == 24, "packet");
_Static_assert(offsetof(struct catena_packet, l3) == 32 && offsetof(struct catena_packet, verdict) == 40, "packet");
_Static_assert(offsetof(struct catena_packet, clock) == 48, "packet");
_Static_assert(sizeof(struct catena_context) == 40 && offsetof(struct catena_context, host) == 24, "context");
_Static_assert(offsetof(struct catena_context, replaces) == 32, "context");
_Static_assert(sizeof(struct catena_host) == 136 && offsetof(struct catena_host, read) == 128, "host");
_Static_assert(sizeof(struct catena_function) == 112 && offsetof(struct catena_function, name) == 32, "function");
_Static_assert(offsetof(struct catena_function, init) == 56, "function");
_Static_assert(offsetof(struct catena_function, take_over) == 96, "function");
_Static_assert(offsetof(struct catena_function, prepare) == 104, "function");
