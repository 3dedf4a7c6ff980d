/* A procedure called in the packet loop that no data leads to: it runs for every packet all the same.
 *
 * expect ticks: updateable
 * expect boot: persistent
 */
#include "packets.h"
int ticks, boot;

static void tick(void) { ticks++; }

int main(void) {
    char packet[2048];
    boot = 3;
    for (;;) {
        recv(device, packet, sizeof packet, 0);
        tick();
    }
}
