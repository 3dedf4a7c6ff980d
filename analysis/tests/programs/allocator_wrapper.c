/* Two tables come from one xmalloc; only one is updated.
 *
 * expect live: updateable
 * expect frozen: top-level
 */
#include "packets.h"
static void *xmalloc(size_t size) {
    void *memory = malloc(size);
    if (!memory) exit(1);
    return memory;
}
int *live, *frozen;

int main(void) {
    char packet[2048];
    live = xmalloc(1024);
    frozen = xmalloc(1024);
    while (recv(device, packet, sizeof packet, 0) > 0)
        if (frozen[packet[0] & 15]) live[packet[0] & 15]++;
}
