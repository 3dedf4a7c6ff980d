/* Updated bits through calls: a procedure that is only called when a bit is set need not set it, nor need what comes
 * behind the call of one that always sets it. Nothing is known where a procedure is called through a pointer, where it
 * sets a bit on some ways only, and where a packet ends on the way: bits are taken back before its reception.
 *
 * expect table: updateable
 * expect count: updateable
 * expect total: updateable
 * expect odd: updateable
 * expect depth: updateable
 * expect received: updateable
 */
#include "packets.h"

static struct entry {
    unsigned first, second;
} table[8];
static unsigned count, total, odd, depth, received;

static void touch(struct entry *entry) {
    entry->first++; // pruned: table
}

static void always(void) {
    total++; // sets: total
}

static void sometimes(int is) {
    if (is) odd++; // sets: odd
}

static void down(unsigned levels) {
    depth++; // pruned: depth
    if (levels) down(levels - 1);
}

static void counts(void) {
    count++; // sets: count
}

static void (*const handlers[])(void) = {counts, counts};

static int next(unsigned char *packet, unsigned size) {
    received++; // sets: received
    int length = recv(device, packet, size, 0);
    received++; // sets: received
    return length;
}

int main(void) {
    unsigned char packet[64];
    while (next(packet, sizeof packet) > 0) {
        count++; // sets: count
        handlers[packet[0] & 1]();
        table[packet[1] & 7].second++; // sets: table
        touch(&table[packet[1] & 7]);
        always();
        total++; // pruned: total
        sometimes(packet[0] & 1);
        odd++;   // sets: odd
        depth++; // sets: depth
        down(packet[2] & 3);
        received++; // sets: received
    }
    return 0;
}
