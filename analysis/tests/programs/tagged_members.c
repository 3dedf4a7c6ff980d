/* A bit of the address says what it leads to, as in trees that keep leaves and nodes apart; members stay apart too.
 *
 * expect root: updateable
 * expect counter: updateable
 * expect-fields label: top-level
 */
#include "packets.h"
#include <stdint.h>
struct node { int *value; char *label; };
int counter;
char label[16];
struct node leaf = {&counter, label};
uintptr_t root;

int main(void) {
    char packet[2048];
    root = (uintptr_t)&leaf | 1;
    while (recv(device, packet, sizeof packet, 0) > 0) {
        if (!(root & 1)) continue;
        struct node *node = (struct node *)(root & ~(uintptr_t)1);
        ++*node->value;
        if (node->label[0] == packet[0]) ++counter;
    }
}
