/* A set of pairs of addresses in a field of bits, by two hashes.
 *
 * expect bits: updateable packets dst_ip src_ip
 */
#include "packets.h"
unsigned char bits[8192];

static unsigned mix(unsigned a, unsigned b, unsigned factor) { return (a * factor ^ b) * 2654435761u >> 16; }

static int seen(unsigned src, unsigned dst) {
    unsigned one = mix(src, dst, 31), two = mix(src, dst, 37);
    int known = bits[one / 8] >> one % 8 & bits[two / 8] >> two % 8 & 1;
    bits[one / 8] |= 1 << one % 8;
    bits[two / 8] |= 1 << two % 8;
    return known;
}

int main(void) {
    char packet[2048];
    while (recv(device, packet, sizeof packet, 0) > 0)
        if (!seen(IP(packet)->saddr, IP(packet)->daddr)) send(device, packet, 40, 0);
}
