/* A function that counts in `*self` and in a state object, of which there are builds: each marks packets with its number and
 * both counts. Build 2 takes over from build 1, build 3 refuses to, build 4 does not start. */
#include <catena/nf.h>

struct keeper {
    uint32_t count;
    catena_counters counted;
    struct keeper *started_beside;
};

static int init(struct catena_context *cx, void **self)
{
    struct keeper *own = calloc(1, sizeof *own);
    if (own == NULL || BUILD == 4) {
        catena_fail(cx, "cannot start");
        free(own);
        return -1;
    }
    own->counted = catena_new_counters(cx, "counted", CATENA_GLOBAL, CATENA_WRITE_MOSTLY, 1);
    own->started_beside = cx->size > offsetof(struct catena_context, replaces) ? cx->replaces : NULL;
    *self = own;
    return 0;
}

static void process(void *self, struct catena_context *cx, struct catena_packet *const *packets, uint32_t count)
{
    struct keeper *own = self;
    for (uint32_t i = 0; i < count; i++) {
        own->count++;
        catena_add(cx, own->counted, 0, 1);
        packets[i]->mark = BUILD << 16 | own->count << 8 | (uint32_t)catena_read(cx, own->counted, 0);
    }
}

static int take_over(void *self, struct catena_context *cx, void *old)
{
    struct keeper *own = self;
    if (BUILD == 3 || own->started_beside != old) {
        catena_fail(cx, "build %d does not", BUILD);
        return -1;
    }
    own->count = ((struct keeper *)old)->count;
    return 0;
}

CATENA_NF(catena_nf, .name = "keeper", .summary = "counts", .init = init, .process = process, .release = free,
          .take_over = take_over);

/* As a library that was built with the first header has it. */
CATENA_VISIBLE const struct catena_function earlier = { .magic = CATENA_MAGIC, .abi = CATENA_ABI,
    .size = offsetof(struct catena_function, take_over), .context_size = offsetof(struct catena_context, replaces),
    .packet_size = sizeof(struct catena_packet), .host_size = sizeof(struct catena_host), .name = "keeper",
    .summary = "counts", .init = init, .process = process, .release = free };
