/* Each of two procedures receives; the state of both is found.
 *
 * expect inside: updateable packets
 * expect outside: updateable packets
 */
#include "packets.h"
int inside, outside;

static void from_inside(char *packet) {
    if (recv(device, packet, 2048, 0) > 0 && inside++ % 2) send(device, packet, 64, 0);
}

static void from_outside(char *packet) {
    if (recv(device, packet, 2048, 0) > 0 && outside++ % 3) send(device, packet, 64, 0);
}

int main(void) {
    char packet[2048];
    for (;;) {
        from_inside(packet);
        from_outside(packet);
    }
}
