/* A host stands in two lists at once, by two links within it: one that is searched, one in order of arrival.
 *
 * Both heads lead to hosts, whose counters change. Hosts are found by source address; the list by age is walked from its
 * oldest end without looking at the packet, but it holds the same hosts. Which of them are reached by age no
 * header field says, and the same objects are found by address: per object the union counts.
 *
 * expect by_address: updateable src_ip
 * expect by_age: updateable
 * expect limit: top-level
 */
#include "packets.h"
#include <stddef.h>
struct link { struct link *next, *previous; };
struct host { unsigned address; int hits; struct link address_link, age_link; };
struct link by_address = {&by_address, &by_address}, by_age = {&by_age, &by_age};
int hosts, limit = 1000;
#define HOST(at, member) ((struct host *)((char *)(at) - offsetof(struct host, member)))

static void append(struct link *list, struct link *link) {
    link->previous = list->previous;
    link->next = list;
    list->previous->next = link;
    list->previous = link;
}

static void take(struct link *link) {
    link->previous->next = link->next;
    link->next->previous = link->previous;
}

static void see(unsigned address) {
    for (struct link *at = by_address.next; at != &by_address; at = at->next)
        if (HOST(at, address_link)->address == address) {
            HOST(at, address_link)->hits++;
            return;
        }
    if (hosts == limit) {
        struct host *oldest = HOST(by_age.next, age_link);
        take(&oldest->age_link);
        take(&oldest->address_link);
        free(oldest);
        hosts--;
    }
    struct host *host = calloc(1, sizeof *host);
    host->address = address;
    append(&by_address, &host->address_link);
    append(&by_age, &host->age_link);
    hosts++;
}

int main(void) {
    char packet[2048];
    while (recv(device, packet, sizeof packet, 0) > 0) see(IP(packet)->saddr);
}
