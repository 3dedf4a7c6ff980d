/* Constants are no state by themselves; one that leads to something that changes is.
 *
 * weights is constant: absent. counters is a constant array of pointers to variables that packet code changes, so it
 * leads to updates.
 *
 * absent weights
 * expect counters: updateable
 * expect low: updateable -
 * expect high: updateable -
 */
#include "packets.h"
static const int weights[4] = {1, 2, 4, 8};
int low, high;
int *const counters[2] = {&low, &high};

int main(void) {
    char packet[2048];
    while (recv(device, packet, sizeof packet, 0) > 0) *counters[packet[0] & 1] += weights[packet[1] & 3];
}
