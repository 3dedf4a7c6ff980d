/* The packet loop is made by goto, and a second one in front of it waits for a greeting.
 *
 * Both receptions are in loops of main. greeted is stored to in the first loop, that is after a reception.
 *
 * expect greeted: updateable
 * expect seen: updateable packets
 * expect limit: top-level
 */
#include "packets.h"
int greeted, seen, limit = 100;

int main(void) {
    char packet[2048];
wait:
    if (recv(device, packet, sizeof packet, 0) <= 0) return 1;
    if (packet[0] != 'h') goto wait;
    greeted = 1;
again:
    if (recv(device, packet, sizeof packet, 0) <= 0) goto done;
    if (++seen > limit) goto again;
    send(device, packet, 100, 0);
    goto again;
done:
    return 0;
}
