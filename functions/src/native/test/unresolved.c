/* A library that nobody can load: it calls what does not exist. */
#include <catena/nf.h>

void there_is_no_such_function(void);

static void process(void *self, struct catena_context *cx, struct catena_packet *const *packets, uint32_t count)
{
    (void)self, (void)cx, (void)packets, (void)count;
    there_is_no_such_function();
}

CATENA_NF(catena_nf, .name = "unresolved", .summary = "cannot be loaded", .process = process);
