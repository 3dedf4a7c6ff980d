/* The program describes the header by a struct of its own.
 *
 * expect table: updateable my_header.tenant
 */
#include "packets.h"
struct my_header { unsigned short version, tenant; unsigned length; };
int table[65536];

int main(void) {
    char packet[2048];
    while (recv(device, packet, sizeof packet, 0) > 0) {
        struct my_header *header = (struct my_header *)packet;
        table[header->tenant]++;
    }
}
