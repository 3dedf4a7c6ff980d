/* A list whose links are the exclusive or of both neighbours' addresses.
 *
 * The list is looked through for the source address. first is read and written; sentinel is one of the addresses that
 * are combined, and what comes out of a combination may be the sentinel as far as types tell, so writing `count` may
 * write the sentinel: the walk itself reaches it only to stop, which no analysis of pointers can see.
 *
 * expect first: updateable src_ip
 * expect sentinel: updateable
 */
#include "packets.h"
#include <stdint.h>
struct host { unsigned address; int hits; uintptr_t both; };
struct host sentinel;
struct host *first = &sentinel;

static struct host *find(unsigned address) {
    uintptr_t before = 0;
    struct host *at = first;
    while (at != &sentinel) {
        if (at->address == address) return at;
        uintptr_t next = at->both ^ before;
        before = (uintptr_t)at;
        at = (struct host *)next;
    }
    struct host *host = malloc(sizeof *host);
    host->address = address;
    host->hits = 0;
    host->both = (uintptr_t)first;
    first->both ^= (uintptr_t)host;
    first = host;
    return host;
}

int main(void) {
    char packet[2048];
    while (recv(device, packet, sizeof packet, 0) > 0) find(IP(packet)->saddr)->hits++;
}
