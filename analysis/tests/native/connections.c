/* Keeps connections in a hash table with lists, which it finds by all five fields. The time of the last packet that a clock
 * tells binds no packets to an instance, and neither does a count that nothing reads.
 *
 * object memory allocated in init: dst_ip,dst_port,proto,src_ip,src_port from-packets read
 * object memory allocated in enter: dst_ip,dst_port,proto,src_ip,src_port from-packets read
 * object kept.now: * clock read
 * object kept.ever: * from-packets unread
 */
#include <catena/nf.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <string.h>

enum { SIZE = 4096 };

struct key {
    uint32_t source, destination;
    uint16_t source_port, destination_port;
    uint8_t protocol;
};
struct connection {
    struct key key;
    uint64_t packets, last;
    struct connection *next;
};
static struct {
    uint64_t now, ever;
} kept;

static int init(struct catena_context *cx, void **self)
{
    (void)cx;
    *self = calloc(SIZE, sizeof(struct connection *));
    return *self == NULL ? -1 : 0;
}

static struct key key_of(const struct catena_packet *packet)
{
    const struct iphdr *ip = (const struct iphdr *)(packet->data + packet->l3);
    const struct udphdr *udp = (const struct udphdr *)(packet->data + packet->l4);
    struct key key;
    memset(&key, 0, sizeof key);
    key.source = ip->saddr;
    key.destination = ip->daddr;
    key.protocol = ip->protocol;
    key.source_port = udp->source;
    key.destination_port = udp->dest;
    return key;
}

static uint32_t place(const struct key *key)
{
    return (key->source ^ key->destination ^ key->source_port ^ key->destination_port ^ key->protocol) % SIZE;
}

static struct connection *enter(struct connection **head, const struct key *key)
{
    struct connection *made = calloc(1, sizeof *made);
    if (made != NULL) {
        made->key = *key;
        made->next = *head;
        *head = made;
    }
    return made;
}

static void process(void *self, struct catena_context *cx, struct catena_packet *const *packets, uint32_t count)
{
    struct connection **table = self;
    kept.now = cx->now_ns;
    for (uint32_t i = 0; i < count; i++) {
        struct key key = key_of(packets[i]);
        struct connection **head = &table[place(&key)], *found = *head;
        kept.ever += packets[i]->len;
        while (found != NULL && memcmp(&found->key, &key, sizeof key) != 0)
            found = found->next;
        if (found == NULL)
            found = enter(head, &key);
        if (found == NULL)
            continue;
        found->last = kept.now;
        if (++found->packets > 10 && found->last > 0)
            catena_way(cx, packets[i], 1);
    }
}

CATENA_NF(catena_nf, .name = "connections", .summary = "leads long connections another way", .init = init,
          .process = process, .release = free);
