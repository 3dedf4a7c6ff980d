/* A table of services is loaded and sorted once, then searched by the library for the destination port.
 *
 * Packet code reads the table and what is found; it writes only the counter that the entry points to. services leads to
 * it, so it is updateable; its key is the port. blocked has the same shape and leads to nothing that changes.
 *
 * expect services: updateable dst_port
 * expect web: updateable
 * expect blocked: top-level dst_port
 */
#include "packets.h"
struct service { unsigned short port; int *hits; };
int web;
struct service services[3] = {{22, &web}, {80, &web}, {443, &web}};
unsigned short blocked[2];

static int by_port(const void *one, const void *two) {
    return *(const unsigned short *)one - *(const unsigned short *)two;
}

int main(void) {
    char packet[2048];
    blocked[0] = 23;
    blocked[1] = 25;
    qsort(blocked, 2, sizeof *blocked, by_port);
    while (recv(device, packet, sizeof packet, 0) > 0) {
        unsigned short port = TCP(packet)->dest;
        struct service *found = bsearch(&port, services, 3, sizeof *services, by_port);
        if (found) ++*found->hits;
        if (!bsearch(&port, blocked, 2, sizeof *blocked, by_port)) send(device, packet, 40, 0);
    }
}
