/* Packets wait in a ring; indices wrap by a mask. A second procedure takes them out.
 *
 * The ring's slots are chosen by put and got, which no header field determines: all flows. size is only read.
 *
 * expect ring: updateable packets *
 * expect put: updateable packets -
 * expect got: updateable packets -
 * expect mask: top-level
 */
#include "packets.h"
struct slot { char data[1500]; long bytes; };
struct slot ring[64];
unsigned put, got, mask = 63;

static void drain(void) {
    while (got != put) {
        struct slot *slot = &ring[got++ & mask];
        send(device, slot->data, slot->bytes, 0);
    }
}

int main(void) {
    char packet[1500];
    long bytes;
    while ((bytes = recv(device, packet, sizeof packet, 0)) > 0) {
        struct slot *slot = &ring[put++ & mask];
        memcpy(slot->data, packet, bytes);
        slot->bytes = bytes;
        if (put % 8 == 0) drain();
    }
}
