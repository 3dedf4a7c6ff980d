/* A datagram's sender comes in a socket address; clients are found by address and port in it.
 *
 * expect clients: updateable packets src_ip src_port
 * expect count: updateable packets -
 */
#include "packets.h"
#include <netinet/in.h>
struct client { unsigned address; unsigned short port; int requests; };
struct client clients[512];
int count;

int main(void) {
    char packet[2048];
    struct sockaddr_in from;
    socklen_t length = sizeof from;
    long size;
    while ((size = recvfrom(device, packet, sizeof packet, 0, (struct sockaddr *)&from, &length)) > 0) {
        struct client *client = NULL;
        for (int at = 0; at < count; at++)
            if (clients[at].address == from.sin_addr.s_addr && clients[at].port == from.sin_port) client = &clients[at];
        if (!client && count < 512) {
            client = &clients[count++];
            client->address = from.sin_addr.s_addr;
            client->port = from.sin_port;
        }
        if (client && ++client->requests < 10)
            sendto(device, packet, size, 0, (struct sockaddr *)&from, length);
    }
}
