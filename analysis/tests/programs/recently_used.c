/* A cache in a doubly linked list: what is found moves to the front, the last one is thrown out.
 *
 * newest and oldest are stored to; the search compares with the destination address only.
 *
 * expect newest: updateable packets dst_ip
 * expect oldest: updateable packets
 * expect entries: updateable packets -
 * expect capacity: top-level
 */
#include "packets.h"
struct entry { unsigned address; int port; struct entry *next, *previous; };
struct entry *newest, *oldest;
int entries, capacity = 128;

static void unlink_entry(struct entry *entry) {
    if (entry->previous) entry->previous->next = entry->next; else newest = entry->next;
    if (entry->next) entry->next->previous = entry->previous; else oldest = entry->previous;
}

static void push(struct entry *entry) {
    entry->previous = NULL;
    entry->next = newest;
    if (newest) newest->previous = entry; else oldest = entry;
    newest = entry;
}

static struct entry *find(unsigned address) {
    struct entry *at;
    for (at = newest; at; at = at->next)
        if (at->address == address) break;
    if (at) {
        unlink_entry(at);
    } else {
        if (entries >= capacity) {
            at = oldest;
            unlink_entry(at);
        } else {
            at = malloc(sizeof *at);
            entries++;
        }
        at->address = address;
        at->port = entries;
    }
    push(at);
    return at;
}

int main(void) {
    char packet[2048];
    while (recv(device, packet, sizeof packet, 0) > 0) send(find(IP(packet)->daddr)->port, packet, 100, 0);
}
