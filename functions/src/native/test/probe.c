/* What the tests of Native ask of a function: the first payload byte of a packet says what to do with it. */
#include <catena/nf.h>
#include <string.h>

enum { ASKED_FOR, NEVER };
static const char *const reasons[] = { "asked for", "never", NULL };

struct probe {
    uint64_t number;
    catena_map seen;
    catena_counters packets;
    unsigned char *stale;
    int finish;
};
struct entry {
    uint64_t count, last;
    uint32_t more;
};
struct key {
    uint8_t source[4];
    uint16_t tag;
};

static int init(struct catena_context *cx, void **self)
{
    const char *fail = catena_arg(cx, "fail");
    struct probe *own = calloc(1, sizeof *own);
    if (own == NULL)
        return -1;
    if (catena_arg_u64(cx, "number", 7, 1, 100, &own->number) != 0) {
        free(own);
        return -1;
    }
    own->finish = catena_arg(cx, "finish") != NULL;
    if (fail != NULL && fail[0] != '\0') {
        catena_fail(cx, "cannot %s", fail);
        catena_fail(cx, "a second message");
    }
    if (fail != NULL) {
        free(own);
        return -1;
    }
    own->seen = catena_new_map(cx, "seen", CATENA_SOURCE, CATENA_READ_WRITE, sizeof(struct key), sizeof(struct entry),
                               catena_arg(cx, "huge") ? UINT64_C(1) << 40 : 3);
    own->packets = catena_new_counters(cx, "packets", CATENA_GLOBAL, CATENA_WRITE_MOSTLY, 2);
    if (catena_arg(cx, "twice"))
        catena_new_counters(cx, "seen", CATENA_GLOBAL, CATENA_WRITE_MOSTLY, 1);
    *self = own;
    return 0;
}

static struct key key_of(const struct catena_packet *packet)
{
    struct key key;
    memset(&key, 0, sizeof key);
    memcpy(key.source, packet->data + packet->l3 + 12, 4);
    return key;
}

static void prepare(const void *self, struct catena_context *cx, const struct catena_packet *const *packets,
                    uint32_t count)
{
    const struct probe *own = self;
    for (uint32_t i = 0; i < count; i++) {
        if ((packets[i]->flags & CATENA_PORTS) && packets[i]->data[packets[i]->payload] == 'c') {
            struct key key = key_of(packets[i]);
            catena_expect(cx, own->seen, &key);
        }
    }
}

/* Count the packet's source in a map; the mark becomes its count, or 99 when the map is full. */
static void count(struct probe *own, struct catena_context *cx, struct catena_packet *packet)
{
    struct key key = key_of(packet);
    struct entry entry = { 0, 0, 0 };
    catena_get(cx, own->seen, &key, &entry);
    entry.count++;
    entry.last = packet->arrival_ns;
    entry.more = 5;
    packet->mark = catena_put(cx, own->seen, &key, &entry) == CATENA_YES ? (uint32_t)entry.count : 99;
}

struct visit {
    struct probe *own;
    struct catena_context *cx;
    int refused;
};

/* Everything goes whose count is above 1; the map cannot be used meanwhile. */
static int visit(void *argument, const void *key, const void *value)
{
    struct visit *at = argument;
    struct entry entry;
    struct key copy;
    memcpy(&copy, key, sizeof copy);
    at->refused += catena_get(at->cx, at->own->seen, &copy, &entry) == CATENA_WRONG;
    memcpy(&entry, value, sizeof entry);
    return entry.count > 1 && entry.more == 5;
}

static void one(struct probe *own, struct catena_context *cx, struct catena_packet *packet)
{
    uint32_t len = packet->len;
    uint64_t wrong = 0;
    struct visit at = { own, cx, 0 };
    switch (packet->data[packet->payload]) {
    case 'd':
        catena_drop(packet, ASKED_FOR);
        break;
    case 'w':
        catena_way(cx, packet, 1);
        break;
    case 'W':
        catena_way(cx, packet, 2);
        break;
    case 'b':
        packet->verdict = 2 * CATENA_WAYS;
        break;
    case 'B':
        catena_drop(packet, 2);
        break;
    case 'm':
        packet->verdict = UINT32_MAX;
        break;
    case 'l':
        packet->len++;
        break;
    case 'p':
        packet->data--;
        break;
    case 'f': /* a tag in front: the addresses move, the type follows */
        if (catena_grow_front(cx, packet, 4) != NULL && packet->len == len + 4) {
            memmove(packet->data, packet->data + 4, 12);
            memcpy(packet->data + 12, "\x81\x00\x00\x05", 4);
        }
        break;
    case 'F':
        packet->mark = catena_grow_front(cx, packet, packet->head_room + 1u) == NULL;
        break;
    case 'e': /* all the tail-room, then all of it and more away again */
        packet->mark = catena_grow_back(cx, packet, packet->tail_room + 1) == NULL &&
                       catena_grow_back(cx, packet, packet->tail_room) != NULL && packet->tail_room == 0 &&
                       packet->data[packet->len - 1] == 0 && catena_shrink_back(cx, packet, packet->len + 1) == NULL &&
                       catena_shrink_back(cx, packet, packet->len - len) != NULL && packet->len == len;
        break;
    case 's':
        catena_shrink_front(cx, packet, 4);
        break;
    case 'c':
        count(own, cx, packet);
        break;
    case 'v':
        packet->mark = (uint32_t)catena_sweep(cx, own->seen, 10, visit, &at);
        packet->mark |= (uint32_t)at.refused << 8 | (uint32_t)catena_entries(cx, own->seen) << 16;
        break;
    case 'x': /* every mistake there is: all refused */
        packet->mark = catena_get(cx, own->seen, &wrong, &wrong) == CATENA_WRONG;
        packet->mark += catena_put(cx, (catena_map){ 7 }, &wrong, &wrong) == CATENA_WRONG;
        packet->mark += catena_remove(cx, (catena_map){ 0 }, &wrong) == CATENA_WRONG;
        packet->mark += catena_sweep(cx, own->seen, 1, NULL, NULL) == 0;
        catena_add(cx, own->packets, 2, 1);
        packet->mark += catena_read(cx, (catena_counters){ 3 }, 0) == -1;
        packet->mark += cx->host->resize(cx, packet + 40, 1, 1) == NULL;
        packet->mark += catena_arg(cx, "number") == NULL;
        packet->mark += catena_new_map(cx, "late", CATENA_GLOBAL, CATENA_READ_WRITE, 8, 8, 1).id == 0;
        break;
    case 'r':
        packet->mark = (uint32_t)catena_random(cx);
        break;
    default:
        packet->mark = (uint32_t)own->number;
    }
    catena_add(cx, own->packets, cx->gate, 1);
}

static void process(void *self, struct catena_context *cx, struct catena_packet *const *packets, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (packets[i]->flags & CATENA_PORTS)
            one(self, cx, packets[i]);
}

static void tick(void *self, struct catena_context *cx)
{
    struct probe *own = self;
    catena_log(cx, CATENA_DEBUG, "tick with %llu entries", (unsigned long long)catena_entries(cx, own->seen));
}

static int finish(void *self, struct catena_context *cx)
{
    const struct probe *own = self;
    if (own->finish)
        catena_fail(cx, "nothing could be written after %lld packets", (long long)catena_read(cx, own->packets, 0));
    return own->finish;
}

CATENA_NF(catena_nf, .name = "probe", .summary = "does what packets ask for", .reasons = reasons, .init = init,
          .process = process, .tick = tick, .finish = finish, .release = free, .prepare = prepare);

/* Tables that lie, for the loader. */
static const char *const endless[101 + 1] = { "r", "r", "r", "r", "r", "r", "r", "r", "r", "r", "r", "r", "r", "r", "r",
    "r", "r", "r", "r", "r", "r", "r", "r", "r", "r", "r", "r", "r", "r", "r", "r", "r", "r", "r", "r", "r", "r", "r",
    "r", "r", "r", "r", "r", "r", "r", "r", "r", "r", "r", "r", "r", "r", "r", "r", "r", "r", "r", "r", "r", "r", "r",
    "r", "r", "r", "r", "r", "r", "r", "r", "r", "r", "r", "r", "r", "r", "r", "r", "r", "r", "r", "r", "r", "r", "r",
    "r", "r", "r", "r", "r", "r", "r", "r", "r", "r", "r", "r", "r", "r", "r", "r", "r", NULL };
#define LIE(symbol, text, function) CATENA_NF(symbol, .name = text, .summary = "lies", .process = function)
LIE(no_process, "x", NULL);
LIE(no_name, NULL, process);
LIE(empty_name, "", process);
LIE(no_text, "\xff", process);
LIE(long_name, "0123456789012345678901234567890123456789012345678901234567890123", process);
CATENA_NF(many_reasons, .name = "x", .summary = "lies", .process = process, .reasons = endless);
CATENA_VISIBLE extern const struct catena_function version, short_table, later;
const struct catena_function version = { .magic = CATENA_MAGIC, .abi = 7, .size = 4 };
const struct catena_function short_table = { .magic = CATENA_MAGIC, .abi = CATENA_ABI, .size = 4 };
const struct catena_function later = { .magic = CATENA_MAGIC, .abi = CATENA_ABI, .size = sizeof later,
                                       .context_size = 32, .packet_size = 72, .host_size = 136 };
CATENA_VISIBLE extern const char no_table[];
const char no_table[sizeof later] = "just a text";
