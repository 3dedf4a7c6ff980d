/* Two tables change roles: packets count into one while the other one is printed.
 *
 * Both arrays are written through `active`, and packet code writes `active` and `waiting` when it swaps them. Both arrays
 * are logged. The arrays' key is the destination port; the two pointers are the same for all flows.
 *
 * expect active: updateable logs *
 * expect waiting: updateable logs *
 * expect one: updateable logs dst_port
 * expect two: updateable logs dst_port
 * expect turns: updateable logs -
 */
#include "packets.h"
int one[65536], two[65536];
int *active = one, *waiting = two;
int turns;

int main(void) {
    char packet[2048];
    while (recv(device, packet, sizeof packet, 0) > 0) {
        active[UDP(packet)->dest]++;
        if (++turns == 1000) {
            int *previous = active;
            active = waiting;
            waiting = previous;
            turns = 0;
            printf("%d\n", waiting[53]);
        }
    }
}
