/* A table that grows by realloc and is searched from its beginning.
 *
 * peers, used and room are stored to. Entries are compared with the source address, and nothing else of the packet.
 * used and room are single values.
 *
 * expect peers: updateable src_ip
 * expect used: updateable -
 * expect room: updateable -
 * expect growth: top-level
 */
#include "packets.h"
struct peer { unsigned address; int hits; };
struct peer *peers;
int used, room, growth = 2;

static struct peer *find(unsigned address) {
    for (int i = 0; i < used; i++)
        if (peers[i].address == address) return &peers[i];
    if (used == room) {
        room = room * growth + 8;
        peers = realloc(peers, room * sizeof *peers);
    }
    peers[used].address = address;
    peers[used].hits = 0;
    return &peers[used++];
}

int main(void) {
    char packet[2048];
    while (recv(device, packet, sizeof packet, 0) > 0) find(IP(packet)->saddr)->hits++;
}
