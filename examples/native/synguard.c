/* synguard: drops connection attempts of sources that make too many.
 *
 * It counts, for each source address (IPv4 and IPv6), the TCP segments with SYN and without ACK in a window of
 * time. Beyond the limit further ones are dropped until the window ends; what belongs to connections passes always.
 *
 * Arguments: `limit`, attempts in a window (100); `window`, its length (1 s); `sources`, how many are kept (100000):
 * when the table is full, attempts of new sources pass, counted as `unknown`.
 */
#include <catena/nf.h>
#include <string.h>

enum { TOO_MANY };
static const char *const reasons[] = { "too many connection attempts", NULL };

enum { TCP = 6, SYN = 0x02, ACK = 0x10 };

/* An address; IPv4 as ::ffff:a.b.c.d. */
struct source {
    uint8_t address[16];
};

/* What is known of a source. */
struct attempts {
    uint64_t since; /* when its window began, ns */
    uint64_t count;
};

struct guard {
    uint64_t limit, window;
    uint64_t now; /* for the visitor */
    catena_map sources;
    catena_counters attempts, unknown;
};

static int init(struct catena_context *cx, void **self)
{
    uint64_t sources;
    struct guard *guard = calloc(1, sizeof *guard);
    if (guard == NULL)
        return -1;
    if (catena_arg_u64(cx, "limit", 100, 1, UINT64_C(1) << 32, &guard->limit) != 0 ||
        catena_arg_u64(cx, "window", 1000000000, 1000000, UINT64_C(3600000000000), &guard->window) != 0 ||
        catena_arg_u64(cx, "sources", 100000, 1, 100000000, &sources) != 0) {
        free(guard);
        return -1;
    }
    guard->sources = catena_new_map(cx, "sources", CATENA_SOURCE, CATENA_READ_WRITE, sizeof(struct source),
                                    sizeof(struct attempts), sources);
    guard->attempts = catena_new_counters(cx, "attempts", CATENA_GLOBAL, CATENA_WRITE_MOSTLY, 1);
    guard->unknown = catena_new_counters(cx, "unknown", CATENA_GLOBAL, CATENA_WRITE_MOSTLY, 1);
    *self = guard;
    return 0;
}

/* Return whether a packet asks for a connection. Catena has checked that the whole TCP header is there. */
static int is_attempt(const struct catena_packet *packet)
{
    return packet->protocol == TCP && (packet->flags & CATENA_PORTS) != 0 && (packet->flags & CATENA_LATER) == 0 &&
           (packet->data[packet->l4 + 13] & (SYN | ACK)) == SYN;
}

static struct source source_of(const struct catena_packet *packet)
{
    struct source source = { { 0 } };
    const unsigned char *header = packet->data + packet->l3;
    if (packet->net == CATENA_IPV6) {
        memcpy(source.address, header + 8, 16);
    } else {
        memcpy(source.address + 10, "\xff\xff", 2);
        memcpy(source.address + 12, header + 12, 4);
    }
    return source;
}

static void attempt(struct guard *guard, struct catena_context *cx, struct catena_packet *packet)
{
    struct source source = source_of(packet);
    struct attempts seen = { 0, 0 };
    uint64_t now = packet->arrival_ns;
    catena_add(cx, guard->attempts, 0, 1);
    /* Time may step back from packet to packet: such a one counts into the window there is. */
    if (catena_get(cx, guard->sources, &source, &seen) != CATENA_YES ||
        (now > seen.since && now - seen.since >= guard->window)) {
        seen.since = now;
        seen.count = 0;
    }
    seen.count++;
    if (catena_put(cx, guard->sources, &source, &seen) != CATENA_YES)
        catena_add(cx, guard->unknown, 0, 1);
    if (seen.count <= guard->limit)
        return;
    catena_drop(packet, TOO_MANY);
    if (seen.count == guard->limit + 1 && packet->net == CATENA_IPV4)
        catena_log(cx, CATENA_INFO, "%u.%u.%u.%u makes too many connection attempts", source.address[12],
                   source.address[13], source.address[14], source.address[15]);
    else if (seen.count == guard->limit + 1)
        catena_log(cx, CATENA_INFO, "a source in %02x%02x:%02x%02x::/32 makes too many connection attempts",
                   source.address[0], source.address[1], source.address[2], source.address[3]);
}

/* Ask for the entries of all sources that process will look at. */
static void prepare(const void *self, struct catena_context *cx, const struct catena_packet *const *packets,
                    uint32_t count)
{
    const struct guard *guard = self;
    for (uint32_t i = 0; i < count; i++) {
        if (is_attempt(packets[i])) {
            struct source source = source_of(packets[i]);
            catena_expect(cx, guard->sources, &source);
        }
    }
}

static void process(void *self, struct catena_context *cx, struct catena_packet *const *packets, uint32_t count)
{
    struct guard *guard = self;
    for (uint32_t i = 0; i < count; i++)
        if (is_attempt(packets[i]))
            attempt(guard, cx, packets[i]);
}

/* Sources whose window has long ended go. */
static int is_over(void *argument, const void *key, const void *value)
{
    const struct guard *guard = argument;
    struct attempts seen;
    (void)key;
    memcpy(&seen, value, sizeof seen);
    return guard->now > seen.since && guard->now - seen.since >= 2 * guard->window;
}

static void tick(void *self, struct catena_context *cx)
{
    struct guard *guard = self;
    guard->now = cx->now_ns;
    catena_sweep(cx, guard->sources, 256, is_over, guard);
}

CATENA_NF(catena_nf, .name = "synguard", .summary = "drops connection attempts of sources that make too many",
          .reasons = reasons, .init = init, .process = process, .tick = tick, .release = free,
          .prepare = prepare, .flags = CATENA_KEEPS_LAYERS);
