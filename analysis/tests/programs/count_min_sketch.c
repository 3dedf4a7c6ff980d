/* Four rows of counters, each indexed by another hash of source and destination.
 *
 * seeds are read to hash; they key nothing by themselves.
 *
 * expect rows: updateable packets dst_ip src_ip
 * expect seeds: top-level
 */
#include "packets.h"
unsigned rows[4][1024], seeds[4] = {1, 31, 63, 127};

static unsigned smallest(unsigned src, unsigned dst) {
    unsigned least = ~0u;
    for (int row = 0; row < 4; row++) {
        unsigned *cell = &rows[row][(src * seeds[row] ^ dst) % 1024];
        if (++*cell < least) least = *cell;
    }
    return least;
}

int main(void) {
    char packet[2048];
    while (recv(device, packet, sizeof packet, 0) > 0)
        if (smallest(IP(packet)->saddr, IP(packet)->daddr) < 100) send(device, packet, 100, 0);
}
