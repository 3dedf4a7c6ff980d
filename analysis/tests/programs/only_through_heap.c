/* A global that packet code never names: its address lies in a heap object.
 *
 * expect hidden: updateable
 * expect registry: updateable
 */
#include "packets.h"
struct node { int *counter; };
int hidden;
struct node *registry;

static void setup(void) {
    registry = malloc(sizeof *registry);
    registry->counter = &hidden;
}

int main(void) {
    char packet[2048];
    setup();
    while (recv(device, packet, sizeof packet, 0) > 0) ++*registry->counter;
}
