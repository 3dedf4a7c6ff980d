/* SPDX-License-Identifier: Apache-2.0
 *
 * host.c: stands in for Catena when a network function in C (catena/nf.h) is analysed.
 *
 * A function has no packet loop and receives nothing by itself: Catena calls it. For the analysis this is Catena: it
 * receives packets, calls the function as Catena does, and sends what is not dropped. It is linked with the function as
 * bitcode and never run. State objects that the function declares are Catena's own and stand for themselves;
 * what `catena analyze` finds is what the function keeps beside them. What catena_store_... do says `host.list`.
 */
#include <catena/nf.h>
#include <netinet/ip.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

extern const struct catena_function catena_nf;

/* All that Catena holds for the function. */
void *catena_store(void);
void catena_store_put(void *store, const void *value);
int catena_store_get(void *store, void *value, const void *key);

static void *store;

static const char *arg(struct catena_context *cx, const char *name)
{
    (void)cx;
    return getenv(name);
}

static void fail(struct catena_context *cx, const char *text)
{
    (void)cx;
    fputs(text, stderr);
}

static int log_wanted(struct catena_context *cx, uint32_t level)
{
    (void)cx;
    return level < 3;
}

static void log_line(struct catena_context *cx, uint32_t level, const char *text)
{
    (void)cx;
    (void)level;
    fputs(text, stderr);
}

static uint64_t random_bits(struct catena_context *cx)
{
    (void)cx;
    return (uint64_t)random();
}

static unsigned char *resize(struct catena_context *cx, struct catena_packet *packet, int front, int64_t bytes)
{
    (void)cx;
    packet->len = (uint32_t)(packet->len + bytes);
    if (front)
        packet->data -= bytes;
    return packet->data;
}

static catena_map map(struct catena_context *cx, const char *name, uint32_t scope, uint32_t access, uint32_t key_size,
                      uint32_t value_size, uint64_t capacity)
{
    (void)cx, (void)name, (void)scope, (void)access, (void)key_size, (void)value_size, (void)capacity;
    return (catena_map){ 1 };
}

static void expect(struct catena_context *cx, catena_map map, const void *key, size_t key_size)
{
    (void)cx, (void)map, (void)key, (void)key_size;
}

static int get(struct catena_context *cx, catena_map map, const void *key, size_t key_size, void *value,
               size_t value_size)
{
    (void)cx, (void)map, (void)key_size, (void)value_size;
    return catena_store_get(store, value, key);
}

static int put(struct catena_context *cx, catena_map map, const void *key, size_t key_size, const void *value,
               size_t value_size)
{
    (void)cx, (void)map, (void)key_size, (void)value_size;
    catena_store_put(store, key);
    catena_store_put(store, value);
    return catena_store_get(store, NULL, key);
}

static int take_out(struct catena_context *cx, catena_map map, const void *key, size_t key_size)
{
    (void)cx, (void)map, (void)key_size;
    return catena_store_get(store, NULL, key);
}

static uint64_t sweep(struct catena_context *cx, catena_map map, uint64_t count, catena_visitor visitor, void *argument)
{
    unsigned char key[40], value[256];
    (void)cx, (void)map;
    for (uint64_t i = 0; i < count; i++) {
        catena_store_get(store, key, NULL);
        catena_store_get(store, value, NULL);
        visitor(argument, key, value);
    }
    return count;
}

static uint64_t entries(struct catena_context *cx, catena_map map)
{
    (void)cx, (void)map;
    return (uint64_t)catena_store_get(store, NULL, NULL);
}

static catena_counters counters(struct catena_context *cx, const char *name, uint32_t scope, uint32_t access,
                                uint32_t count)
{
    (void)cx, (void)name, (void)scope, (void)access, (void)count;
    return (catena_counters){ 1 };
}

static void add(struct catena_context *cx, catena_counters counters, uint32_t index, int64_t n)
{
    (void)cx, (void)counters, (void)index;
    catena_store_put(store, &n);
}

static int64_t read_counter(struct catena_context *cx, catena_counters counters, uint32_t index)
{
    (void)cx, (void)counters, (void)index;
    return catena_store_get(store, NULL, NULL);
}

static const struct catena_host host = {
    .size = sizeof host,
    .abi = CATENA_ABI,
    .arg = arg,
    .fail = fail,
    .log_wanted = log_wanted,
    .log = log_line,
    .random = random_bits,
    .resize = resize,
    .map = map,
    .expect = expect,
    .get = get,
    .put = put,
    .remove = take_out,
    .sweep = sweep,
    .entries = entries,
    .counters = counters,
    .add = add,
    .read = read_counter,
};

static void make_context(struct catena_context *cx)
{
    memset(cx, 0, sizeof *cx);
    cx->size = sizeof *cx;
    cx->instances = 1;
    cx->host = &host;
    /* Time depends on no packet. */
    cx->now_ns = (uint64_t)clock();
}

static void *start(void)
{
    struct catena_context cx;
    void *self = NULL;
    store = catena_store();
    make_context(&cx);
    if (catena_nf.init != NULL && catena_nf.init(&cx, &self) != 0)
        exit(1);
    return self;
}

/* Say of a packet what Catena finds in its headers. */
static void describe(struct catena_packet *packet, unsigned char *frame, long length)
{
    const struct iphdr *ip = (const struct iphdr *)(frame + 14);
    memset(packet, 0, sizeof *packet);
    packet->data = frame;
    packet->len = (uint32_t)length;
    packet->l3 = 14;
    packet->net = ip->version;
    packet->protocol = ip->protocol;
    packet->flags = CATENA_PORTS;
    packet->l4 = (uint16_t)(14 + 4 * ip->ihl);
    packet->payload = (uint16_t)(packet->l4 + 20);
    packet->arrival_ns = (uint64_t)clock();
}

static void one_packet(void *self)
{
    unsigned char frame[2048];
    struct catena_context cx;
    struct catena_packet packet, *packets = &packet;
    const struct catena_packet *seen = &packet;
    long length = recv(0, frame, sizeof frame, 0);
    make_context(&cx);
    describe(&packet, frame, length);
    if (catena_nf.prepare != NULL)
        catena_nf.prepare(self, &cx, &seen, 1);
    catena_nf.process(self, &cx, &packets, 1);
    if (packet.verdict < CATENA_AGAIN)
        send((int)packet.verdict, packet.data, packet.len, 0);
}

static void one_tick(void *self)
{
    struct catena_context cx;
    make_context(&cx);
    if (catena_nf.tick != NULL)
        catena_nf.tick(self, &cx);
}

int main(void)
{
    void *self = start();
    for (;;) {
        one_packet(self);
        one_tick(self);
    }
}
