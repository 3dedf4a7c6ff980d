/* entry = head + offset, with the offset from the packet.
 *
 * expect slots: updateable dst_port
 */
#include "packets.h"
struct slot { int hits; };
struct slot *slots;

int main(void) {
    char packet[2048];
    slots = calloc(65536, sizeof *slots);
    while (recv(device, packet, sizeof packet, 0) > 0) {
        struct slot *slot = slots + UDP(packet)->dest;
        slot->hits++;
    }
}
