/* Functions for engines that are late. `hops` keeps links from numbers to numbers: a packet of `s`, from, to sets one, a packet
 * of `g`, from follows them to the end, which becomes its mark. Which entries that takes is known only on the way. */
#include <catena/nf.h>

enum { NO_ROOM };
static const char *const reasons[] = { "no room", NULL };

struct hops {
    catena_map links;
    catena_counters walks;
};

static int init(struct catena_context *cx, void **self)
{
    struct hops *own = calloc(1, sizeof *own);
    if (own == NULL)
        return -1;
    own->links = catena_new_map(cx, "links", CATENA_GLOBAL, CATENA_READ_WRITE, 1, 1, 256);
    own->walks = catena_new_counters(cx, "walks", CATENA_GLOBAL, CATENA_WRITE_MOSTLY, 1);
    *self = own;
    return 0;
}

static void one(struct hops *own, struct catena_context *cx, struct catena_packet *packet)
{
    const unsigned char *payload = packet->data + packet->payload;
    unsigned char at = payload[1];
    int got;
    if (payload[0] == 's') {
        got = catena_put(cx, own->links, &payload[1], &payload[2]);
        if (got == CATENA_NOT_YET)
            catena_again(packet);
        else if (got != CATENA_YES)
            catena_drop(packet, NO_ROOM);
        return;
    }
    do
        got = catena_get(cx, own->links, &at, &at);
    while (got == CATENA_YES);
    if (got == CATENA_NOT_YET) {
        catena_again(packet);
        return;
    }
    if (got == CATENA_WRONG) {
        catena_drop(packet, NO_ROOM);
        return;
    }
    packet->mark = at;
    catena_add(cx, own->walks, 0, 1);
}

static void process(void *self, struct catena_context *cx, struct catena_packet *const *packets, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        one(self, cx, packets[i]);
}

/* Half of them say which entry comes first. */
static void prepare(const void *self, struct catena_context *cx, const struct catena_packet *const *packets,
                    uint32_t count)
{
    const struct hops *own = self;
    for (uint32_t i = 0; i < count; i++)
        if (packets[i]->data[packets[i]->payload + 1] % 2)
            catena_expect(cx, own->links, packets[i]->data + packets[i]->payload + 1);
}

#define HOPS(symbol, ...)                                                                                              \
    CATENA_NF(symbol, .name = #symbol, .summary = "follows links", .reasons = reasons, .init = init,                   \
              .process = process, .release = free, __VA_ARGS__)
HOPS(hops, .flags = CATENA_PATIENT, .prepare = prepare);
HOPS(unprepared, .flags = CATENA_PATIENT);
HOPS(impatient, .prepare = prepare);
HOPS(hasty, .flags = 0);

/* Never comes to an end. */
static void forever(void *self, struct catena_context *cx, struct catena_packet *const *packets, uint32_t count)
{
    (void)self, (void)cx;
    for (uint32_t i = 0; i < count; i++)
        catena_again(packets[i]);
}
CATENA_NF(endless, .name = "endless", .summary = "says again", .process = forever, .flags = CATENA_PATIENT);

/* Changes what it only may look at. */
static void counting(const void *self, struct catena_context *cx, const struct catena_packet *const *packets,
                     uint32_t count)
{
    struct hops *own = (struct hops *)self;
    (void)packets;
    catena_add(cx, own->walks, 0, count);
}
HOPS(counts, .flags = CATENA_PATIENT, .prepare = counting);

/* Changes a packet before it is done with it. */
static void scribble(void *self, struct catena_context *cx, struct catena_packet *const *packets, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        packets[i]->data[packets[i]->payload + 3]++;
    process(self, cx, packets, count);
}
CATENA_NF(scribbles, .name = "scribbles", .summary = "changes a packet too early", .reasons = reasons, .init = init,
          .process = scribble, .release = free, .flags = CATENA_PATIENT);
