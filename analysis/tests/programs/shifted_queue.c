/* A queue of the last eight sources, moved up by memmove; a source that is in it passes.
 *
 * The search compares with the source address. memmove updates recent.
 *
 * expect recent: updateable packets src_ip
 * expect width: top-level -
 */
#include "packets.h"
unsigned recent[8];
int width = 8;

int main(void) {
    char packet[2048];
    while (recv(device, packet, sizeof packet, 0) > 0) {
        int known = 0;
        for (int at = 0; at < width; at++) known |= recent[at] == IP(packet)->saddr;
        memmove(recent + 1, recent, sizeof recent - sizeof *recent);
        recent[0] = IP(packet)->saddr;
        if (known) send(device, packet, 100, 0);
    }
}
