/* A translator of addresses: one table by the inside's source, one by the outside's port, and free ports in a stack.
 *
 * The same entries hang in both tables, so what is stored by one key is found by the other: per object, the fields of
 * both look-ups. free_ports is filled before the first packet and only read
 * later, by an index of its own, for all flows. outside_address is read only.
 *
 * expect by_source: updateable packets
 * expect by_port: updateable packets
 * expect free_ports: top-level *
 * expect height: updateable packets -
 * expect outside_address: top-level -
 */
#include "packets.h"
struct entry { unsigned address; unsigned short port, outside; struct entry *next; };
struct entry *by_source[1024], *by_port[65536];
unsigned short free_ports[20000];
int height;
unsigned outside_address = 0x01010101;

static struct entry *leaving(unsigned address, unsigned short port) {
    struct entry **chain = &by_source[(address ^ port) % 1024];
    for (struct entry *at = *chain; at; at = at->next)
        if (at->address == address && at->port == port) return at;
    if (!height) return NULL;
    struct entry *made = malloc(sizeof *made);
    made->address = address;
    made->port = port;
    made->outside = free_ports[--height];
    made->next = *chain;
    *chain = made;
    by_port[made->outside] = made;
    return made;
}

int main(void) {
    char packet[2048];
    for (height = 0; height < 20000; height++) free_ports[height] = 40000 + height;
    while (recv(device, packet, sizeof packet, 0) > 0) {
        if (IP(packet)->daddr == outside_address) {
            struct entry *entry = by_port[UDP(packet)->dest];
            if (!entry) continue;
            IP(packet)->daddr = entry->address;
            UDP(packet)->dest = entry->port;
        } else {
            struct entry *entry = leaving(IP(packet)->saddr, UDP(packet)->source);
            if (!entry) continue;
            IP(packet)->saddr = outside_address;
            UDP(packet)->source = entry->outside;
        }
        send(device, packet, 100, 0);
    }
}
