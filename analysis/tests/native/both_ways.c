/* Two tables, one by source and one by destination: no way of splitting traffic serves both. A third is looked up by either
 * address, so that neither alone keys it.
 *
 * object sources: src_ip from-packets read
 * object destinations: dst_ip from-packets read
 * object either: * from-packets read
 */
#include <catena/nf.h>
#include <netinet/ip.h>

enum { BUSY, SIZE = 256 };
static const char *const reasons[] = { "a busy pair", NULL };
static uint32_t sources[SIZE], destinations[SIZE], either[SIZE];

static void process(void *self, struct catena_context *cx, struct catena_packet *const *packets, uint32_t count)
{
    (void)self;
    (void)cx;
    for (uint32_t i = 0; i < count; i++) {
        const struct iphdr *ip = (const struct iphdr *)(packets[i]->data + packets[i]->l3);
        uint32_t sent = ++sources[ip->saddr % SIZE], got = ++destinations[ip->daddr % SIZE];
        uint32_t all = ++either[ip->saddr % SIZE] + ++either[ip->daddr % SIZE];
        if (sent + got + all > 1000)
            catena_drop(packets[i], BUSY);
    }
}

CATENA_NF(catena_nf, .name = "both_ways", .summary = "drops packets of busy pairs", .reasons = reasons,
          .process = process);
