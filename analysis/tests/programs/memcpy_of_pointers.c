/* A struct that holds a pointer is copied by memcpy; the update goes through the copy.
 *
 * expect hits: updateable
 * expect original: updateable
 */
#include "packets.h"
struct entry { int *counter; int flags; };
int hits;
struct entry original = {&hits, 0};

int main(void) {
    char packet[2048];
    struct entry copy;
    while (recv(device, packet, sizeof packet, 0) > 0) {
        memcpy(&copy, &original, sizeof copy);
        ++*copy.counter;
    }
}
