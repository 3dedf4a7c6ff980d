/* A counter in a struct in a struct; with fields the neighbour stays read-only data of the same variable.
 *
 * expect box: updateable
 * expect config: top-level
 */
#include "packets.h"
struct inner { int pad; long hits; };
struct outer { struct inner first; struct inner second; };
struct outer box;
struct outer config;

static void hit(struct inner *at) { at->hits++; }

int main(void) {
    char packet[2048];
    config.first.hits = 5;
    while (recv(device, packet, sizeof packet, 0) > 0)
        if (IP(packet)->ttl > config.first.hits) hit(&box.second);
}
