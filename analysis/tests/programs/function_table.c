/* Handlers in a table of function pointers, called by protocol: all of them process packets.
 *
 * expect tcp_seen: updateable
 * expect udp_seen: updateable
 * expect never: persistent
 */
#include "packets.h"
int tcp_seen, udp_seen, never;

static void tcp(char *packet) { tcp_seen += TCP(packet)->syn; }
static void udp(char *packet) { udp_seen += UDP(packet)->len; }
static void unused(char *packet) { never += packet[0]; }

typedef void (*handler)(char *);
handler handlers[2] = {tcp, udp};

int main(void) {
    char packet[2048];
    while (recv(device, packet, sizeof packet, 0) > 0) handlers[IP(packet)->protocol == 17](packet);
}
