/* A union says by a tag what it holds: a number or a pointer to a list; the packet's code follows the pointer.
 *
 * setting.value.list leads to the counter in the node, so setting is updateable, though no statement stores to it.
 * fallback holds a number and no pointer: packet code reads it and writes nothing it leads to.
 *
 * expect setting: updateable
 * expect fallback: top-level
 */
#include "packets.h"
enum tag { NUMBER, LIST };
struct node { int hits; struct node *next; };
struct setting { enum tag tag; union { long number; struct node *list; } value; };
struct setting setting, fallback;

int main(void) {
    char packet[2048];
    setting.tag = LIST;
    setting.value.list = calloc(1, sizeof(struct node));
    fallback.tag = NUMBER;
    fallback.value.number = 7;
    while (recv(device, packet, sizeof packet, 0) > 0) {
        if (setting.tag == LIST)
            for (struct node *at = setting.value.list; at; at = at->next) at->hits++;
        if (fallback.value.number == IP(packet)->ttl) return 1;
    }
}
