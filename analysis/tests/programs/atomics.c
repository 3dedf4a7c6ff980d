/* Counters and a list that are changed by atomic operations.
 *
 * total is changed by a fetch and add, top by compare and exchange; nodes hang below top and point to the counters.
 *
 * expect total: updateable logs -
 * expect top: updateable
 * expect high: updateable packets -
 */
#include "packets.h"
#include <stdatomic.h>
struct node { struct node *next; atomic_long *counter; };
atomic_long total, high;
_Atomic(struct node *) top;

static void push(atomic_long *counter) {
    struct node *node = malloc(sizeof *node);
    node->counter = counter;
    node->next = atomic_load(&top);
    while (!atomic_compare_exchange_weak(&top, &node->next, node))
        ;
}

int main(void) {
    char packet[2048];
    while (recv(device, packet, sizeof packet, 0) > 0) {
        printf("%ld\n", atomic_fetch_add(&total, 1));
        push(&high);
        struct node *node = atomic_load(&top);
        if (atomic_fetch_add(node->counter, 2) < 100) send(device, packet, 100, 0);
    }
}
