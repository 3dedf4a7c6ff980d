/* A table of buckets by a hash over addresses and ports; entries are found by comparing them.
 *
 * expect table: updateable dst_ip dst_port src_ip src_port
 * expect seed: top-level
 */
#include "packets.h"
struct flow { unsigned src, dst; unsigned short sport, dport; int packets; struct flow *next; };
struct flow *table[256];
unsigned seed = 7;

static unsigned hash(unsigned src, unsigned dst, unsigned short sport, unsigned short dport) {
    return (src ^ dst * seed ^ sport ^ dport) % 256;
}

static struct flow *find(unsigned src, unsigned dst, unsigned short sport, unsigned short dport) {
    unsigned at = hash(src, dst, sport, dport);
    struct flow *flow;
    for (flow = table[at]; flow; flow = flow->next)
        if (flow->src == src && flow->dst == dst && flow->sport == sport && flow->dport == dport) return flow;
    flow = calloc(1, sizeof *flow);
    flow->src = src, flow->dst = dst, flow->sport = sport, flow->dport = dport;
    flow->next = table[at];
    table[at] = flow;
    return flow;
}

int main(void) {
    char packet[2048];
    while (recv(device, packet, sizeof packet, 0) > 0)
        find(IP(packet)->saddr, IP(packet)->daddr, TCP(packet)->source, TCP(packet)->dest)->packets++;
}
