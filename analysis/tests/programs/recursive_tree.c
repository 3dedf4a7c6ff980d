/* A binary tree by source address, searched and extended by recursion.
 *
 * Khalid's dissertation leaves recursion out (§4.3.3, footnote 6): recursion is a loop too, so the comparison on the way down
 * is the key all the same.
 *
 * expect root: updateable src_ip
 */
#include "packets.h"
struct node { unsigned key; int hits; struct node *left, *right; };
struct node *root;

static struct node *add(struct node *at, unsigned key) {
    if (!at) {
        at = calloc(1, sizeof *at);
        at->key = key;
    }
    if (key < at->key) at->left = add(at->left, key);
    else if (key > at->key) at->right = add(at->right, key);
    else at->hits++;
    return at;
}

int main(void) {
    char packet[2048];
    while (recv(device, packet, sizeof packet, 0) > 0) root = add(root, IP(packet)->saddr);
}
