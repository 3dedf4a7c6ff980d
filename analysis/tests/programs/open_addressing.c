/* A hash table without chains: the next slot is tried until the key fits or a slot is free.
 *
 * Both the first slot (a hash of five fields) and the comparison depend on the five-tuple.
 *
 * expect table: updateable dst_ip dst_port proto src_ip src_port
 * expect lost: updateable silent -
 */
#include "packets.h"
struct key { unsigned src, dst; unsigned short sport, dport; unsigned char proto; };
struct flow { struct key key; unsigned used; unsigned long bytes; };
struct flow table[4096];
unsigned lost;

static struct flow *find(struct key *key) {
    unsigned at = (key->src * 31 + key->dst * 17 + key->sport * 7 + key->dport + key->proto) % 4096;
    for (unsigned tries = 0; tries < 16; tries++) {
        struct flow *flow = &table[(at + tries) % 4096];
        if (!flow->used) {
            flow->used = 1;
            flow->key = *key;
            return flow;
        }
        if (flow->key.src == key->src && flow->key.dst == key->dst && flow->key.sport == key->sport &&
            flow->key.dport == key->dport && flow->key.proto == key->proto)
            return flow;
    }
    return NULL;
}

int main(void) {
    char packet[2048];
    long bytes;
    while ((bytes = recv(device, packet, sizeof packet, 0)) > 0) {
        struct key key = {IP(packet)->saddr, IP(packet)->daddr, TCP(packet)->source, TCP(packet)->dest,
                          IP(packet)->protocol};
        struct flow *flow = find(&key);
        if (flow) flow->bytes += bytes; else lost++;
    }
}
