/* A pointer with a flag in its lowest bit, kept as an integer.
 *
 * The entry is reached only by taking the flag off; its counter is changed, so slot and entry are updateable.
 *
 * expect slot: updateable
 * expect entry: updateable
 * expect other: persistent
 */
#include "packets.h"
#include <stdint.h>
struct entry { long limit; long hits; };
struct entry entry, other;
uintptr_t slot;

int main(void) {
    char packet[2048];
    slot = (uintptr_t)&entry | 1;
    other.limit = 1;
    while (recv(device, packet, sizeof packet, 0) > 0) {
        struct entry *at = (struct entry *)(slot & ~(uintptr_t)1);
        if (slot & 1) at->hits++;
    }
}
