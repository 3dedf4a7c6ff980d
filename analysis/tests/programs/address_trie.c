/* A binary trie walked bit by bit: every step looks at one bit of the destination address.
 *
 * Routes are loaded before the first packet and only read; the counter of the route found changes, which the root leads
 * to. The walk's index comes from the destination address alone.
 *
 * expect root: updateable packets dst_ip
 * expect routes: persistent
 */
#include "packets.h"
struct node { struct node *child[2]; int port, hits; };
struct node *root;
int routes;

static void add(unsigned prefix, int length, int port) {
    if (!root) root = calloc(1, sizeof *root);
    struct node *at = root;
    for (int bit = 31; bit > 31 - length; bit--) {
        struct node **next = &at->child[prefix >> bit & 1];
        if (!*next) *next = calloc(1, sizeof **next);
        at = *next;
    }
    at->port = port;
    routes++;
}

static struct node *match(unsigned address) {
    struct node *best = NULL;
    int bit = 31;
    for (struct node *at = root; at; at = at->child[address >> bit-- & 1])
        if (at->port) best = at;
    return best;
}

int main(void) {
    char packet[2048];
    add(0x0a000000, 8, 1);
    add(0x0a010000, 16, 2);
    while (recv(device, packet, sizeof packet, 0) > 0) {
        struct node *route = match(IP(packet)->daddr);
        if (!route) continue;
        route->hits++;
        send(route->port, packet, 100, 0);
    }
}
