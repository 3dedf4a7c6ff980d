/* All tables come from one block of bytes that is handed out piece by piece.
 *
 * One block is one object, so what one table holds, the other one holds too: `frozen`, which is only read, counts as
 * updateable; the precise answer would be top-level. taken changes before the first packet only.
 *
 * expect block: updateable
 * expect live: updateable
 * expect frozen: updateable
 * expect taken: persistent
 */
#include "packets.h"
_Alignas(16) char block[1 << 20];
size_t taken;
int *live, *frozen;

static void *take(size_t size) {
    void *piece = block + taken;
    taken += size;
    return piece;
}

int main(void) {
    char packet[2048];
    live = take(65536 * sizeof *live);
    frozen = take(65536 * sizeof *frozen);
    for (int at = 0; at < 65536; at++) frozen[at] = at;
    while (recv(device, packet, sizeof packet, 0) > 0) live[frozen[UDP(packet)->dest]]++;
}
