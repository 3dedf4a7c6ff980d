/* A library function writes through its argument.
 *
 * expect text: updateable logs
 * expect family: top-level
 */
#include "packets.h"
#include <arpa/inet.h>
char text[64];
int family = AF_INET;

int main(void) {
    char packet[2048];
    while (recv(device, packet, sizeof packet, 0) > 0) {
        inet_ntop(family, &IP(packet)->saddr, text, sizeof text);
        puts(text);
    }
}
