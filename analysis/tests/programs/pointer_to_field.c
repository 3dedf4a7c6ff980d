/* The look-up is given a pointer to the header field, not its value; it is shared by two tables.
 *
 * find reads through the pointer. It is called for sources and for destinations; without contexts both calls' fields are
 * its key, for both tables. The precise answer would be src_ip for senders and dst_ip for receivers.
 *
 * expect alone: updateable proto
 * expect senders: updateable dst_ip src_ip
 * expect receivers: updateable dst_ip src_ip
 */
#include "packets.h"
struct host { unsigned address; int hits; };
struct host senders[100], receivers[100], alone[100];

static struct host *find(struct host *hosts, const unsigned *address) {
    for (int at = 0; at < 100; at++)
        if (hosts[at].address == *address) return &hosts[at];
    return hosts;
}

static struct host *find_protocol(const unsigned char *protocol) {
    for (int at = 0; at < 100; at++)
        if (alone[at].address == *protocol) return &alone[at];
    return alone;
}

int main(void) {
    char packet[2048];
    while (recv(device, packet, sizeof packet, 0) > 0) {
        find(senders, &IP(packet)->saddr)->hits++;
        find(receivers, &IP(packet)->daddr)->hits++;
        find_protocol(&IP(packet)->protocol)->hits++;
    }
}
