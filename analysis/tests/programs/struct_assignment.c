/* Structs are assigned as a whole, passed by value and returned by value; a pointer goes along.
 *
 * hits is changed through the third copy of a struct that holds its address.
 *
 * expect hits: updateable
 * expect prototype: updateable
 * expect unused: persistent
 */
#include "packets.h"
struct handle { long a, b, c; int *counter; };
int hits, unused;
struct handle prototype = {0, 0, 0, &hits};

static struct handle copy(struct handle given) {
    struct handle made = given;
    made.a = 1;
    return made;
}

int main(void) {
    char packet[2048];
    unused = 2;
    while (recv(device, packet, sizeof packet, 0) > 0) {
        struct handle mine = copy(prototype);
        ++*mine.counter;
    }
}
