/* Counts packets by source in a table of its own, and drops those of sources that send too many.
 *
 * object memory allocated in init, from byte 16: src_ip from-packets read
 */
#include <catena/nf.h>
#include <netinet/ip.h>

enum { TOO_MANY, SIZE = 1024 };
static const char *const reasons[] = { "too many packets", NULL };

struct talker {
    uint32_t address;
    uint64_t packets;
};
struct talkers {
    uint64_t limit, now;
    struct talker table[SIZE];
};

static int init(struct catena_context *cx, void **self)
{
    struct talkers *talkers = calloc(1, sizeof *talkers);
    if (talkers == NULL || catena_arg_u64(cx, "limit", 100, 1, 1000000, &talkers->limit) != 0) {
        free(talkers);
        return -1;
    }
    *self = talkers;
    return 0;
}

static void process(void *self, struct catena_context *cx, struct catena_packet *const *packets, uint32_t count)
{
    struct talkers *talkers = self;
    (void)cx;
    for (uint32_t i = 0; i < count; i++) {
        const struct iphdr *ip = (const struct iphdr *)(packets[i]->data + packets[i]->l3);
        struct talker *talker = &talkers->table[ip->saddr % SIZE];
        if (talker->address != ip->saddr) {
            talker->address = ip->saddr;
            talker->packets = 0;
        }
        if (++talker->packets > talkers->limit)
            catena_drop(packets[i], TOO_MANY);
    }
}

CATENA_NF(catena_nf, .name = "talkers", .summary = "drops packets of sources that send too many", .reasons = reasons,
          .init = init, .process = process, .release = free);
