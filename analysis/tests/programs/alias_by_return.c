/* A procedure returns the address of one of two counters; a third one is only ever chosen before the first packet.
 *
 * inside and outside are written through what pick returns. boot's address goes through another procedure, called in
 * initialization only.
 *
 * expect inside: updateable
 * expect outside: updateable
 * expect boot: persistent
 */
#include "packets.h"
int inside, outside, boot;

static int *pick(char *packet) { return IP(packet)->ttl == 64 ? &inside : &outside; }
static int *first(void) { return &boot; }

int main(void) {
    char packet[2048];
    ++*first();
    while (recv(device, packet, sizeof packet, 0) > 0) ++*pick(packet);
}
