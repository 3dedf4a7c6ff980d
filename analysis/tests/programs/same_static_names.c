/* Two procedures have a static variable of the same name; one changes its own, the other one only reads it.
 *
 * expect in/count: updateable -
 * expect out/count: top-level -
 */
#include "packets.h"
static int in(void) {
    static int count = 1;
    return count++;
}

static int out(void) {
    static int count = 2;
    return count;
}

int main(void) {
    char packet[2048];
    while (recv(device, packet, sizeof packet, 0) > 0)
        if (in() % out()) send(device, packet, 100, 0);
}
