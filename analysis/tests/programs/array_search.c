/* An array is searched with a counter; the loop's own condition does not name it.
 *
 * expect peers: updateable src_ip
 * expect count: updateable
 */
#include "packets.h"
struct peer { unsigned address; int hits; };
struct peer peers[100];
int count;

int main(void) {
    char packet[2048];
    while (recv(device, packet, sizeof packet, 0) > 0) {
        int i;
        for (i = 0; i < count; i++)
            if (peers[i].address == IP(packet)->saddr) break;
        if (i == count && count < 99) peers[count++].address = IP(packet)->saddr;
        peers[i].hits++;
    }
}
