/* A binary tree by address: the way down compares.
 *
 * expect root: updateable src_ip
 */
#include "packets.h"
struct node { unsigned key; int hits; struct node *left, *right; };
struct node *root;

static void add(unsigned key) {
    struct node **at = &root;
    while (*at) {
        if ((*at)->key == key) {
            (*at)->hits++;
            return;
        }
        at = key < (*at)->key ? &(*at)->left : &(*at)->right;
    }
    *at = calloc(1, sizeof **at);
    (*at)->key = key;
}

int main(void) {
    char packet[2048];
    while (recv(device, packet, sizeof packet, 0) > 0) add(IP(packet)->saddr);
}
