/* What a function costs that does nothing: `all` lets headers be parsed again after it, `kept` does not; `counts`
 * keeps a counter for each source address. */
#include <catena/nf.h>
#include <string.h>

static void pass(void *self, struct catena_context *cx, struct catena_packet *const *packets, uint32_t count)
{
    (void)self;
    for (uint32_t i = 0; i < count; i++)
        catena_pass(cx, packets[i]);
}

static catena_map *handle(void *self) { return self; }

static int init(struct catena_context *cx, void **self)
{
    catena_map *map = malloc(sizeof *map);
    if (map == NULL)
        return -1;
    *map = catena_new_map(cx, "sources", CATENA_SOURCE, CATENA_READ_WRITE, 4, 8, 100000);
    *self = map;
    return 0;
}

static void counts(void *self, struct catena_context *cx, struct catena_packet *const *packets, uint32_t count)
{
    catena_map map = *handle(self);
    for (uint32_t i = 0; i < count; i++)
        catena_expect(cx, map, (const uint32_t *)(const void *)(packets[i]->data + packets[i]->l3 + 12));
    for (uint32_t i = 0; i < count; i++) {
        uint32_t source;
        uint64_t seen = 0;
        memcpy(&source, packets[i]->data + packets[i]->l3 + 12, sizeof source);
        catena_get(cx, map, &source, &seen);
        seen++;
        catena_put(cx, map, &source, &seen);
    }
}

CATENA_NF(all, .name = "all", .summary = "passes all", .process = pass);
CATENA_NF(kept, .name = "kept", .summary = "passes all", .process = pass, .flags = CATENA_KEEPS_LAYERS);
CATENA_NF(each, .name = "each", .summary = "counts by source", .init = init, .process = counts, .release = free,
          .flags = CATENA_KEEPS_LAYERS);
