/* The five-tuple is gathered in a struct and hashed byte by byte; chains are compared by memcmp.
 *
 * What is read byte by byte is the whole struct, so all five fields make the key.
 *
 * expect chains: updateable dst_ip dst_port proto src_ip src_port
 * expect basis: top-level
 */
#include "packets.h"
struct key { unsigned src, dst; unsigned short sport, dport; unsigned char proto, zero[3]; };
struct flow { struct key key; int packets; struct flow *next; };
struct flow *chains[1024];
unsigned basis = 2166136261u;

static unsigned hash(const void *data, int length) {
    const unsigned char *byte = data;
    unsigned value = basis;
    while (length--) value = (value ^ *byte++) * 16777619u;
    return value;
}

static struct flow *find(const struct key *key) {
    unsigned at = hash(key, sizeof *key) % 1024;
    for (struct flow *flow = chains[at]; flow; flow = flow->next)
        if (!memcmp(&flow->key, key, sizeof *key)) return flow;
    struct flow *flow = calloc(1, sizeof *flow);
    flow->key = *key;
    flow->next = chains[at];
    chains[at] = flow;
    return flow;
}

int main(void) {
    char packet[2048];
    while (recv(device, packet, sizeof packet, 0) > 0) {
        struct key key = {0};
        key.src = IP(packet)->saddr;
        key.dst = IP(packet)->daddr;
        key.sport = UDP(packet)->source;
        key.dport = UDP(packet)->dest;
        key.proto = IP(packet)->protocol;
        find(&key)->packets++;
    }
}
