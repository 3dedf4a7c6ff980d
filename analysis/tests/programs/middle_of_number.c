/* Pointers into the middle of numbers: what is written there reaches into the next member, and steps on from there end
 * in members that steps from the number's beginning do not.
 *
 * expect wide: updateable logs
 * expect stepped: updateable logs
 * expect untagged: updateable logs
 * expect apart: updateable silent unread
 * expect table: updateable logs
 * expect other: updateable logs
 * expect tagged: updateable logs
 */
#include "packets.h"
#include <stdint.h>

struct mixed {
    unsigned long first;
    unsigned second, third;
    unsigned long last;
};

static struct mixed table, other, tagged;
static unsigned long wide;
static unsigned stepped, untagged;
static unsigned apart;

/* Eight bytes from the middle of `first` on: the second half of it, and `second`. */
static void straddle(void) { *(unsigned long *)(void *)((char *)&table.first + 4) = wide << 32; }

/* In two steps of which the first ends in the middle of a number. */
static void step(char *at) {
    at += 4;
    at += 4;
    *(unsigned *)(void *)at = stepped;
}

/* A tag by addition, taken off by subtraction. */
static void tag(unsigned long *number) {
    uintptr_t address = (uintptr_t)number + 1;
    *(unsigned long *)(address - 1) = untagged;
}

int main(void) {
    unsigned char packet[64];
    while (recv(device, packet, sizeof packet, 0) > 0) {
        wide += packet[0];
        stepped += packet[1];
        untagged += packet[2];
        apart += packet[3];
        straddle();
        step((char *)&other);
        tag(&tagged.last);
        printf("%u %u %lu\n", table.second, other.second, tagged.last);
    }
    return 0;
}
