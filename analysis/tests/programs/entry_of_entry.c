/* Hosts are found by a hash and told apart by their source; within a host its ports are searched; the oldest host is kept
 * by itself. Only the source says which entries a flow has.
 *
 * expect hosts: updateable src_ip
 * expect oldest: updateable *
 */
#include "packets.h"
struct host { unsigned ip; int count; unsigned short ports[16]; struct host *next; };
struct host *hosts[64];
struct host *oldest;

static struct host *find(unsigned ip, unsigned short port) {
    struct host *host;
    for (host = hosts[(ip ^ port) % 64]; host; host = host->next)
        if (host->ip == ip) return host;
    host = malloc(sizeof *host);
    host->ip = ip;
    host->count = 0;
    host->next = hosts[(ip ^ port) % 64];
    hosts[(ip ^ port) % 64] = host;
    if (!oldest) oldest = host;
    return host;
}

int main(void) {
    char packet[2048];
    while (recv(device, packet, sizeof packet, 0) > 0) {
        unsigned short port = TCP(packet)->dest;
        struct host *host = find(IP(packet)->saddr, port);
        int known = 0;
        for (int i = 0; i < host->count; i++)
            if (host->ports[i] == port) known = 1;
        if (!known && host->count < 16) host->ports[host->count++] = port;
        if (oldest->count > 15) oldest->count = 0;
    }
}
