/* A pointer stored as one member of a union and taken out by another.
 *
 * expect target: updateable
 * expect other: persistent
 */
#include "packets.h"
union slot { int *pointer; unsigned long number; };
int target, other;
union slot slot;

int main(void) {
    char packet[2048];
    slot.pointer = &target;
    while (recv(device, packet, sizeof packet, 0) > 0) *(int *)slot.number += packet[0];
}
