/* Who has which hardware address: a table by the sender's protocol address in ARP packets.
 *
 * The address is four bytes in the system's struct, copied into a number.
 *
 * expect neighbours: updateable packets src_ip
 */
#include "packets.h"
#include <netinet/if_ether.h>
struct neighbour { unsigned address; unsigned char hardware[6]; };
struct neighbour neighbours[256];

int main(void) {
    char packet[2048];
    while (recv(device, packet, sizeof packet, 0) > 0) {
        struct ether_arp *arp = (struct ether_arp *)(packet + 14);
        unsigned address;
        memcpy(&address, arp->arp_spa, 4);
        struct neighbour *found = NULL;
        for (int at = 0; at < 256; at++)
            if (neighbours[at].address == address || !neighbours[at].address) {
                found = &neighbours[at];
                break;
            }
        if (!found) continue;
        if (found->address && memcmp(found->hardware, arp->arp_sha, 6)) send(device, "moved", 5, 0);
        found->address = address;
        memcpy(found->hardware, arp->arp_sha, 6);
    }
}
