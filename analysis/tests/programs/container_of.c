/* From a list's link back to the struct around it.
 *
 * expect list: updateable src_ip
 * expect size: updateable
 */
#include "packets.h"
#include <stddef.h>
struct link { struct link *next; };
struct host { unsigned address; int hits; struct link link; };
#define HOST(at) ((struct host *)((char *)(at) - offsetof(struct host, link)))
struct link *list;
int size;

static void see(unsigned address) {
    for (struct link *at = list; at; at = at->next)
        if (HOST(at)->address == address) {
            HOST(at)->hits++;
            return;
        }
    struct host *host = malloc(sizeof *host);
    host->address = address;
    host->hits = 1;
    host->link.next = list;
    list = &host->link;
    size++;
}

int main(void) {
    char packet[2048];
    while (recv(device, packet, sizeof packet, 0) > 0) see(IP(packet)->saddr);
}
