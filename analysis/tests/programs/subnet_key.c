/* The key is the source address without its last byte, computed by a procedure and kept in a local.
 *
 * width is read, not changed; it takes part in the key, but is no header field.
 *
 * expect subnets: updateable src_ip
 * expect width: top-level -
 */
#include "packets.h"
int subnets[1 << 16], width = 16;

static unsigned subnet(char *packet) {
    unsigned address = ntohl(IP(packet)->saddr);
    unsigned shift = 32 - width;
    return address >> shift;
}

#include <arpa/inet.h>
int main(void) {
    char packet[2048];
    while (recv(device, packet, sizeof packet, 0) > 0) {
        unsigned at = subnet(packet);
        subnets[at & 0xffff]++;
    }
}
