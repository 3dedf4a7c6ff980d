/* The key is gathered in a struct and compared by memcmp.
 *
 * expect flows: updateable dst_ip src_ip
 */
#include "packets.h"
struct key { unsigned src, dst; };
struct flow { struct key key; int packets; struct flow *next; };
struct flow *flows;

static struct flow *find(const struct key *key) {
    for (struct flow *flow = flows; flow; flow = flow->next)
        if (memcmp(&flow->key, key, sizeof *key) == 0) return flow;
    return NULL;
}

int main(void) {
    char packet[2048];
    while (recv(device, packet, sizeof packet, 0) > 0) {
        struct key key;
        key.src = IP(packet)->saddr;
        key.dst = IP(packet)->daddr;
        struct flow *flow = find(&key);
        if (!flow) {
            flow = malloc(sizeof *flow);
            flow->key = key;
            flow->packets = 0;
            flow->next = flows;
            flows = flow;
        }
        flow->packets++;
    }
}
