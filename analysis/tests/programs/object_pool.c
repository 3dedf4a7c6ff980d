/* Entries come from a pool of the program's own, and go back to its list of free ones.
 *
 * pool's cells are what both the table and the free list lead to. The table is keyed by the source port; the free list
 * is the same for all flows, but its objects are the table's.
 *
 * expect pool: updateable
 * expect unused: updateable
 * expect table: updateable src_port
 * expect ready: persistent
 */
#include "packets.h"
struct entry { int port, packets; struct entry *next; };
struct entry pool[256], *unused, *table[64];
int ready;

static void fill(void) {
    for (int at = 0; at < 256; at++) {
        pool[at].next = unused;
        unused = &pool[at];
    }
    ready = 1;
}

static struct entry *find(int port) {
    struct entry **chain = &table[port % 64], *at;
    for (at = *chain; at; at = at->next)
        if (at->port == port) return at;
    if (!(at = unused)) return NULL;
    unused = at->next;
    at->port = port;
    at->packets = 0;
    at->next = *chain;
    return *chain = at;
}

static void drop(int port) {
    for (struct entry **at = &table[port % 64]; *at; at = &(*at)->next)
        if ((*at)->port == port) {
            struct entry *gone = *at;
            *at = gone->next;
            gone->next = unused;
            unused = gone;
            return;
        }
}

int main(void) {
    char packet[2048];
    fill();
    while (recv(device, packet, sizeof packet, 0) > 0) {
        struct entry *entry = find(TCP(packet)->source);
        if (entry) entry->packets++;
        if (TCP(packet)->fin) drop(TCP(packet)->source);
    }
}
