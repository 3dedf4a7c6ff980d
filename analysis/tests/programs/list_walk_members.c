/* Walking a list leads from link to struct and on to the next link: all the way around the address stays, so members
 * are told apart (with --fields), those of the struct that holds the list's head among them.
 *
 * expect box: updateable
 * expect-fields label: top-level
 */
#include "packets.h"
#include <stddef.h>
struct list { struct list *next; };
struct entry { long *counter; struct list link; };
struct box { long size; struct list entries; long *label; };
long label, counters[4];
struct entry many[4];
struct box box = {0, {&box.entries}, &label};

int main(void) {
    char packet[2048];
    for (int i = 0; i < 4; ++i) {
        many[i].counter = &counters[i];
        many[i].link.next = box.entries.next;
        box.entries.next = &many[i].link;
    }
    while (recv(device, packet, sizeof packet, 0) > 0) {
        for (struct list *at = box.entries.next; at != &box.entries; at = at->next)
            ++*((struct entry *)((char *)at - offsetof(struct entry, link)))->counter;
        if (*box.label == packet[0]) ++box.size;
    }
}
