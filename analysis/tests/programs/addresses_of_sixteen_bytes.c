/* A list by IPv6 source address, compared by memcmp over the system's struct.
 *
 * expect hosts: updateable src_ip
 */
#include "packets.h"
#include <netinet/ip6.h>
struct host { struct in6_addr address; int hits; struct host *next; };
struct host *hosts;

int main(void) {
    char packet[2048];
    while (recv(device, packet, sizeof packet, 0) > 0) {
        struct ip6_hdr *ip = (struct ip6_hdr *)packet;
        struct host *at;
        for (at = hosts; at; at = at->next)
            if (!memcmp(&at->address, &ip->ip6_src, sizeof at->address)) break;
        if (!at) {
            at = calloc(1, sizeof *at);
            at->address = ip->ip6_src;
            at->next = hosts;
            hosts = at;
        }
        at->hits++;
    }
}
