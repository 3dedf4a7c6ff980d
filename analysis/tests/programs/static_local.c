/* A static variable of a procedure outlives the packet; its neighbour does not.
 *
 * expect count/seen: updateable logs
 * absent local
 */
#include "packets.h"
static void count(char *packet) {
    static int seen;
    int local = packet[0];
    seen += local;
    printf("%d\n", seen);
}

int main(void) {
    char packet[2048];
    while (recv(device, packet, sizeof packet, 0) > 0) count(packet);
}
