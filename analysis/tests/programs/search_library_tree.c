/* The C library's search tree holds the flows: tsearch inserts, tfind looks up, twalk visits for the log.
 *
 * The node that tsearch returns holds the key's pointer, through which the counter changes. What is looked up with is
 * the source address, copied into a probe.
 *
 * expect tree: updateable logs src_ip
 * expect visits: updateable silent -
 */
#define _GNU_SOURCE
#include "packets.h"
#include <search.h>
struct flow { unsigned address; int packets; };
void *tree;
int visits;

static int compare(const void *one, const void *two) {
    const struct flow *a = one, *b = two;
    return a->address < b->address ? -1 : a->address > b->address;
}

static void show(const void *node, VISIT visit, int depth) {
    visits++;
    printf("%d\n", (*(struct flow *const *)node)->packets);
}

int main(void) {
    char packet[2048];
    while (recv(device, packet, sizeof packet, 0) > 0) {
        struct flow probe = {IP(packet)->saddr, 0};
        struct flow **found = tfind(&probe, &tree, compare);
        if (!found) {
            struct flow *flow = malloc(sizeof *flow);
            *flow = probe;
            found = tsearch(flow, &tree, compare);
        }
        (*found)->packets++;
        twalk(tree, show);
    }
}
