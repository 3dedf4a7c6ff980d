/* An array of arrays: one index from the destination address, the other one from the destination port.
 *
 * expect load: updateable dst_ip dst_port
 */
#include "packets.h"
int load[256][1024];

int main(void) {
    char packet[2048];
    while (recv(device, packet, sizeof packet, 0) > 0) load[IP(packet)->daddr & 255][UDP(packet)->dest & 1023]++;
}
